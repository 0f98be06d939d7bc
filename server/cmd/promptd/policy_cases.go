package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/promptassembly/promptassembly/server/internal/policy"
)

func newPolicyTest() *cobra.Command {
	return &cobra.Command{
		Use:   "test FILE CASES",
		Short: "Try a table of who may what",
		Long: `Try a table of who may what, a YAML file of 'cases: [...]', under a policy file. Keys
of a case, of which the first, the second and the last must be there:
  name         what it is about; each stands once
  identity     who calls, see below
  relay        who carries a signed grant of identity, which is then grant:ISSUER
  claims       what the token of who calls, or carries the grant, says, such as
               {/tenant: acme}: those that the policy lists for the token's issuer
  call         select_memory or plan_prompt; by default select_memory if there is a
               scope and neither required nor blank
  scope        the scope that is asked for; without one, a prompt without memory
  authorities  those of the candidates, in order
  policy       min_score, top_k, max_chars and max_tokens of the request, the budgets
               also 'unlimited'; what is not there takes the request's default
  required     kinds of the required segments that have text
  blank        kinds of the required segments that have none
  expect       ok, or the reason of the refusal: GRANT_INVALID (the relay may not
               carry it), SCOPE_NOT_PERMITTED, AUTHORITY_NOT_PERMITTED,
               REQUIRED_NOT_PERMITTED, POLICY_NOT_PERMITTED or
               MANDATORY_SEGMENT_MISSING; of several, the first in this order

` + identityHelp + `

Exit status: 0 every case is as expected, 1 one is not, or a file is wrong, 2 a file
cannot be read.`,
		Args: files("FILE", "CASES"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return testPolicy(cmd, args[0], args[1])
		},
	}
}

func testPolicy(cmd *cobra.Command, path, casesPath string) error {
	out := cmd.OutOrStdout()
	data, err := readYAML(casesPath) // what cannot be read comes before what is wrong
	if err != nil {
		return err
	}
	p, err := readPolicy(out, path)
	if err != nil {
		return err
	}
	cases, err := p.ParseCases(data)
	if err := told(out, casesPath, err); err != nil {
		return err
	}
	failed := 0
	for _, c := range cases {
		rights, denial, passed := c.Run(p)
		if passed {
			continue
		}
		failed++
		by := "no entry names " + policy.FormatIdentity(c.Caller)
		if rights != nil {
			by = fmt.Sprintf("by entry %s, %s:%d", rights.Rule(), path, rights.Line())
		}
		fmt.Fprint(out, printable(fmt.Sprintf("%s:%d: %s: expected %s, got %s (%s)\n", casesPath, c.Line, c.Name, c.Expected(), denial, by)))
	}
	fmt.Fprintf(out, "%s: %s, %d failed\n", printable(casesPath), count(len(cases), "case", "cases"), failed)
	if failed > 0 {
		return errLogged
	}
	return nil
}
