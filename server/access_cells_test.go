package server_test

import (
	"fmt"
	"slices"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
)

const (
	workspace = pb.Authority_AUTHORITY_WORKSPACE_OVERRIDE
	turn      = pb.Authority_AUTHORITY_CURRENT_TURN
	baseKind  = pb.SegmentKind_SEGMENT_KIND_BASE_INSTRUCTIONS
	whoKind   = pb.SegmentKind_SEGMENT_KIND_IDENTITY
	project   = pb.SegmentKind_SEGMENT_KIND_PROJECT_CONTEXT
)

// entitled is what a caller may, in the words of the policy of the matrix.
type entitled struct {
	unnamed     bool
	own, others string            // scopes: one that it may speak for, one of somebody else
	atLarge     rights            // for its own scope, and without any
	below       rights            // for what is below team/a
	bounds      map[string]string // by field
}

type rights struct {
	authorities []pb.Authority
	required    []pb.SegmentKind
}

// cell is a request, and what it asserts.
type cell struct {
	name, method string
	request      proto.Message
	encoded      []byte
	memory       bool
	scope        string
	authorities  []claim[pb.Authority] // above user default, depth first
	required     []claim[pb.SegmentKind]
	bound        string // the field that is out of bounds, where there are any
}

// claim is something that is asserted at a path.
type claim[T any] struct {
	path, name string
	what       T
}

// refused is how a call is refused.
type refused struct {
	code     codes.Code // OK: not at all
	reason   string
	metadata map[string]string
}

// cells returns all requests of the matrix for the scopes of a caller.
func cells(t testing.TB, of entitled) []cell {
	t.Helper()
	var all []cell
	for _, scope := range []string{of.own, "team/a/x", "team/ab", "team/a", of.others} {
		for _, authority := range []string{"default", "workspace", "turn", "turn by id", "both"} {
			for _, bound := range []string{"", "min_score", "top_k", "max_chars", "max_tokens"} {
				request, authorities := memoryCell(scope, authority, bound)
				name := fmt.Sprintf("scope %s, authority %s, out of bounds %q", scope, authority, bound)
				c := cell{memory: true, scope: scope, bound: bound}
				c.name, c.method, c.request, c.authorities = name, "SelectMemory", request, authorities
				all = append(all, c)
				for _, required := range []string{"none", "base", "identity"} {
					c.name, c.method = name+", required "+required, "PlanPrompt"
					c.request, c.required = promptCell(required, request)
					c.authorities = nil
					for _, a := range authorities {
						a.path = "memory." + a.path
						c.authorities = append(c.authorities, a)
					}
					all = append(all, c)
				}
			}
		}
	}
	for _, required := range []string{"none", "base", "identity"} {
		request, claims := promptCell(required, nil)
		all = append(all, cell{name: "no memory, required " + required, method: "PlanPrompt", request: request, required: claims})
	}
	all = append(all, cell{name: "ListTokenizers", method: "ListTokenizers", request: new(pb.ListTokenizersRequest)})
	for i := range all {
		all[i].encoded = marshal(t, all[i].request)
	}
	return all
}

