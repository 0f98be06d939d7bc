// Command promptctl asks a Prompt Assembly service which memories and which segments enter a
// prompt, and shows why. It brings the server along: without an address it calls one in its own
// process.
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
	"time"

	"github.com/spf13/cobra"

	"github.com/promptassembly/promptassembly/server"
)

// Exit statuses, as the help of the root command promises them.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
)

// signalGrace is how long a run may take to end in good order after a signal. A write that nobody
// reads would hold it up for ever.
const signalGrace = time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, func() {
		stop() // a second signal ends the process at once
		time.Sleep(signalGrace)
		os.Exit(exitFailed)
	})
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// errReported is the failure of a run that has already told the user about it.
var errReported = errors.New("already reported")

// usageError is a command line that cannot be carried out as it stands.
type usageError struct{ error }

// run carries out one command line and returns its exit status. When ctx ends it returns soon, but
// may leave a goroutine behind that waits for stdin.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root := newRoot(stdin, stdout, stderr)
	understood := false
	root.PersistentPreRun = func(*cobra.Command, []string) { understood = true }
	root.SetArgs(args)

	cmd, err := root.ExecuteContextC(ctx)
	_, usage := errors.AsType[usageError](err)
	switch {
	case err == nil:
		return exitDone
	case errors.Is(err, errReported), errors.Is(err, syscall.EPIPE):
		return exitFailed
	case understood && !usage:
		fmt.Fprintf(stderr, "promptctl: %s\n", printable(err.Error()))
		return exitFailed
	default:
		fmt.Fprintf(stderr, "promptctl: %s\nSee '%s --help'.\n", printable(err.Error()), cmd.CommandPath())
		return exitUsage
	}
}

func newRoot(stdin io.Reader, stdout, stderr io.Writer) *cobra.Command {
	root := &cobra.Command{
		Use:   "promptctl",
		Short: "Decide what of recalled memory, and of a prompt's other segments, reaches the model",
		Long: `promptctl decides what of recalled memory, and of a prompt's other segments,
reaches the model, and says why.

Without --server it calls a server in its own process, over memory. That server
trusts its caller: a request may assert any scope and any authority. A server
elsewhere asks who calls, and permits what its policy says: --cert and --key, or
--token-file, show it who you are.

Exit status: 0 done, 1 refused or failed, 2 wrong usage.`,
		Example: `  promptctl demo
  promptctl select request.json
  promptctl plan -o table < request.json
  promptctl select --jsonl --server localhost:50051 < requests.jsonl > answers.jsonl
  promptctl demo --server localhost:50051 --ca ca.pem --cert me.pem --key me.key
  promptctl count --tokenizer o200k_base prompt.txt
  promptctl eval --evidence evidence.jsonl requests.jsonl`,
		Version:       server.Version(),
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.SetVersionTemplate("promptctl {{.Version}}\n")
	root.AddCommand(newSelect(), newPlan(), newCount(), newTokenizers(), newDemo(), newEval(), newGrant())
	root.InitDefaultCompletionCmd() // takes the output as it is set now
	root.InitDefaultHelpCmd()
	for _, cmd := range root.Commands() {
		if cmd.Name() == "help" {
			cmd.Args = func(_ *cobra.Command, topic []string) error {
				if found, _, err := root.Find(topic); err != nil || found == root && len(topic) > 0 {
					return fmt.Errorf("there is no command %q", strings.Join(topic, " "))
				}
				return nil
			}
		}
		if !cmd.Runnable() {
			cmd.RunE = root.RunE // or a word too many would print the help as if it were right
		}
	}
	return root
}
