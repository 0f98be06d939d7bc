package server_test

import (
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"
	"google.golang.org/protobuf/proto"

	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
	"github.com/promptassembly/promptassembly/server"
	"github.com/promptassembly/promptassembly/server/grant"
)

// Every text of a granted request, alone: what a grant holds shows no more than what a request does.
func TestCanaryInAGrant(t *testing.T) {
	key, set := newGranter(t, granter, jose.EdDSA)
	policy := strings.ReplaceAll(grantPolicy(keysIn(t, set)), "scopes: [{exact: u}, {exact: v}]", "scopes: [{any: true}]")
	policy = strings.ReplaceAll(policy, "scopes: [{exact: u}, {exact: w}]", "scopes: [{any: true}]")
	policy = strings.ReplaceAll(policy, "required: [base_instructions]", "required: [base_instructions, tool_descriptions, working_mode]")
	policy = strings.ReplaceAll(policy, "    bounds: {top_k: 7}\n", "")
	g := serveAccess(t, newCA(t), policy, server.Config{})
	w := &watch{observed: g.observed}
	client := pb.NewPromptAssemblyServiceClient(g.as(t, exampleID("/relay")))
	sign := func(header string, r proto.Message) []byte {
		return forged(header, marshal(t, granted(r, nil)), byEd25519(key))
	}
	answered, calls := 0, 0
	for _, text := range []string{canary, canary + "\n", canary + strings.Repeat("x", 1<<18)} {
		plan := harmless()
		eachTextIn(plan.ProtoReflect(), "", func(name string, get func() string, set func(string)) {
			was := get()
			set(text)
			defer set(was)
			key := namesIn("grant."+name, text)
			if text != canary {
				key = nil
			}
			_, err := client.PlanPrompt(t.Context(), &pb.PlanPromptRequest{QueryId: "q", Grant: sign(goodHeader, plan)})
			if calls++; err == nil {
				answered++
			}
			w.hides(t, err, map[string]any{}, key...)
		})
	}
	if answered < calls/4 {
		t.Errorf("%d of %d calls are answered", answered, calls)
	}

	request := &pb.SelectMemoryRequest{UserScope: "u", Candidates: []*pb.MemoryContextCandidate{candidate("a", canary)}}
	for name, token := range map[string][]byte{
		"an issuer":            sign(header("EdDSA", "1", grant.Type, canary), request),
		"a key":                sign(header("EdDSA", canary, grant.Type, granter), request),
		"a type":               sign(header("EdDSA", "1", canary, granter), request),
		"an algorithm":         sign(header(canary, "1", grant.Type, granter), request),
		"no token":             []byte(canary),
		"a signature":          append(sign(goodHeader, request), canary...),
		"a payload of nothing": forged(goodHeader, []byte(canary), byEd25519(key)),
	} {
		_, err := client.SelectMemory(t.Context(), &pb.SelectMemoryRequest{QueryId: "q", Grant: token})
		if err == nil {
			t.Errorf("%s is believed", name)
		}
		w.hides(t, err, map[string]any{})
	}
	w.hidden(t, "what is logged of access", g.accessLog.String())
}
