package grant_test

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/timestamppb"

	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
	"github.com/promptassembly/promptassembly/server/grant"
)

var noon = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

// granted is a grant of a minute from noon, as edit changes it.
func granted(edit func(*pb.Grant)) *pb.Grant {
	g := &pb.Grant{
		Audience: audience, IssueTime: timestamppb.New(noon), ExpireTime: timestamppb.New(noon.Add(time.Minute)), QueryId: "q",
		Request: &pb.Grant_SelectMemory{SelectMemory: &pb.SelectMemoryRequest{UserScope: "u"}},
	}
	edit(g)
	return g
}

func TestSignRefuses(t *testing.T) {
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	p384, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	large, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	nothing := func(*pb.Grant) {}
	good := grant.SigningKey{Issuer: issuer, ID: "1", Signer: ed}
	if _, err := grant.Sign(good, granted(nothing)); err != nil {
		t.Errorf("the grant that all others are made of: %v", err)
	}
	for _, test := range []struct {
		name string
		key  grant.SigningKey
		edit func(*pb.Grant)
		want string
	}{
		{"no key", grant.SigningKey{Issuer: issuer, ID: "1"}, nothing, "no key"},
		{"P-384", grant.SigningKey{Issuer: issuer, ID: "1", Signer: p384}, nothing, "neither of Ed25519 nor an ECDSA key on P-256"},
		{"RSA", grant.SigningKey{Issuer: issuer, ID: "1", Signer: large}, nothing, "neither of Ed25519 nor an ECDSA key on P-256"},
		{"no issuer", grant.SigningKey{ID: "1", Signer: ed}, nothing, "the issuer must be 1 to 2048 bytes"},
		{"no ID", grant.SigningKey{Issuer: issuer, Signer: ed}, nothing, "the key's ID must be 1 to 256 bytes"},
		{"a long ID", grant.SigningKey{Issuer: issuer, ID: strings.Repeat("k", 257), Signer: ed}, nothing, "the key's ID must be 1 to 256 bytes"},
		{"no audience", good, func(g *pb.Grant) { g.Audience = "" }, "audience"},
		{"no time", good, func(g *pb.Grant) { g.IssueTime = nil }, "issue_time"},
		{"no query", good, func(g *pb.Grant) { g.QueryId = "" }, "query_id must be 1 to 256 bytes"},
		{"a long query", good, func(g *pb.Grant) { g.QueryId = strings.Repeat("q", 257) }, "query_id must be 1 to 256 bytes"},
		{"a long audience", good, func(g *pb.Grant) { g.Audience = strings.Repeat("a", 5000) }, "audience must be 1 to 256 bytes"},
		{"an issuer with a space", grant.SigningKey{Issuer: "a b", ID: "1", Signer: ed}, nothing, "without white space"},
		{"an issuer with an escape", grant.SigningKey{Issuer: "a\x1b", ID: "1", Signer: ed}, nothing, "without white space"},
		{"an issuer that is no UTF-8", grant.SigningKey{Issuer: "a\xff", ID: "1", Signer: ed}, nothing, "without white space"},
		{"another query within", good, func(g *pb.Grant) { g.GetSelectMemory().QueryId = "r" }, "that of the granted request"},
		{"no request", good, func(g *pb.Grant) { g.Request = nil }, "a request must be granted"},
		{"six minutes", good, func(g *pb.Grant) { g.ExpireTime = timestamppb.New(noon.Add(6 * time.Minute)) }, "by 5m0s at most"},
		{"no time at all", good, func(g *pb.Grant) { g.ExpireTime = g.GetIssueTime() }, "by 5m0s at most"},
		{"a grant within", good, func(g *pb.Grant) { g.GetSelectMemory().Grant = []byte("x") }, "carries a grant"},
		{"unknown fields", good, func(g *pb.Grant) {
			g.GetSelectMemory().ProtoReflect().SetUnknown(protowire.AppendVarint(protowire.AppendTag(nil, 99, protowire.VarintType), 1))
		}, "unknown"},
		{"invalid UTF-8", good, func(g *pb.Grant) { g.Audience = "\xff" }, "UTF-8"},
	} {
		if _, err := grant.Sign(test.key, granted(test.edit)); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", test.name, err, test.want)
		}
	}
}

// Whoever adds a field of another kind, or a list that is packed, has to say so to what looks for unknown fields.
func TestEveryFieldOfARequestIsKnown(t *testing.T) {
	seen := make(map[protoreflect.FullName]bool)
	var walk func(m protoreflect.MessageDescriptor)
	walk = func(m protoreflect.MessageDescriptor) {
		for i := range m.Fields().Len() {
			field := m.Fields().Get(i)
			if seen[field.FullName()] {
				continue
			}
			seen[field.FullName()] = true
			switch field.Kind() {
			case protoreflect.BoolKind, protoreflect.EnumKind, protoreflect.Int32Kind, protoreflect.Int64Kind, protoreflect.Uint32Kind,
				protoreflect.DoubleKind, protoreflect.StringKind, protoreflect.BytesKind, protoreflect.MessageKind:
			default:
				t.Errorf("%s is a %s", field.FullName(), field.Kind())
			}
			if field.IsPacked() {
				t.Errorf("%s is packed", field.FullName())
			}
			if field.Message() != nil {
				walk(field.Message())
			}
		}
	}
	walk(new(pb.Grant).ProtoReflect().Descriptor())
	if len(seen) < 60 {
		t.Errorf("%d fields", len(seen))
	}
}
