package server_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
	"github.com/promptassembly/promptassembly/server"
)

// The numbers of fields that the tests write by hand.
const (
	hostileAuthorities = 5 // SelectMemoryRequest.authority_by_memory_id
	hostileCandidates  = 6 // SelectMemoryRequest.candidates
	hostileAuthority   = 8 // MemoryContextCandidate.authority
	hostileMemory      = 3 // PlanPromptRequest.memory
	hostileSegments    = 2 // PlanPromptRequest.segments
	hostileRequired    = 6 // PromptSegment.required
)

// hostileVarint is an encoded field.
func hostileVarint(field protowire.Number, value uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(nil, field, protowire.VarintType), value)
}

// hostileEntry is an entry of authority_by_memory_id.
func hostileEntry(id string, authorities ...uint64) []byte {
	entry := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), id)
	for _, authority := range authorities {
		entry = append(entry, hostileVarint(2, authority)...)
	}
	return nest(entry, hostileAuthorities)
}

// hostileRecall is a request of two hits, without authorities.
func hostileRecall(t *testing.T) []byte {
	return marshal(t, &pb.SelectMemoryRequest{UserScope: "u", Recall: &pb.RecallResult{
		Query: &pb.RecallQuery{UserScope: "u"}, Hits: []*pb.RecallHit{hitOf(candidate("h", "one")), hitOf(candidate("i", "two"))},
	}})
}

