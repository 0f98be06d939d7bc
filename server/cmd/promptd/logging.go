package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync/atomic"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
	"google.golang.org/grpc/grpclog"

	"github.com/promptassembly/promptassembly/server/internal/config"
)

// newLogger returns the logger of the process, which libraries use from then on, too.
func newLogger(cfg config.Log, w io.Writer) *slog.Logger {
	options := &slog.HandlerOptions{Level: cfg.Level}
	var handler slog.Handler = slog.NewTextHandler(w, options)
	if cfg.JSON {
		handler = slog.NewJSONHandler(w, options)
	}
	log := slog.New(handler)
	slog.SetDefault(log)
	grpcLog.to.Store(log)
	otel.SetLogger(logr.FromSlogHandler(bare{handler}))
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Warn("tracing failed", "error", err) }))
	return log
}

// grpcLog is what gRPC logs to. It can be set only before gRPC is used at all.
var grpcLog grpcLogger

func init() { grpclog.SetLoggerV2(&grpcLog) }

// grpcLogger is a grpclog.LoggerV2 that hands on errors to a logger, or to none. What gRPC says below
// that quotes what callers send, credentials as well.
type grpcLogger struct{ to atomic.Pointer[slog.Logger] }

func (g *grpcLogger) log(text string) {
	if log := g.to.Load(); log != nil {
		log.Error(strings.TrimSuffix(text, "\n"), "by", "grpc")
	}
}

func (*grpcLogger) Info(...any)                         {}
func (*grpcLogger) Infoln(...any)                       {}
func (*grpcLogger) Infof(string, ...any)                {}
func (*grpcLogger) Warning(...any)                      {}
func (*grpcLogger) Warningln(...any)                    {}
func (*grpcLogger) Warningf(string, ...any)             {}
func (g *grpcLogger) Error(args ...any)                 { g.log(fmt.Sprint(args...)) }
func (g *grpcLogger) Errorln(args ...any)               { g.log(fmt.Sprintln(args...)) }
func (g *grpcLogger) Errorf(format string, args ...any) { g.log(fmt.Sprintf(format, args...)) }
func (g *grpcLogger) Fatal(args ...any)                 { g.log(fmt.Sprint(args...)) }
func (g *grpcLogger) Fatalln(args ...any)               { g.log(fmt.Sprintln(args...)) }
func (g *grpcLogger) Fatalf(format string, args ...any) { g.log(fmt.Sprintf(format, args...)) }

// V reports whether gRPC should say more.
func (*grpcLogger) V(int) bool { return false }

// bare is a handler without the attributes of records: OpenTelemetry puts into them what it cannot
// read of its variables, which hold credentials.
type bare struct{ slog.Handler }

// Handle implements slog.Handler.
func (b bare) Handle(ctx context.Context, r slog.Record) error {
	return b.Handler.Handle(ctx, slog.NewRecord(r.Time, r.Level, r.Message, r.PC))
}

// WithAttrs implements slog.Handler.
func (b bare) WithAttrs([]slog.Attr) slog.Handler { return b }

// WithGroup implements slog.Handler.
func (b bare) WithGroup(string) slog.Handler { return b }
