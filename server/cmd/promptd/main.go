// Command promptd serves PromptAssemblyService over gRPC.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/promptassembly/promptassembly/server"
)

// The exit statuses besides success.
const (
	exitFailure = 1
	exitUsage   = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run serves until ctx is done and then drains. It returns the exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("promptd", flag.ContinueOnError)
	flags.SetOutput(stderr)
	listen := flags.String("listen", "127.0.0.1:50051", "loopback `address` to serve gRPC on, in plaintext; port 0 takes a free one")
	drain := flags.Duration("drain-timeout", 20*time.Second, "how long calls in flight may take after SIGTERM or SIGINT")
	version := flags.Bool("version", false, "print the version and exit")
	flags.Usage = func() {} // an error is enough said; help goes to stdout
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(stdout, "promptd serves the Prompt Assembly gRPC service.\n\nUsage:\n  promptd [flags]\n\nFlags:\n")
		flags.SetOutput(stdout)
		flags.PrintDefaults()
		return 0
	case err != nil:
		fmt.Fprintln(stderr, "See promptd --help.")
		return exitUsage
	case flags.NArg() > 0:
		fmt.Fprintf(stderr, "promptd: takes no arguments, got %q; see promptd --help\n", flags.Arg(0))
		return exitUsage
	case *version:
		fmt.Fprintln(stdout, "promptd", server.Version())
		return 0
	}

	if *drain < 0 {
		fmt.Fprintf(stderr, "promptd: --drain-timeout must not be negative, got %s; see promptd --help\n", *drain)
		return exitUsage
	}
	log := slog.New(slog.NewTextHandler(stderr, nil))
	if err := loopback(*listen); err != nil {
		log.Error("cannot listen", "error", err)
		return exitUsage
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", *listen)
	if err != nil {
		log.Error("cannot listen", "error", err)
		return exitFailure
	}
	if err := serve(ctx, server.New(server.Config{Logger: log}), listener, *drain, log); err != nil {
		log.Error("cannot serve", "error", err)
		return exitFailure
	}
	return 0
}

// loopback returns an error unless the address is a loopback one: the server believes whatever a
// caller asserts, so only callers on this machine may reach it.
func loopback(address string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("%q is not a loopback address: callers are not authenticated, and whoever reaches the port may assert any authority", host)
	}
	return nil
}

// serve answers calls until ctx is done, then lets those in flight end, but for no longer than the
// drain timeout.
func serve(ctx context.Context, s *server.Server, listener net.Listener, drain time.Duration, log *slog.Logger) error {
	failed := make(chan error, 1)
	go func() { failed <- s.Serve(listener) }()
	log.Info("serving", "address", listener.Addr().String(), "version", server.Version())

	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	log.Info("draining", "timeout", drain)
	limit, cancel := context.WithTimeout(context.Background(), drain)
	defer cancel()
	s.Drain(limit, 0)
	log.Info("stopped")
	return nil
}
