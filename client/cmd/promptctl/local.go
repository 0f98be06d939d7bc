package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"

	"github.com/promptassembly/promptassembly/client"
	"github.com/promptassembly/promptassembly/server"
	"github.com/promptassembly/promptassembly/server/dev"
)

// local is a server on loopback that asks who calls, and two who do.
type local struct {
	harness, agent *client.Client
	end            func()
}

// startLocal starts one with certificates made on the spot. The caller ends it.
func startLocal(ctx context.Context, options []client.Option) (l local, err error) {
	var ends []func()
	l.end = func() {
		for i := len(ends) - 1; i >= 0; i-- {
			ends[i]()
		}
	}
	defer func() {
		if err != nil {
			l.end()
		}
	}()
	folder, err := os.MkdirTemp("", "promptctl-demo-")
	if err != nil {
		return l, err
	}
	ends = append(ends, func() { _ = os.RemoveAll(folder) })
	files, err := dev.Write(folder)
	if err != nil {
		return l, err
	}
	quiet := slog.New(slog.DiscardHandler)
	cfg := files.Access()
	cfg.Logger = quiet
	access, err := server.OpenAccess(ctx, cfg)
	if err != nil {
		return l, err
	}
	ends = append(ends, func() { _ = access.Close() })
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return l, err
	}
	srv := server.New(server.Config{Logger: quiet, Access: access})
	go func() { _ = srv.Serve(listener) }() // ends with Stop; a failure before shows in every call
	ends = append(ends, srv.Stop)

	for _, who := range []struct {
		name  string
		files dev.Identity
		to    **client.Client
	}{{"harness", files.Harness, &l.harness}, {"agent", files.Agent, &l.agent}} {
		*who.to, err = client.Dial(listener.Addr().String(), append(slices.Clip(options),
			client.WithTLSFiles(client.TLSFiles{CA: files.CA, Certificate: who.files.Certificate, Key: who.files.Key}))...)
		if err != nil {
			return l, fmt.Errorf("the %s: %w", who.name, err)
		}
		ends = append(ends, func() { _ = (*who.to).Close() })
	}
	return l, nil
}
