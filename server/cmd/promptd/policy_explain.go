package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/promptassembly/promptassembly/server/internal/policy"
)

func newPolicyExplain() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "explain FILE --identity IDENTITY",
		Short: "Say what a caller may, and which line of a policy file says so",
		Long: `Say what a caller may, and which line of a policy file says so: for one scope, or
for all that its entry has.

` + identityHelp + `

Exit status: 0 told, 1 the file is wrong, 2 wrong usage, or it cannot be read.`,
		Example: `  promptd policy explain policy.yaml --identity mtls:spiffe://example.org/ns/prod/sa/harness --scope user:mei
  promptd policy explain policy.yaml --identity "jwt:https://idp.example.org agent" --claim /tenant=acme`,
		Args: files("FILE"),
	}
	flags := cmd.Flags()
	who := flags.String("identity", "", "who calls, see above")
	claims := flags.StringArray("claim", nil, "what its token says, as POINTER=VALUE, of what the policy lists for the issuer; may stand several times")
	scope := flags.String("scope", "", "the scope that it asks for (default all)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if *who == "" {
			return usageError{errors.New("--identity is missing")}
		}
		caller, err := policy.ParseIdentity(*who)
		if err != nil {
			return usageError{fmt.Errorf("--identity %q: %w", *who, err)}
		}
		out := cmd.OutOrStdout()
		p, err := readPolicy(out, args[0])
		if err != nil {
			return err
		}
		for _, claim := range *claims {
			pointer, value, ok := strings.Cut(claim, "=")
			if !ok {
				return usageError{fmt.Errorf("--claim %q: must be POINTER=VALUE, such as /tenant=acme", claim)}
			}
			if err := p.Claim(caller, pointer, value); err != nil {
				return usageError{fmt.Errorf("--claim: %w", err)}
			}
		}
		var text strings.Builder
		if err := p.Explain(&text, caller, *scope); err != nil {
			return err
		}
		fmt.Fprint(out, printable(text.String()))
		return nil
	}
	return cmd
}
