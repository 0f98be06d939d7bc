package client

import (
	"errors"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
	"github.com/promptassembly/promptassembly/server/grant"
)

// SignGrant signs req, whose query id must be set, and returns the request that carries it: whoever sends
// that can change nothing, and gets the answer that the key's issuer would get. It holds for one of the
// names that the service has for itself, the audience, and for a time from now on, up to 5 minutes; 0 is one
// minute. A query id is best used once, for a grant can be carried again until it expires. What is sent is
// a third longer than req, and at most 16 MiB.
func SignGrant[Request *pb.SelectMemoryRequest | *pb.PlanPromptRequest](
	key grant.SigningKey, audience string, life time.Duration, req Request,
) (Request, error) {
	if life == 0 {
		life = time.Minute
	}
	now := time.Now()
	g := &pb.Grant{
		Audience: audience, IssueTime: timestamppb.New(now), ExpireTime: timestamppb.New(now.Add(life)),
	}
	var carrying proto.Message
	var token *[]byte
	switch req := any(req).(type) {
	case *pb.SelectMemoryRequest:
		g.QueryId, g.Request = req.GetQueryId(), &pb.Grant_SelectMemory{SelectMemory: req}
		m := &pb.SelectMemoryRequest{QueryId: req.GetQueryId()}
		carrying, token = m, &m.Grant
	case *pb.PlanPromptRequest:
		g.QueryId, g.Request = req.GetQueryId(), &pb.Grant_PlanPrompt{PlanPrompt: req}
		m := &pb.PlanPromptRequest{QueryId: req.GetQueryId()}
		carrying, token = m, &m.Grant
	}
	var err error
	if *token, err = grant.Sign(key, g); err != nil {
		return nil, errors.New("client: " + err.Error())
	}
	return carrying.(Request), nil
}
