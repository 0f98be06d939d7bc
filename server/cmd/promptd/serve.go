package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"runtime/debug"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/promptassembly/promptassembly/server"
	"github.com/promptassembly/promptassembly/server/internal/admin"
	"github.com/promptassembly/promptassembly/server/internal/config"
)

// daemon is what serves, and what it serves on.
type daemon struct {
	calls, admin net.Listener // no admin: nil
	callServer   *server.Server
	adminServer  *admin.Server
	drain        config.Drain
	log          *slog.Logger
}

// serve answers calls until ctx is done, then drains. It calls listening with the address before it
// answers the first. What goes wrong once there is a log is in it.
func serve(ctx context.Context, cfg config.Config, settings []config.Setting, stderr io.Writer, listening func(address string)) error {
	tokenizers, err := loadTokenizers(cfg, settings)
	if err != nil {
		return err
	}
	log := newLogger(cfg.Log, stderr)
	setMemory(cfg.Memory)
	tracing, flush, err := newTracing(context.WithoutCancel(ctx), log)
	if err != nil {
		return err
	}
	defer flush()
	metrics := prometheus.NewRegistry()
	metrics.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	access, err := openAccess(ctx, cfg.Access, log, metrics)
	if err != nil {
		log.Error("cannot tell who may call", "error", err)
		return errLogged
	}
	defer func() { _ = access.Close() }()

	d := daemon{drain: cfg.Drain, log: log}
	if d.admin, err = listenUnlessOff(cfg.AdminListen); err != nil {
		log.Error("cannot listen", "key", "admin.listen", "error", err)
		return errLogged
	}
	if d.calls, err = listen(cfg.Listen); err != nil {
		log.Error("cannot listen", "key", "listen", "error", err)
		if d.admin != nil {
			_ = d.admin.Close()
		}
		return errLogged
	}
	d.callServer = server.New(server.Config{
		Logger: log, CallLog: cfg.CallLog, Metrics: metrics, Tracing: tracing, Limits: cfg.Limits, Access: access,
		Tokenizers: tokenizers,
	})
	d.adminServer = admin.New(admin.Config{Health: d.callServer.Health(), Metrics: metrics, Problems: access.Problems, Logger: log})

	log.Info("serving", "address", addressText(d.calls), "admin", addressText(d.admin), "version", server.Version())
	logSettings(log, settings)
	listening(addressText(d.calls))
	return d.run(ctx)
}

// openTimeout bounds the wait for a certificate from a Workload API, and for the keys of issuers.
const openTimeout = time.Minute

// openAccess reads who may call.
func openAccess(ctx context.Context, cfg server.AccessConfig, log *slog.Logger, metrics prometheus.Registerer) (*server.Access, error) {
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	cfg.Logger, cfg.Metrics = log, metrics
	return server.OpenAccess(ctx, cfg)
}

// run serves both listeners until ctx is done or one of them fails. The admin listener answers as
// long as there is a call.
func (d *daemon) run(ctx context.Context) error {
	failed := make(chan error, 2)
	var serving sync.WaitGroup
	defer serving.Wait()
	serving.Go(func() { failed <- d.callServer.Serve(d.calls) })
	if d.admin != nil {
		serving.Go(func() {
			if err := d.adminServer.Serve(d.admin); err != nil {
				failed <- err
			}
		})
	}
	defer d.adminServer.Stop()

	select {
	case err := <-failed:
		d.log.Error("cannot serve", "error", err)
		d.callServer.Stop()
		return errLogged
	case <-ctx.Done():
	}
	d.log.Info("draining", "wait", d.drain.Wait, "timeout", d.drain.Timeout)
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), d.drain.Wait+d.drain.Timeout)
	defer cancel()
	d.callServer.Drain(limit, d.drain.Wait)
	d.log.Info("stopped")
	return nil
}

func listenUnlessOff(address string) (net.Listener, error) {
	if address == "" {
		return nil, nil
	}
	return listen(address)
}

// setMemory tells the garbage collector what the configuration says; a zero is left alone.
func setMemory(cfg config.Memory) {
	if cfg.GCPercent != 0 {
		debug.SetGCPercent(cfg.GCPercent)
	}
	if cfg.Limit != 0 {
		debug.SetMemoryLimit(cfg.Limit)
	}
}

// logSettings logs what is set to something else than its default, but no secret.
func logSettings(log *slog.Logger, settings []config.Setting) {
	var set []any
	for _, s := range settings {
		if s.Origin != config.ByDefault {
			set = append(set, slog.String(s.Name, fmt.Sprintf("%s (%s)", s.Shown(), s.Origin)))
		}
	}
	if set != nil {
		log.Info("configured", set...)
	}
}
