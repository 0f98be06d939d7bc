package rpc

import (
	"google.golang.org/protobuf/proto"

	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
	"github.com/promptassembly/promptassembly/server/internal/observe"
)

// noteRequest tells the observer the identifiers of a request that are valid.
func noteRequest(call *observe.Call, m proto.Message) {
	switch m := m.(type) {
	case *pb.SelectMemoryRequest:
		noteIdentifiers(call, m.GetQueryId(), m.GetUserScope())
	case *pb.PlanPromptRequest:
		noteIdentifiers(call, m.GetQueryId(), m.GetMemory().GetUserScope())
	}
}

// noteIdentifiers tells the observer those that are valid.
func noteIdentifiers(call *observe.Call, queryID, scope string) {
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
