package main

import (
	"bytes"
	"context"
	"errors"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
)

func newGrant() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "grant",
		Short: "Sign requests for others to carry, and look at what was signed",
		Long: `Sign requests for others to carry, and look at what was signed. Whoever carries a
signed grant can change nothing of it, and gets the answer that the one who signed
it would get. See the message Grant of the API.

Nothing here calls a server.`,
		Example: `  promptctl grant keygen --out grant-key.jwk > grant-keys.jwks
  promptctl grant sign --key grant-key.jwk --issuer https://harness.example.org \
      --audience prompt-assembly request.json > carried.json
  promptctl grant verify --keys grant-keys.jwks --issuer https://harness.example.org \
      --audience prompt-assembly carried.json
  promptctl grant show carried.json`,
		Args: cobra.NoArgs,
	}
	cmd.AddCommand(newGrantKeygen(), newGrantSign(), newGrantVerify(), newGrantShow())
	return cmd
}

// rpcFlag is the flag that says which RPC a request is for.
func rpcFlag(cmd *cobra.Command) *choice {
	c := &choice{value: "select", allowed: []string{"select", "plan"}}
	c.flag(cmd, "rpc", "", "what the request is for")
	return c
}

// rpcOf returns the RPC that the flag names.
func rpcOf(c *choice) rpc {
	if c.value == "plan" {
		return planPrompt
	}
	return selectMemory
}

// carried is a token as it was read, and what the request that carried it says beside.
type carried struct {
	token   []byte
	queryID string
	// byRequest: the token did not come by itself.
	byRequest bool
}

// readCarried reads a token: by itself, or in the request that carries it.
func readCarried(ctx context.Context, in *input, of rpc) (c carried, err error) {
	data, err := in.readAll(ctx)
	if err != nil {
		return c, err
	}
	text := bytes.TrimSpace(data)
	if !bytes.HasPrefix(text, []byte("{")) {
		c.token = text
		return c, nil
	}
	req, err := of.parse(text)
	if err != nil {
		return c, err
	}
	c.byRequest = true
	c.token, c.queryID = carriedBy(req)
	if len(c.token) == 0 {
		return c, errors.New("the request carries no grant")
	}
	return c, nil
}

// carriedBy returns the token and the query id of a request.
func carriedBy(req proto.Message) ([]byte, string) {
	switch req := req.(type) {
	case *pb.SelectMemoryRequest:
		return req.GetGrant(), req.GetQueryId()
	case *pb.PlanPromptRequest:
		return req.GetGrant(), req.GetQueryId()
	}
	return nil, ""
}
