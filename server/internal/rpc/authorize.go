package rpc

import (
	"context"

	"google.golang.org/grpc"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
	"github.com/promptassembly/promptassembly/server/internal/policy"
	"github.com/promptassembly/promptassembly/server/internal/text"
)

// authorize is the interceptor that refuses what a caller may not assert. The request is valid. What every
// identified caller may call asserts nothing; a request that is not known here is refused.
func (s *Service) authorize(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	if s.access == nil {
		return handler(ctx, req)
	}
	switch req.(type) {
	case *pb.ListTokenizersRequest, *healthpb.HealthCheckRequest, *healthpb.HealthListRequest:
		return handler(ctx, req)
	}
	asserted := assertedBy(req)
	if asserted == nil {
		return nil, errInternal
	}
	who := asserting(ctx)
	if denial := policyOf(ctx).Rights(who).Judge(asserted); denial != nil {
		return nil, denied(who, denial)
	}
	return handler(ctx, req)
}

// assertedBy returns what a request asserts; nil if it is not known here.
func assertedBy(req any) *policy.Asserted {
	asserted := new(policy.Asserted)
	switch req := req.(type) {
	case *pb.SelectMemoryRequest:
		assertMemory(asserted, req)
	case *pb.PlanPromptRequest:
		assertPrompt(asserted, req)
	default:
		return nil
	}
	return asserted
}

// assertMemory adds what the request for a selection asserts.
func assertMemory(to *policy.Asserted, m *pb.SelectMemoryRequest) {
	to.Memory, to.Scope, to.Policy = true, m.GetUserScope(), toPolicy(m.GetPolicy())
	for id, authority := range m.GetAuthorityByMemoryId() {
		to.Annotate(id, authority)
	}
	for i, c := range m.GetCandidates() {
		to.Candidate(i, c.GetAuthority())
	}
}

// assertPrompt adds what the request for a prompt asserts.
func assertPrompt(to *policy.Asserted, m *pb.PlanPromptRequest) {
	to.Prompt = true
	for i, sent := range m.GetSegments() {
		if s := toSegment(sent); s.Required {
			to.Require(i, s.Name, fromSegmentKind(s.Kind), text.Blank(s.Text))
		}
	}
	if m.GetMemory() != nil {
		assertMemory(to, m.GetMemory())
	}
}
