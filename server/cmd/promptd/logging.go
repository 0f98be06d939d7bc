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
	otel.SetLogger(logr.FromSlogHandler(handler))
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Warn("tracing failed", "error", err) }))
	return log
}

// grpcLog is what gRPC logs to. It can be set only before gRPC is used at all.
var grpcLog grpcLogger

func init() { grpclog.SetLoggerV2(&grpcLog) }

// grpcLogger is a grpclog.LoggerV2 that hands on to a logger, or to none. What gRPC calls information
// is for debugging.
type grpcLogger struct{ to atomic.Pointer[slog.Logger] }

func (g *grpcLogger) log(level slog.Level, text func() string) {
	if log := g.to.Load(); log != nil && log.Enabled(context.Background(), level) {
		log.Log(context.Background(), level, strings.TrimSuffix(text(), "\n"), "by", "grpc")
	}
}

func (g *grpcLogger) print(level slog.Level, args []any) {
	g.log(level, func() string { return fmt.Sprint(args...) })
}

func (g *grpcLogger) println(level slog.Level, args []any) {
	g.log(level, func() string { return fmt.Sprintln(args...) })
}

func (g *grpcLogger) printf(level slog.Level, format string, args []any) {
	g.log(level, func() string { return fmt.Sprintf(format, args...) })
}

func (g *grpcLogger) Info(args ...any)                    { g.print(slog.LevelDebug, args) }
func (g *grpcLogger) Infoln(args ...any)                  { g.println(slog.LevelDebug, args) }
func (g *grpcLogger) Infof(format string, args ...any)    { g.printf(slog.LevelDebug, format, args) }
func (g *grpcLogger) Warning(args ...any)                 { g.print(slog.LevelWarn, args) }
func (g *grpcLogger) Warningln(args ...any)               { g.println(slog.LevelWarn, args) }
func (g *grpcLogger) Warningf(format string, args ...any) { g.printf(slog.LevelWarn, format, args) }
func (g *grpcLogger) Error(args ...any)                   { g.print(slog.LevelError, args) }
func (g *grpcLogger) Errorln(args ...any)                 { g.println(slog.LevelError, args) }
func (g *grpcLogger) Errorf(format string, args ...any)   { g.printf(slog.LevelError, format, args) }
func (g *grpcLogger) Fatal(args ...any)                   { g.print(slog.LevelError, args) }
func (g *grpcLogger) Fatalln(args ...any)                 { g.println(slog.LevelError, args) }
func (g *grpcLogger) Fatalf(format string, args ...any)   { g.printf(slog.LevelError, format, args) }

// V reports whether gRPC should say more: what it says then is for debugging.
func (g *grpcLogger) V(int) bool {
	log := g.to.Load()
	return log != nil && log.Enabled(context.Background(), slog.LevelDebug)
}
