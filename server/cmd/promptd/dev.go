package main

import (
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/promptassembly/promptassembly/server"
	"github.com/promptassembly/promptassembly/server/dev"
	"github.com/promptassembly/promptassembly/server/internal/config"
)

func newDev(environ []string, stderr io.Writer) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Serve on this machine with certificates made on the spot",
		Long: `Serve on a loopback address, with certificates and a policy that are made on the
spot and written to a folder: an authority, a certificate for this server, one for
a harness, which may assert everything, and one for a plain agent, which may assert
nothing, but carry what the harness has signed. It prints the commands to use them.

It is promptd in all else: the same flags, variables and file, but for --policy
and --tls-…`,
		Example: `  promptd dev
  promptd dev --dir ~/.promptd-dev --listen 127.0.0.1:0`,
		Args:              noArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	given := addFlags(cmd)
	folder := cmd.Flags().String("dir", "", "folder to write to, which is made if there is none; what an earlier run wrote is replaced (default: a new one for temporary files, removed at the end)")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		for key := range devFlags(nil, server.AccessConfig{}) {
			if _, ok := given[key]; ok {
				return usageError{fmt.Errorf("'promptd dev' says itself who may call: %s must not be set", key)}
			}
		}
		at := *folder
		if at == "" {
			if cmd.Flags().Changed("dir") {
				return usageError{fmt.Errorf("--dir names no folder")}
			}
			made, err := os.MkdirTemp("", "promptd-dev-")
			if err != nil {
				return err
			}
			defer func() { _ = os.RemoveAll(made) }()
			at = made
		}
		files, err := dev.Write(at)
		if err != nil {
			return err
		}
		cfg, settings, err := config.Load(config.Sources{Flags: devFlags(given, files.Access()), Environ: environ})
		if err != nil {
			return err
		}
		if !config.Local(cfg.Listen) {
			return usageError{fmt.Errorf("--listen %s: 'promptd dev' serves loopback addresses and unix sockets only", cfg.Listen)}
		}
		return serve(cmd.Context(), cfg, settings, stderr, func(address string) { printCommands(cmd.OutOrStdout(), address, files) })
	}
	return cmd
}

// devFlags returns the flags with those that say who may call.
func devFlags(given map[string]string, access server.AccessConfig) map[string]string {
	flags := map[string]string{
		"policy":            access.Policy,
		"tls.certificate":   access.TLS.Certificate,
		"tls.key":           access.TLS.Key,
		"tls.client_ca":     access.TLS.ClientCA,
		"tls.trust_domain":  access.TLS.TrustDomain,
		"tls.client_name":   "spiffe",
		"tls.workload_api":  "",
		"tls.shortest_life": "1h",
	}
	maps.Copy(flags, given) // which has none of these
	return flags
}

// printCommands prints how to call the server as the harness, and as the agent.
func printCommands(w io.Writer, address string, files dev.Files) {
	call := func(who dev.Identity, request string) string {
		return fmt.Sprintf("promptctl select -o table --server %s --ca %s \\\n    --cert %s --key %s \\\n    %s",
			quote(address), quote(files.CA), quote(who.Certificate), quote(who.Key), request)
	}
	sign := fmt.Sprintf("promptctl grant sign --key %s \\\n    --issuer %s --audience %s %s", quote(files.GrantKey),
		dev.GrantIssuer, dev.GrantAudience, quote(files.Request))
	fmt.Fprintf(w, `promptd dev serves %s, with the files in %s.

A harness may assert what the user said for the current turn:

  %s

An agent may not, and the same request is refused (AUTHORITY_NOT_PERMITTED):

  %s

But an agent may carry what the harness has signed, and gets the harness's answer:

  %s |
    %s

Who may assert what is in %s; a change is in force at once.
`, address, filepath.Dir(files.CA), call(files.Harness, quote(files.Request)), call(files.Agent, quote(files.Request)),
		sign, call(files.Agent, "-"), files.Policy)
}

// quote returns text as a word of a POSIX shell.
func quote(text string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-:[]"
	if text != "" && strings.Trim(text, plain) == "" {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