// Whatever the encoding, what is answered is what was permitted.
func TestHostileEncodings(t *testing.T) {
	f := hostileServe(t, false, server.Config{})
	conn := f.client(t, nil)
	agent := hostileBearers(f.other.token(func(h *hostileToken) { h.claims["sub"] = "agent" }))
	harness := hostileBearers(f.idp.token(nil))
	recall := hostileRecall(t)
	plain := marshal(t, &pb.SelectMemoryRequest{UserScope: "u", Candidates: []*pb.MemoryContextCandidate{candidate("m", "text")}})
	one := marshal(t, candidate("m", "text"))
	scope := marshal(t, &pb.SelectMemoryRequest{UserScope: "u"})
	segment := marshal(t, &pb.PromptSegment{Name: "s", Body: &pb.PromptSegment_Text{Text: "rules"}})
	with := func(parts ...[]byte) (request []byte) {
		for _, part := range parts {
			request = append(request, part...)
		}
		return request
	}
	const denied, invalid = "AUTHORITY_NOT_PERMITTED", "INVALID_REQUEST"
	for name, test := range map[string]struct {
		method  string
		request []byte
		want    string // of the agent
		highest pb.Authority
	}{
		"a key twice, the last above":    {"SelectMemory", with(recall, hostileEntry("h", 1), hostileEntry("h", 3)), denied, 3},
		"a key twice, the first above":   {"SelectMemory", with(recall, hostileEntry("h", 3), hostileEntry("h", 1)), "", 1},
		"a key twice, the last without":  {"SelectMemory", with(recall, hostileEntry("h", 3), hostileEntry("h")), "", 1},
		"a value twice, the last above":  {"SelectMemory", with(recall, hostileEntry("h", 1, 3)), denied, 3},
		"a value twice, the first above": {"SelectMemory", with(recall, hostileEntry("h", 3, 1)), "", 1},
		"an entry before the hits":       {"SelectMemory", with(hostileEntry("h", 3), recall), denied, 3},
		"a later one of two":             {"SelectMemory", with(recall, hostileEntry("h", 1), hostileEntry("i", 2)), denied, 2},
		"one of no hit":                  {"SelectMemory", with(recall, hostileEntry("x", 3)), invalid, 0},
		"a number beyond":                {"SelectMemory", with(recall, hostileEntry("h", 4)), invalid, 0},
		"a number of 64 bits":            {"SelectMemory", with(recall, hostileEntry("h", 1<<32|3)), denied, 3},
		"a number below 0":               {"SelectMemory", with(recall, hostileEntry("h", 1<<64-1)), invalid, 0},
		"a candidate's, twice, above":    {"SelectMemory", with(scope, nest(with(one, hostileVarint(hostileAuthority, 1), hostileVarint(hostileAuthority, 3)), hostileCandidates)), denied, 3},
		"a candidate's, twice, below":    {"SelectMemory", with(scope, nest(with(one, hostileVarint(hostileAuthority, 3), hostileVarint(hostileAuthority, 1)), hostileCandidates)), "", 1},
		"a candidate's of 64 bits":       {"SelectMemory", with(scope, nest(with(one, hostileVarint(hostileAuthority, 1<<32|3)), hostileCandidates)), denied, 3},
		"a candidate's beyond":           {"SelectMemory", with(scope, nest(with(one, hostileVarint(hostileAuthority, 17)), hostileCandidates)), invalid, 0},
		"a candidate's below 0":          {"SelectMemory", with(scope, nest(with(one, hostileVarint(hostileAuthority, 1<<64-2)), hostileCandidates)), invalid, 0},
		"a candidate's in a long tag":    {"SelectMemory", with(scope, nest(with(one, []byte{hostileAuthority<<3 | 0x80, 0x80, 0, 3}), hostileCandidates)), denied, 3},
		"a candidate's, beside unknown":  {"SelectMemory", with(scope, nest(with(one, hostileVarint(999, 1), hostileVarint(hostileAuthority, 2)), hostileCandidates)), denied, 2},
		"a candidate's as bytes":         {"SelectMemory", with(scope, nest(with(one, nest([]byte{3}, hostileAuthority)), hostileCandidates)), "", 1},
		"unknown fields":                 {"SelectMemory", with(plain, hostileVarint(999, 3), nest([]byte("harness"), 1000)), "", 1},
		"another scope before":           {"SelectMemory", with(marshal(t, &pb.SelectMemoryRequest{UserScope: "u"}), marshal(t, &pb.SelectMemoryRequest{UserScope: "v"})), "SCOPE_NOT_PERMITTED", 0},
		"a memory in two parts":          {"PlanPrompt", with(nest(recall, hostileMemory), nest(hostileEntry("h", 3), hostileMemory)), denied, 3},
		"a scope in a second part":       {"PlanPrompt", with(nest(recall, hostileMemory), nest(marshal(t, &pb.SelectMemoryRequest{UserScope: "v"}), hostileMemory)), "SCOPE_NOT_PERMITTED", 0},
		"required, twice, the last true": {"PlanPrompt", nest(with(segment, hostileVarint(hostileRequired, 0), hostileVarint(hostileRequired, 1)), hostileSegments), "REQUIRED_NOT_PERMITTED", 0},
		"required, the last false":       {"PlanPrompt", nest(with(segment, hostileVarint(hostileRequired, 1), hostileVarint(hostileRequired, 0)), hostileSegments), "", 0},
		"required as 2":                  {"PlanPrompt", nest(with(segment, hostileVarint(hostileRequired, 2)), hostileSegments), "REQUIRED_NOT_PERMITTED", 0},
	} {
		t.Run(name, func(t *testing.T) {
			answer, err := f.call(t, conn, test.method, test.request, agent)
			info, _ := refusalOf(err)
			if info.GetReason() != test.want || (test.want == "") != (err == nil) {
				t.Fatalf("answered with %v, want %q", err, test.want)
			}
			if test.highest == 0 || test.want == invalid {
				return
			}
			if err == nil && hostileHighest(t, test.method, answer) > pb.Authority_AUTHORITY_USER_DEFAULT {
				t.Errorf("an authority of %v was given to an agent", hostileHighest(t, test.method, answer))
			}
			answer, err = f.call(t, conn, test.method, test.request, harness) // which sees what is asserted
			if err != nil || hostileHighest(t, test.method, answer) != test.highest {
				t.Errorf("the harness: %v, %v, want %v", hostileHighest(t, test.method, answer), err, test.highest)
			}
		})
	}
	t.Run("JSON", func(t *testing.T) {
		p := f.peer(t, nil)
		fields := replace("content-type", "application/grpc+json", headersOf(servicePath+"SelectMemory", agent...))
		stream := p.open(false, fields...)
		p.data(stream, true, framed(0, []byte(`{"userScope":"u","candidates":[{"memoryId":"m","authority":"AUTHORITY_CURRENT_TURN"}]}`)))
		if a := p.wait(stream); a.code() != codes.InvalidArgument {
			t.Errorf("answered with %+v", a)
		}
		stream = p.open(false, fields...)
		p.data(stream, true, framed(0, hostileClaim(t)))
		if a := p.wait(stream); hostileReason(a) != denied {
			t.Errorf("answered with %+v", a)
		}
	})
	f.isEmpty(t)
}

// call makes a call with headers, and returns its answer as it was sent.
func (f *hostileServer) call(t *testing.T, conn *grpc.ClientConn, method string, request []byte, headers []string) (answer []byte, err error) {
	t.Helper()
	ctx := metadata.AppendToOutgoingContext(t.Context(), headers...)
	err = conn.Invoke(ctx, servicePath+method, request, &answer, grpc.ForceCodecV2(rawCodec{}))
	return answer, err
}

