package grant

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"

	"github.com/go-jose/go-jose/v4"

	"github.com/promptassembly/promptassembly/server/internal/compact"
)

// The longest header, encoded, and the longest values in it, in bytes.
const (
	maxHeaderBytes = 16 << 10
	maxIssuerBytes = 2048
	maxKeyIDBytes  = 256

	maxIdentifierBytes = 256
)

// Signed is a grant whose signature has not been looked at: nothing that it says is known.
type Signed struct {
	// Issuer and KeyID say whose key it is to be verified with, and Algorithm how: EdDSA or ES256.
	Issuer, KeyID, Algorithm string

	header, signature string // as they were sent
	payload           []byte
}

// Parse takes a grant in the compact form apart, and decodes nothing of what is granted. An error is an
// *InvalidError.
func Parse(token []byte) (*Signed, error) {
	parts := bytes.SplitN(token, []byte("."), 4)
	if len(parts) != 3 || len(parts[0]) > maxHeaderBytes || len(parts[2]) > maxHeaderBytes {
		return nil, invalid(Form)
	}
	s := &Signed{header: string(parts[0]), signature: string(parts[2])}
	var header map[string]any
	if _, ok := compact.Bytes(parts[2]); !ok || !compact.Object(parts[0], &header) {
		return nil, invalid(Form)
	}
	payload, ok := compact.Bytes(parts[1])
	if !ok {
		return nil, invalid(Form)
	}
	s.payload = payload
	if typ, _ := header["typ"].(string); typ != Type { // what was signed for something else, in whatever form
		return nil, invalid(Typ)
	}
	var there [3]bool
	s.Algorithm, there[0] = header["alg"].(string)
	s.KeyID, there[1] = header["kid"].(string)
	s.Issuer, there[2] = header["iss"].(string)
	if there != [3]bool{true, true, true} || len(header) != 4 || s.KeyID == "" || len(s.KeyID) > maxKeyIDBytes ||
		s.Issuer == "" || len(s.Issuer) > maxIssuerBytes {
		return nil, invalid(Form)
	}
	if s.Algorithm != string(jose.EdDSA) && s.Algorithm != string(jose.ES256) {
		return nil, invalid(Algorithm)
	}
	return s, nil
}

// Verify returns the payload, which is not copied, if the signature is one by the key: an
// ed25519.PublicKey, or an *ecdsa.PublicKey on P-256. An error is an *InvalidError of the algorithm or the
// signature.
func (s *Signed) Verify(public crypto.PublicKey) ([]byte, error) {
	algorithm := algorithmOf(public)
	if string(algorithm) != s.Algorithm {
		return nil, invalid(Algorithm)
	}
	signed, err := jose.ParseDetached(s.header+".."+s.signature, s.payload, []jose.SignatureAlgorithm{algorithm})
	if err == nil {
		_, err = signed.Verify(public)
	}
	if err != nil {
		return nil, invalid(Signature)
	}
	return s.payload, nil
}

// Unverified returns the payload, of which nobody knows who wrote it. It is for showing what a token claims.
func (s *Signed) Unverified() []byte { return s.payload }

// algorithmOf returns the algorithm that a public key is for, or "" if grants know none.
func algorithmOf(public crypto.PublicKey) jose.SignatureAlgorithm {
	switch public := public.(type) {
	case ed25519.PublicKey:
		return jose.EdDSA
	case *ecdsa.PublicKey:
		if public.Curve == elliptic.P256() {
			return jose.ES256
		}
	}
	return ""
}
