package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	"github.com/promptassembly/promptassembly/client"
	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
	"github.com/promptassembly/promptassembly/server/grant"
)

func newGrantSign() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sign --key FILE --issuer NAME --audience NAME [FILE|-]",
		Short: "Sign a request for somebody else to carry",
		Long: `Signs a request in JSON (protojson) out of FILE, or out of standard input, and
prints the request that carries it, for 'promptctl select' or 'promptctl plan'. The
request must have a queryId, which is best used once.`,
		Example: `  promptctl grant sign --key grant-key.jwk --issuer https://harness.example.org \
      --audience prompt-assembly request.json > carried.json`,
	}
	flags := cmd.Flags()
	keyFile := flags.String("key", "", "`file` of the private key, a JSON Web Key")
	issuer := flags.String("issuer", "", "`name` under which the service knows the public key")
	audience := flags.String("audience", "", "`name` of the service that the grant is for, as its policy has it")
	life := flags.Duration("life", time.Minute, "how long the grant holds from now on, at most 5m")
	alone := flags.Bool("token", false, "print the token alone")
	of := rpcFlag(cmd)
	for _, name := range []string{"issuer", "audience", "life"} {
		noFiles(cmd, name)
	}
	cmd.Args = cobra.MaximumNArgs(1)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		for _, name := range []string{"key", "issuer", "audience"} {
			if cmd.Flag(name).Value.String() == "" {
				return usageError{fmt.Errorf("--%s is missing", name)}
			}
		}
		if *life <= 0 || *life > grant.MaxLife {
			return usageError{fmt.Errorf("--life %v: must be more than 0 and at most %v", *life, grant.MaxLife)}
		}
		in, err := openInput(cmd, args)
		if err != nil {
			return err
		}
		defer in.Close()
		key := grant.SigningKey{Issuer: *issuer}
		if key.Signer, key.ID, err = readGrantKey(*keyFile); err != nil {
			return usageError{err}
		}
		data, err := in.readAll(cmd.Context())
		if err != nil {
			return fmt.Errorf("%s: %w", in.name, err)
		}
		req, err := rpcOf(of).parse(data)
		if err != nil {
			return fmt.Errorf("%s: %w", in.name, err)
		}
		carrying, err := signGrant(key, *audience, *life, req)
		if err != nil {
			return err
		}
		if *alone {
			token, _ := carriedBy(carrying)
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s\n", token)
			return err
		}
		text, err := compact(carrying)
		if err != nil {
			return err
		}
		return writeIndented(cmd.OutOrStdout(), text)
	}
	return cmd
}

func signGrant(key grant.SigningKey, audience string, life time.Duration, req proto.Message) (proto.Message, error) {
	switch req := req.(type) {
	case *pb.SelectMemoryRequest:
		return client.SignGrant(key, audience, life, req)
	case *pb.PlanPromptRequest:
		return client.SignGrant(key, audience, life, req)
	}
	return nil, errors.New("there is no such request")
}
