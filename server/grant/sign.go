package grant

import (
	"crypto"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/cryptosigner"
	"google.golang.org/protobuf/proto"

	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
)

// SigningKey is a key of an issuer.
type SigningKey struct {
	// Issuer is the header parameter iss, 1 to 2048 bytes: the name that the policies of services trust.
	Issuer string
	// ID is the header parameter kid, 1 to 256 bytes; no other key of the issuer has it.
	ID string
	// Signer is a key of Ed25519, or an ECDSA key on P-256; it may be one that is kept elsewhere.
	Signer crypto.Signer
}

// Sign returns the grant in the compact form. It fails for a key that grants know nothing of, and for a grant
// whose own fields no service could accept; the rules of the request within are for the service to check.
func Sign(key SigningKey, g *pb.Grant) ([]byte, error) {
	payload, err := proto.MarshalOptions{Deterministic: true}.Marshal(g)
	if err != nil {
		return nil, err
	}
	if err := signable(g, payload); err != nil {
		return nil, err
	}
	if key.Signer == nil {
		return nil, errors.New("there is no key")
	}
	algorithm := algorithmOf(key.Signer.Public())
	switch {
	case algorithm == "":
		return nil, fmt.Errorf("the key is a %T, neither of Ed25519 nor an ECDSA key on P-256", key.Signer.Public())
	case key.Issuer == "" || len(key.Issuer) > maxIssuerBytes || !utf8.ValidString(key.Issuer) || strings.ContainsFunc(key.Issuer, unprintable):
		return nil, fmt.Errorf("the issuer must be 1 to %d bytes without white space and control characters", maxIssuerBytes)
	case key.ID == "" || len(key.ID) > maxKeyIDBytes || !utf8.ValidString(key.ID):
		return nil, fmt.Errorf("the key's ID must be 1 to %d bytes of UTF-8", maxKeyIDBytes)
	}
	var header jose.SignerOptions
	header.WithType(Type).WithHeader("iss", key.Issuer).WithHeader("kid", key.ID)
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: cryptosigner.Opaque(key.Signer)}, &header)
	if err != nil {
		return nil, err
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		return nil, err
	}
	token, err := signed.CompactSerialize()
	return []byte(token), err
}

func unprintable(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }

// signable says what is wrong with a grant, which payload is.
func signable(g *pb.Grant, payload []byte) error {
	inner := g.GetSelectMemory().GetQueryId() + g.GetPlanPrompt().GetQueryId()
	life := g.GetExpireTime().AsTime().Sub(g.GetIssueTime().AsTime())
	switch {
	case g.GetAudience() == "" || len(g.GetAudience()) > maxIdentifierBytes:
		return fmt.Errorf("audience must be 1 to %d bytes", maxIdentifierBytes)
	case !storable(g.GetIssueTime()) || !storable(g.GetExpireTime()):
		return errors.New("issue_time and expire_time must be times of the years 0001 to 9999")
	case life <= 0 || life > MaxLife:
		return fmt.Errorf("expire_time must be later than issue_time, by %v at most", MaxLife)
	case g.GetQueryId() == "" || len(g.GetQueryId()) > maxIdentifierBytes:
		return fmt.Errorf("query_id must be 1 to %d bytes", maxIdentifierBytes)
	case g.GetRequest() == nil:
		return errors.New("a request must be granted")
	case inner != "" && inner != g.GetQueryId():
		return errors.New("query_id must be that of the granted request")
	}
	if _, err := Open(payload); err != nil {
		return errors.New("the granted request carries a grant, or fields that are unknown")
	}
	return nil
}
