package grant

import (
	"crypto/sha256"
	"slices"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
)

// Contents is what a payload says.
type Contents struct {
	// Audience is whom it is for, and QueryID for which query.
	Audience, QueryID string
	// Issued and Expires are from when until when it holds.
	Issued, Expires time.Time
	// Plan: the request is a PlanPromptRequest, else a SelectMemoryRequest.
	Plan bool
	// Request is the granted request, serialised. Its fields are those of its message, but nothing is
	// known of their values.
	Request []byte
	// Digest is the SHA-256 of the payload. Another signature of the same is another token, and no other
	// grant.
	Digest [sha256.Size]byte

	innerQueryID string
}

// maxOtherBytes bounds what a payload holds beside the request.
const maxOtherBytes = 4 << 10

// Field numbers, as the .proto files give them.
const (
	grantSelectMemory protowire.Number = 5
	grantPlanPrompt   protowire.Number = 6
	requestQueryID    protowire.Number = 1
)

// Open reads a payload whose signature holds; it keeps parts of it, and does not decode the request. An
// error is an *InvalidError of the payload.
func Open(payload []byte) (*Contents, error) {
	if !known(payload, grantDescriptor) {
		return nil, invalid(Payload)
	}
	c := Contents{Digest: sha256.Sum256(payload)}
	var other []byte
	requests := 0
	eachField(payload, func(number protowire.Number, field, value []byte) {
		if number != grantSelectMemory && number != grantPlanPrompt {
			other = append(other, field[:min(len(field), maxOtherBytes)]...)
			return
		}
		requests++
		c.Plan, c.Request = number == grantPlanPrompt, value
	})
	var m pb.Grant
	if requests != 1 || len(other) > maxOtherBytes || proto.Unmarshal(other, &m) != nil ||
		!storable(m.GetIssueTime()) || !storable(m.GetExpireTime()) {
		return nil, invalid(Payload)
	}
	c.Audience, c.QueryID = m.GetAudience(), m.GetQueryId()
	c.Issued, c.Expires = m.GetIssueTime().AsTime(), m.GetExpireTime().AsTime()
	eachField(c.Request, func(number protowire.Number, _, value []byte) {
		if number == requestQueryID {
			c.innerQueryID = string(value)
		}
	})
	return &c, nil
}

// storable reports whether t is a time of the years 0001 to 9999.
func storable(t *timestamppb.Timestamp) bool { return t.CheckValid() == nil }

// Holds returns nil if the grant is for one of the audiences, for now, and for the query of the request
// that carries it, which all may be asked for only after the signature. An error is an *InvalidError of
// the audience, the expiry, the issue or the query.
func (c *Contents) Holds(audiences []string, now time.Time, queryID string) error {
	life := c.Expires.Sub(c.Issued)
	switch {
	case !slices.Contains(audiences, c.Audience):
		return invalid(Audience)
	case now.After(c.Expires.Add(Leeway)), life <= 0, life > MaxLife:
		return invalid(Expiry)
	case now.Add(Leeway).Before(c.Issued):
		return invalid(Issued)
	case c.QueryID == "", c.QueryID != queryID, c.innerQueryID != "" && c.innerQueryID != queryID:
		return invalid(Query)
	}
	return nil
}