// hostileHighest returns the highest authority in the decisions of an answer.
func hostileHighest(t *testing.T, method string, answer []byte) (highest pb.Authority) {
	t.Helper()
	plan := new(pb.PlanPromptResponse)
	var err error
	if method == "SelectMemory" {
		selected := new(pb.SelectMemoryResponse)
		err = proto.Unmarshal(answer, selected)
		plan.MemoryPlan = selected.GetPlan()
	} else {
		err = proto.Unmarshal(answer, plan)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range plan.GetMemoryPlan().GetDecisions() {
		highest = max(highest, d.GetAuthority())
	}
	return highest
}

// hostileClaimFor is a request for a scope that asserts the highest authority.
func hostileClaimFor(t *testing.T, scope string) []byte {
	m := candidate("m", "text")
	m.UserScope, m.Authority = scope, pb.Authority_AUTHORITY_CURRENT_TURN
	return marshal(t, &pb.SelectMemoryRequest{UserScope: scope, Candidates: []*pb.MemoryContextCandidate{m}})
}

// What looks like a scope is another one.
func TestHostileScopes(t *testing.T) {
	f := hostileServe(t, false, server.Config{})
	conn := f.client(t, nil)
	harness := hostileBearers(f.idp.token(nil))
	for scope, want := range map[string]string{
		"u": "", "team/a/b": "", "team/a//": "", "team/a/..": "", // data: a scope is compared byte for byte
		"u\x00": "INVALID_REQUEST", "u\n": "INVALID_REQUEST", "u\u2028": "INVALID_REQUEST", "\u0085u": "INVALID_REQUEST",
		"u ": "SCOPE_NOT_PERMITTED", " u": "SCOPE_NOT_PERMITTED", "u\u00a0": "SCOPE_NOT_PERMITTED", "U": "SCOPE_NOT_PERMITTED",
		"u\u200b": "SCOPE_NOT_PERMITTED", "\ufeffu": "SCOPE_NOT_PERMITTED", "u\u0301": "SCOPE_NOT_PERMITTED", "\uff55": "SCOPE_NOT_PERMITTED",
		"\u1d1c": "SCOPE_NOT_PERMITTED", "u/": "SCOPE_NOT_PERMITTED", "u/v": "SCOPE_NOT_PERMITTED", "*": "SCOPE_NOT_PERMITTED", "{u}": "SCOPE_NOT_PERMITTED",
		"team/a": "SCOPE_NOT_PERMITTED", "team/a/": "SCOPE_NOT_PERMITTED", "team/ab": "SCOPE_NOT_PERMITTED", "team/ab/c": "SCOPE_NOT_PERMITTED",
		"team/a\u2215b": "SCOPE_NOT_PERMITTED", "team\u2044a/b": "SCOPE_NOT_PERMITTED", "te\u0430m/a/b": "SCOPE_NOT_PERMITTED",
		"team//a/b": "SCOPE_NOT_PERMITTED", "./team/a/b": "SCOPE_NOT_PERMITTED", "team/b/../a/b": "SCOPE_NOT_PERMITTED", "team%2Fa/b": "SCOPE_NOT_PERMITTED",
	} {
		_, err := f.call(t, conn, "SelectMemory", hostileClaimFor(t, scope), harness)
		if info, _ := refusalOf(err); info.GetReason() != want || (want == "") != (err == nil) {
			t.Errorf("%q: %v, want %q", scope, err, want)
		}
	}
}

// While a policy is replaced, each call is judged by the one or the other, and each caller as itself.
func TestHostileReloads(t *testing.T) {
	f := hostileServe(t, true, server.Config{})
	swapped := strings.NewReplacer(
		"spiffe: \"spiffe://example.org/harness\"", "spiffe: \"spiffe://example.org/agent\"",
		"{source: mtls, spiffe: \"spiffe://example.org/agent\"}", "{source: mtls, spiffe: \"spiffe://example.org/harness\"}",
		"subject: harness", "subject: other",
	).Replace(hostilePolicy)
	harness, agent, stranger := f.client(t, f.leaf(hostileHarness)), f.client(t, f.leaf(hostileAgent)), f.client(t, f.leaf("spiffe://example.org/x"))
	ask := func(conn *grpc.ClientConn) string {
		_, err := f.call(t, conn, "SelectMemory", hostileClaim(t), nil)
		info, _ := refusalOf(err)
		if info == nil && err != nil {
			return status.Code(err).String()
		}
		return info.GetReason()
	}
	ctx, end := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for name, conn := range map[string]*grpc.ClientConn{"": harness, "the agent": agent, "a stranger": stranger} {
		all.Go(func() {
			for ctx.Err() == nil {
				got := ask(conn)
				switch {
				case name == "a stranger" && got != "SCOPE_NOT_PERMITTED", got != "" && got != "SCOPE_NOT_PERMITTED" && got != "AUTHORITY_NOT_PERMITTED":
					t.Errorf("%s is answered with %q", name, got)
					return
				}
			}
		})
	}
	for range 2 {
		f.rule(t, swapped)
		eventually(t, "the agent is the harness", func() bool { return ask(agent) == "" && ask(harness) == "AUTHORITY_NOT_PERMITTED" })
		f.rule(t, "version: 1\ncallers: [") // broken: nothing changes
		eventually(t, "it is said to be broken", func() bool {
			return strings.Contains(f.said.String(), "the new policy is not used")
		})
		if got := ask(harness); got != "AUTHORITY_NOT_PERMITTED" {
			t.Errorf("a broken policy answers with %q", got)
		}
		f.rule(t, hostilePolicy)
		eventually(t, "the harness is the harness", func() bool { return ask(harness) == "" && ask(agent) == "AUTHORITY_NOT_PERMITTED" })
	}
	end()
	all.Wait()
	f.isEmpty(t)
}
