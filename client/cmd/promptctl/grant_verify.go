package main

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
	"github.com/promptassembly/promptassembly/server/grant"
)

const grantInput = `FILE, or standard input, holds the token by itself, or the request that carries it.`

func newGrantVerify() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "verify --keys FILE --issuer NAME --audience NAME [FILE|-]",
		Short: "Check a signed grant as a service would",
		Long: `Checks a signed grant as a service would, and prints the Grant in JSON (protojson);
or says which check failed, and ends with status 1. Who carries it and the rules of
the request within are for the service to check, and the keys should be public ones
for signatures, each with an ID of its own.
` + grantInput,
		Example: `  promptctl grant verify --keys grant-keys.jwks --issuer https://harness.example.org \
      --audience prompt-assembly carried.json`,
	}
	flags := cmd.Flags()
	keysFile := flags.String("keys", "", "`file` of the issuer's public keys, a JSON Web Key Set")
	issuer := flags.String("issuer", "", "`name` of the issuer whose keys they are")
	audience := flags.String("audience", "", "`name` of the service")
	queryID := flags.String("query-id", "", "`id` of the query that it has to be for (default: that of the request that carries it, or any)")
	at := flags.String("at", "", "`time` at which it has to hold, such as 2026-12-01T09:00:00Z (default: now)")
	of := rpcFlag(cmd)
	for _, name := range []string{"issuer", "audience", "query-id", "at"} {
		noFiles(cmd, name)
	}
	cmd.Args = cobra.MaximumNArgs(1)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		for _, name := range []string{"keys", "issuer", "audience"} {
			if cmd.Flag(name).Value.String() == "" {
				return usageError{fmt.Errorf("--%s is missing", name)}
			}
		}
		now := time.Now()
		if *at != "" {
			var err error
			if now, err = time.Parse(time.RFC3339, *at); err != nil {
				return usageError{fmt.Errorf("--at %q: not a time of RFC 3339", *at)}
			}
		}
		in, err := openInput(cmd, args)
		if err != nil {
			return err
		}
		defer in.Close()
		keys, err := readGrantKeys(*keysFile)
		if err != nil {
			return usageError{err}
		}
		c, err := readCarried(cmd.Context(), in, rpcOf(of))
		if err != nil {
			return fmt.Errorf("%s: %w", in.name, err)
		}
		if *queryID != "" {
			c.queryID = *queryID
		}
		payload, err := verifyGrant(c, keys, *issuer, *audience, of.value == "plan", now)
		if err != nil {
			return err
		}
		return printGrant(cmd.OutOrStdout(), payload)
	}
	return cmd
}

// verifyGrant returns the payload of a token that holds.
func verifyGrant(c carried, keys jose.JSONWebKeySet, issuer, audience string, plan bool, now time.Time) ([]byte, error) {
	signed, err := grant.Parse(c.token)
	if err != nil {
		return nil, err
	}
	found := keys.Key(signed.KeyID)
	if signed.Issuer != issuer || len(found) != 1 {
		return nil, &grant.InvalidError{Check: grant.Key}
	}
	payload, err := signed.Verify(found[0].Public().Key)
	if err != nil {
		return nil, err
	}
	contents, err := grant.Open(payload)
	if err != nil {
		return nil, err
	}
	if contents.Plan != plan {
		return nil, &grant.InvalidError{Check: grant.Payload}
	}
	if c.queryID == "" && !c.byRequest {
		c.queryID = contents.QueryID
	}
	return payload, contents.Holds([]string{audience}, now, c.queryID)
}

func newGrantShow() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show [FILE|-]",
		Short: "Print what a signed grant says, without believing it",
		Long: `Prints what a signed grant says, in JSON, without checking who signed it: whose it
is, and what is granted. 'promptctl grant verify' checks it.
` + grantInput,
		Example: `  promptctl grant show carried.json | jq .grant.expireTime`,
	}
	cmd.Args = cobra.MaximumNArgs(1)
	of := rpcFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		in, err := openInput(cmd, args)
		if err != nil {
			return err
		}
		defer in.Close()
		c, err := readCarried(cmd.Context(), in, rpcOf(of))
		if err != nil {
			return fmt.Errorf("%s: %w", in.name, err)
		}
		signed, err := grant.Parse(c.token)
		if err != nil {
			return err
		}
		g := new(pb.Grant)
		if proto.Unmarshal(signed.Unverified(), g) != nil {
			return errors.New("what was signed is no Grant")
		}
		text, err := compact(g)
		if err != nil {
			return err
		}
		header, err := encodeJSON(map[string]string{"alg": signed.Algorithm, "kid": signed.KeyID, "typ": grant.Type, "iss": signed.Issuer})
		if err != nil {
			return err
		}
		return writeIndented(cmd.OutOrStdout(), fmt.Appendf(nil, `{"verified":false,"header":%s,"grant":%s}`, header, text))
	}
	return cmd
}

// printGrant prints a Grant that was serialised.
func printGrant(w io.Writer, payload []byte) error {
	g := new(pb.Grant)
	if err := proto.Unmarshal(payload, g); err != nil {
		return &grant.InvalidError{Check: grant.Payload}
	}
	text, err := compact(g)
	if err != nil {
		return err
	}
	return writeIndented(w, text)
}
