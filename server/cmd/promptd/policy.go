package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/promptassembly/promptassembly/server/internal/policy"
	"github.com/promptassembly/promptassembly/server/internal/yamlfile"
)

// identityHelp says how an identity is written on a command line and in a table of cases.
const identityHelp = `An identity is written as its source, a colon and its SPIFFE ID; or, without one,
as its source, a colon, the token's issuer or the certificate's trust domain, one
space and the name:
  mtls:spiffe://example.org/ns/prod/sa/harness
  xfcc:spiffe://example.org/ns/prod/sa/harness
  jwt:spiffe://example.org/ns/prod/sa/harness      (a JWT-SVID)
  "jwt:https://idp.example.org harness"
  "mtls:corp harness.example.org"                  (a DNS name or an e-mail address)
  grant:https://harness.example.org                (who signed a grant)`

func newPolicy() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "policy",
		Short: "Look at a policy file: who may assert what",
		Long: `Look at a policy file, which says who issues tokens and grants, which proxies
are believed, and which caller may assert what, for which scopes. 'promptd policy schema' prints
its JSON Schema, which describes every key.`,
	}
	cmd.AddCommand(newPolicyCheck(), newPolicyTest(), newPolicyExplain(), newPolicySchema())
	return cmd
}

func newPolicyCheck() *cobra.Command {
	return &cobra.Command{
		Use:   "check FILE",
		Short: "Say everything that is wrong with a policy file",
		Long: `Say everything that is wrong with a policy file, as FILE:LINE: and what is allowed.
What can never be satisfied, or never matches, is wrong, too. The files that it
names are not read.

Exit status: 0 the file is right, 1 it is wrong, 2 it cannot be read.`,
		Args: files("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			out := cmd.OutOrStdout()
			p, err := readPolicy(out, args[0])
			if err != nil {
				return err
			}
			fmt.Fprintf(out, "%s: ok, %s, %s, %s, %s\n", printable(args[0]),
				count(p.Callers(), "caller", "callers"), count(len(p.Issuers()), "issuer", "issuers"), count(len(p.Proxies()), "proxy", "proxies"),
				count(len(p.Grants()), "grant issuer", "grant issuers"))
			return nil
		},
	}
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

func newPolicySchema() *cobra.Command {
	return &cobra.Command{
		Use:               "schema",
		Short:             "Print the JSON Schema of policy files",
		Long:              "Print the JSON Schema (draft 2020-12) of policy files, for editors and other tools.",
		Args:              noArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := io.WriteString(cmd.OutOrStdout(), policy.Schema)
			return err
		},
	}
}

// files wants one argument for each of the names.
func files(names ...string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != len(names) {
			return fmt.Errorf("takes %s, got %d", strings.Join(names, " and "), len(args))
		}
		return nil
	}
}

// readPolicy reads the policy file at path. What is wrong with it is written to out.
func readPolicy(out io.Writer, path string) (*policy.Policy, error) {
	data, err := readYAML(path)
	if err != nil {
		return nil, err
	}
	p, err := policy.Parse(data)
	return p, told(out, path, err)
}

// readYAML reads a file that is an argument.
func readYAML(path string) ([]byte, error) {
	data, err := yamlfile.Read(path)
	if err != nil {
		return nil, usageError{err}
	}
	return data, nil
}

// told writes what is wrong with the file at path, a line for each, and returns errLogged then.
func told(out io.Writer, path string, err error) error {
	wrong, ok := errors.AsType[*policy.Error](err)
	if !ok {
		return err
	}
	for _, fault := range wrong.Faults {
		at := path
		if fault.Line > 0 {
			at = fmt.Sprintf("%s:%d", path, fault.Line)
		}
		fmt.Fprintf(out, "%s: %s\n", printable(at), printable(fault.Problem))
	}
	return errLogged
}
