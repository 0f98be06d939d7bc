package server_test

import (
	"bytes"
	"crypto/rand"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
	"github.com/promptassembly/promptassembly/server/grant"
)

// What an issuer has signed and should not have.
func TestSignedNonsense(t *testing.T) {
	g := newGrantee(t)
	sign := func(payload []byte) []byte { return forged(goodHeader, payload, byEd25519(g.key)) }
	with := func(like proto.Message, edit func(*pb.Grant)) []byte { return sign(marshal(t, granted(like, edit))) }
	unknown := protowire.AppendVarint(protowire.AppendTag(nil, 99, protowire.VarintType), 1)
	nested := func(edit func(*pb.SelectMemoryRequest)) []byte {
		r := claiming()
		edit(r)
		return with(r, nil)
	}
	record := func(number protowire.Number, value []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), value)
	}
	head := marshal(t, granted(nil, nil))
	inner := signGrant(t, g.key, granted(claiming(), nil))
	random := make([]byte, 512)
	_, _ = rand.Read(random)
	now := time.Now()
	at := func(issued, expires time.Duration) []byte {
		return with(claiming(), func(g *pb.Grant) {
			g.IssueTime, g.ExpireTime = timestamppb.New(now.Add(issued)), timestamppb.New(now.Add(expires))
		})
	}
	for _, test := range []struct {
		name  string
		token []byte
		want  grant.Check
	}{
		{"nothing", sign(nil), grant.Payload},
		{"random bytes", sign(random), grant.Payload},
		{"no request", sign(head), grant.Payload},
		{"two requests", sign(append(bytes.Clone(head), append(record(5, marshal(t, claiming())), record(5, nil)...)...)), grant.Payload},
		{"both requests", sign(append(bytes.Clone(head), append(record(6, nil), record(5, marshal(t, claiming()))...)...)), grant.Payload},
		{"the request of the other method", with(prompted(), nil), grant.Payload},
		{"a grant within", nested(func(r *pb.SelectMemoryRequest) { r.Grant = inner }), grant.Payload},
		{"a field of the grant that is unknown", sign(append(marshal(t, granted(claiming(), nil)), unknown...)), grant.Payload},
		{"of the request", nested(func(r *pb.SelectMemoryRequest) { r.ProtoReflect().SetUnknown(unknown) }), grant.Payload},
		{"of a candidate", nested(func(r *pb.SelectMemoryRequest) { r.Candidates[1].ProtoReflect().SetUnknown(unknown) }), grant.Payload},
		{"of a provenance", nested(func(r *pb.SelectMemoryRequest) { r.Candidates[0].Provenance.ProtoReflect().SetUnknown(unknown) }), grant.Payload},
		{"of a time", with(claiming(), func(g *pb.Grant) { g.IssueTime.ProtoReflect().SetUnknown(unknown) }), grant.Payload},
		{"of a map", sign(append(bytes.Clone(head), record(5, append(marshal(t, claiming()), record(4, append(record(1, []byte("m")), unknown...))...))...)), grant.Payload},
		{"another type of a field", sign(append(bytes.Clone(head), record(5, append(marshal(t, claiming()), protowire.AppendVarint(protowire.AppendTag(nil, 6, protowire.VarintType), 1)...))...)), grant.Payload},
		{"a group", sign(append(bytes.Clone(head), record(5, append(marshal(t, claiming()), 8<<3|3, 8<<3|4))...)), grant.Payload},
		{"a truncated request", sign(append(bytes.Clone(head), record(5, marshal(t, claiming())[:40])...)), grant.Payload},
		{"invalid UTF-8", sign(append(bytes.Clone(head), record(5, append(marshal(t, claiming()), record(8, []byte("\xff"))...))...)), grant.Payload},
		{"invalid UTF-8 beside it", sign(append(record(1, []byte("\xff")), record(5, marshal(t, claiming()))...)), grant.Payload},
		{"no times", with(claiming(), func(g *pb.Grant) { g.IssueTime = nil }), grant.Payload},
		{"a time out of range", with(claiming(), func(g *pb.Grant) { g.ExpireTime.Nanos = -1 }), grant.Payload},
		{"a time without end", with(claiming(), func(g *pb.Grant) { g.ExpireTime.Seconds = 1 << 62 }), grant.Payload},
		{"much beside the request", with(claiming(), func(g *pb.Grant) { g.Audience = strings.Repeat("a", 5000) }), grant.Payload},

		{"no audience", with(claiming(), func(g *pb.Grant) { g.Audience = "" }), grant.Audience},
		{"another audience", with(claiming(), func(g *pb.Grant) { g.Audience = "prompt-assembly-2" }), grant.Audience},
		{"expired by 31 s", at(-2*time.Minute, -31*time.Second), grant.Expiry},
		{"of five minutes and a nanosecond", at(0, 5*time.Minute+1), grant.Expiry},
		{"of no time", at(0, 0), grant.Expiry},
		{"of less", at(time.Second, 0), grant.Expiry},
		{"issued in 31 s", at(31*time.Second, time.Minute), grant.Issued},
		{"no query", with(claiming(), func(g *pb.Grant) { g.QueryId = "" }), grant.Query},
		{"another query", with(claiming(), func(g *pb.Grant) { g.QueryId = "r" }), grant.Query},
		{"another query within", nested(func(r *pb.SelectMemoryRequest) { r.QueryId = "r" }), grant.Query},
		{"of several queries within the last", sign(append(bytes.Clone(head), record(5, append(marshal(t, claiming()), append(record(1, []byte("q")), record(1, []byte("r"))...)...))...)), grant.Query},
	} {
		g.refused(test.name, test.token, test.want, forMemory)
	}
	memory := prompted()
	memory.Memory = &pb.SelectMemoryRequest{UserScope: "u", Grant: inner}
	g.refused("a grant as the memory within", with(memory, nil), grant.Payload, memory)
	g.refused("memories for a prompt", with(claiming(), nil), grant.Payload, memory)

	err := invoke(t.Context(), t, g.conn, &pb.SelectMemoryRequest{Grant: signGrant(t, g.key, granted(claiming(), nil))}, nil)
	checkRefused(t, "without a query", err, refused{
		codes.PermissionDenied, "GRANT_INVALID", map[string]string{"path": "grant", "check": "query"},
	})
	many := &pb.SelectMemoryRequest{UserScope: "u"}
	for range 10_001 {
		many.Candidates = append(many.Candidates, new(pb.MemoryContextCandidate))
	}
	err = invoke(t.Context(), t, g.conn, carrying(many, with(many, nil)), nil)
	checkRefused(t, "too many candidates", err, refused{codes.InvalidArgument, "INVALID_REQUEST", map[string]string{"violation_count": "1"}})
	if _, violations := refusalOf(err); len(violations) != 1 || violations[0].GetField() != "grant.candidates" {
		t.Errorf("%v", violations)
	}
}