// memoryCell returns a request for memories, and the authorities above user default in it.
func memoryCell(scope, authority, bound string) (*pb.SelectMemoryRequest, []claim[pb.Authority]) {
	limit := func(n uint32) *pb.Budget { return &pb.Budget{Bound: &pb.Budget_Limit{Limit: n}} }
	first, second := candidate("c", "Tea before noon."), candidate("d", "Cats & dogs.")
	first.UserScope, second.UserScope = scope, scope
	r := &pb.SelectMemoryRequest{
		UserScope: scope,
		Recall: &pb.RecallResult{
			Query: &pb.RecallQuery{UserScope: "user:eve"}, // is no claim
			Hits: []*pb.RecallHit{{
				MemoryId: "h", Rank: 1, Snippet: "Mei likes green.", UserScope: scope,
				Provenance: &pb.Provenance{SourceId: "s", SourceType: "t"}, ScoreBreakdown: &pb.ScoreBreakdown{Total: new(0.75)},
			}},
		},
		AuthorityByMemoryId: map[string]pb.Authority{"h": pb.Authority_AUTHORITY_USER_DEFAULT},
		Candidates:          []*pb.MemoryContextCandidate{first, second},
		Policy: &pb.MemorySelectionPolicy{ // at the bounds
			MinScore: new(0.4), TopK: new(uint32(4)), MaxChars: limit(2000), MaxTokens: limit(700),
		},
	}
	var claims []claim[pb.Authority]
	if authority == "turn by id" || authority == "both" {
		r.AuthorityByMemoryId["h"] = turn
		claims = append(claims, claim[pb.Authority]{path: `authority_by_memory_id["h"]`, what: turn})
	}
	switch authority {
	case "workspace", "both":
		second.Authority = workspace
	case "turn":
		second.Authority = turn
	}
	if second.GetAuthority() != 0 {
		claims = append(claims, claim[pb.Authority]{path: "candidates[1].authority", what: second.GetAuthority()})
	}
	switch bound {
	case "min_score":
		r.Policy.MinScore = nil // 0.35
	case "top_k":
		r.Policy.TopK = new(uint32(5))
	case "max_chars":
		r.Policy.MaxChars = &pb.Budget{Bound: &pb.Budget_Unlimited{Unlimited: true}}
	case "max_tokens":
		r.Policy.MaxTokens = nil // 800
	}
	return r, claims
}

// promptCell returns a request for a prompt, and the required segments in it.
func promptCell(required string, memory *pb.SelectMemoryRequest) (*pb.PlanPromptRequest, []claim[pb.SegmentKind]) {
	segment := func(kind pb.SegmentKind, required *bool) *pb.PromptSegment {
		return &pb.PromptSegment{Kind: kind, Required: required, Body: &pb.PromptSegment_Text{Text: kind.String()}}
	}
	r := &pb.PlanPromptRequest{Memory: memory, Segments: []*pb.PromptSegment{segment(project, nil)}}
	switch required {
	case "base":
		r.Segments = append(r.Segments, segment(baseKind, nil))
		return r, []claim[pb.SegmentKind]{{"segments[1]", "base", baseKind}}
	case "identity":
		r.Segments = append(r.Segments, segment(whoKind, new(true)))
		return r, []claim[pb.SegmentKind]{{"segments[1]", "identity", whoKind}}
	default:
		return r, nil
	}
}

// expect returns what becomes of a request of a caller: the first that it may not, of the scope, an
// authority, a required segment and a bound, refuses it.
func (e entitled) expect(identity string, c cell) refused {
	deny := func(reason string, more ...string) refused {
		metadata := map[string]string{"identity": identity}
		if c.memory {
			metadata["scope"] = c.scope
		}
		for i := 0; i < len(more); i += 2 {
			metadata[more[i]] = more[i+1]
		}
		return refused{codes.PermissionDenied, reason, metadata}
	}
	at := "" // where the request for memories stands
	if c.memory && c.method == "PlanPrompt" {
		at = "memory."
	}
	may := e.atLarge
	switch {
	case c.method == "ListTokenizers":
		return refused{}
	case e.unnamed && !c.memory:
		return deny("SCOPE_NOT_PERMITTED")
	case e.unnamed, c.memory && c.scope != e.own && c.scope != "team/a/x":
		return deny("SCOPE_NOT_PERMITTED", "path", at+"user_scope")
	case c.memory && c.scope == "team/a/x":
		may = e.below
	}
	for _, a := range c.authorities {
		if !slices.Contains(may.authorities, a.what) {
			return deny("AUTHORITY_NOT_PERMITTED", "path", a.path, "authority", a.what.String())
		}
	}
	for _, s := range c.required {
		if !slices.Contains(may.required, s.what) {
			return deny("REQUIRED_NOT_PERMITTED", "path", s.path, "segment", s.name, "kind", s.what.String())
		}
	}
	if bound := e.bounds[c.bound]; c.memory && bound != "" {
		return deny("POLICY_NOT_PERMITTED", "path", at+"policy."+c.bound, "field", c.bound, "bound", bound)
	}
	return refused{}
}
