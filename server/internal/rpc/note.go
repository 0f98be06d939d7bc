package rpc

import (
	"google.golang.org/protobuf/proto"

	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
	"github.com/promptassembly/promptassembly/server/internal/observe"
)

// noteRequest tells the observer the identifiers of a request that are valid.
func noteRequest(call *observe.Call, m proto.Message) {
	var queryID, scope string
	switch m := m.(type) {
	case *pb.SelectMemoryRequest:
		queryID, scope = m.GetQueryId(), m.GetUserScope()
	case *pb.PlanPromptRequest:
		queryID, scope = m.GetQueryId(), m.GetMemory().GetUserScope()
	}
	if optionalIdentifier(queryID) != "" {
		queryID = ""
	}
	if optionalIdentifier(scope) != "" {
		scope = ""
	}
	call.Request(queryID, scope)
}

// noteDecisions tells the observer what was decided.
func noteDecisions(call *observe.Call, resp any) {
	switch resp := resp.(type) {
	case *pb.SelectMemoryResponse:
		call.Memory(resp.GetPlan())
	case *pb.PlanPromptResponse:
		call.Memory(resp.GetMemoryPlan())
		call.Prompt(resp.GetPlan())
	}
}
