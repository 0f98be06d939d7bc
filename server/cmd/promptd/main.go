// Command promptd serves PromptAssemblyService over gRPC.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/promptassembly/promptassembly/server"
	"github.com/promptassembly/promptassembly/server/internal/config"
)

// Exit statuses, as the help of the root command promises them.
const (
	exitDone    = 0
	exitFailure = 1
	exitUsage   = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	os.Exit(run(ctx, os.Args[1:], os.Environ(), os.Stdout, os.Stderr))
}

// errLogged is a failure that the log already tells.
var errLogged = errors.New("logged")

// usageError is a command line or an environment that cannot be carried out as it stands.
type usageError struct{ error }

// errNoPolicy is why promptd does not start without a policy.
var errNoPolicy = errors.New(`--policy is needed: a file that says who may call and assert what
('promptd policy schema'); for a try, 'promptd dev' makes certificates and one`)

// run carries out one command line and returns the exit status. One that serves does so until ctx is
// done, and then drains.
func run(ctx context.Context, args, environ []string, stdout, stderr io.Writer) int {
	root := newRoot(environ, stdout, stderr)
	understood := false
	root.PersistentPreRun = func(*cobra.Command, []string) { understood = true }
	root.SetArgs(args)

	cmd, err := root.ExecuteContextC(ctx)
	_, usage := errors.AsType[usageError](err)
	_, wrong := errors.AsType[*config.Error](err)
	switch {
	case err == nil:
		return exitDone
	case errors.Is(err, errLogged):
		return exitFailure
	case understood && !usage && !wrong:
		fmt.Fprintf(stderr, "promptd: %s\n", printable(err.Error()))
		return exitFailure
	default:
		fmt.Fprintf(stderr, "promptd: %s\nSee '%s --help'.\n", printable(err.Error()), cmd.CommandPath())
		return exitUsage
	}
}

func newRoot(environ []string, stdout, stderr io.Writer) *cobra.Command {
	root := &cobra.Command{
		Use:   "promptd",
		Short: "Serve Prompt Assembly over gRPC",
		Long: `promptd serves Prompt Assembly over gRPC, until SIGTERM or SIGINT. Then it drains:
it is not ready any more, goes on for --drain-wait, refuses new calls and lets
those in flight end within --drain-timeout. A second signal ends it at once.

What a flag sets, an environment variable or a YAML file can set, too; flags win
over the environment, and that over the file. For --limits-in-flight-bytes these
are PROMPTD_LIMITS_IN_FLIGHT_BYTES and 'limits: {in_flight_bytes: …}'.
GOGC and GOMEMLIMIT win over --memory-gc-percent and --memory-limit.
'promptd config show' tells what is in force, and why.

Traces are exported where OTEL_EXPORTER_OTLP_ENDPOINT says, as OpenTelemetry's
other variables say.

Exit status: 0 done, 1 failed, 2 wrong usage or configuration.`,
		Example: `  promptd dev
  promptd --config /etc/promptd.yaml
  promptd --policy /etc/promptd/policy.yaml --listen unix:/run/promptd/promptd.sock --admin-listen :50052
  promptd config show --config /etc/promptd.yaml`,
		Version:           server.Version(),
		Args:              noArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		SilenceErrors:     true,
		SilenceUsage:      true,
	}
	given := addFlags(root)
	root.RunE = func(cmd *cobra.Command, _ []string) error {
		cfg, settings, err := config.Load(config.Sources{Flags: given, Environ: environ})
		if err != nil {
			return err
		}
		if cfg.Access.Policy == "" {
			return usageError{errNoPolicy}
		}
		return serve(cmd.Context(), cfg, settings, stderr, func(string) {})
	}
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.SetVersionTemplate("promptd {{.Version}}\n")
	root.AddCommand(newConfig(environ), newPolicy(), newDev(environ, stderr))
	root.InitDefaultCompletionCmd() // takes the output as it is set now
	root.InitDefaultHelpCmd()
	for _, cmd := range root.Commands() {
		if !cmd.Runnable() { // or a word too many would print the help as if it were right
			cmd.Args = noArgs
			cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		}
	}
	return root
}

func noArgs(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("takes no arguments, got %q", args[0])
	}
	return nil
}

// printable makes s safe for a terminal: what is no printable character, plain space or line end
// becomes U+FFFD, so no escape sequence gets through.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) || r == '\n' {
			return r
		}
		return utf8.RuneError
	}, s)
}
