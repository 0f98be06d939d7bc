package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/promptassembly/promptassembly/server"
)

// flushTimeout is how long the spans that are left may take to be exported at the end.
const flushTimeout = 5 * time.Second

// newTracing returns what makes spans and exports them, as OpenTelemetry's variables in the
// environment say, or nil if they name no endpoint or turn it off. The caller calls flush at the end.
// What it does not look at, the SDK does: the sampler, which follows the caller's decision by default,
// batches, headers, certificates. The error is a usageError.
func newTracing(ctx context.Context, log *slog.Logger) (provider trace.TracerProvider, flush func(), err error) {
	none := func() {}
	protocol, err := tracingProtocol()
	if err != nil {
		return nil, none, usageError{err}
	}
	if protocol == "" {
		return nil, none, nil
	}
	var exporter sdktrace.SpanExporter
	if protocol == "grpc" {
		exporter, err = otlptracegrpc.New(ctx)
	} else {
		exporter, err = otlptracehttp.New(ctx)
	}
	if err != nil {
		return nil, none, usageError{errors.New("cannot export traces as the variables OTEL_EXPORTER_OTLP_* say")} // err quotes them
	}
	about, err := resource.New(ctx, // a later one wins
		resource.WithTelemetrySDK(),
		resource.WithAttributes(attribute.String("service.name", "promptd"), attribute.String("service.version", server.Version())),
		resource.WithFromEnv(),
	)
	if err != nil {
		_ = exporter.Shutdown(ctx)
		return nil, none, usageError{errors.New("OTEL_RESOURCE_ATTRIBUTES must be key=value pairs with commas between")} // err quotes it
	}
	otel.SetTextMapPropagator(propagation.TraceContext{}) // the caller's trace, and no baggage
	sdk := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(about))
	return sdk, func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTimeout)
		defer cancel()
		if err := sdk.Shutdown(ctx); err != nil {
			log.Warn("traces are lost", "error", err)
		}
	}, nil
}

// tracingProtocol returns grpc or http/protobuf, or nothing if there is nothing to export to.
func tracingProtocol() (string, error) {
	const endpointEnv, tracesEndpointEnv = "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
	exporter := os.Getenv("OTEL_TRACES_EXPORTER")
	endpointName := tracesEndpointEnv
	if os.Getenv(tracesEndpointEnv) == "" {
		endpointName = endpointEnv
	}
	endpoint := os.Getenv(endpointName)
	switch {
	case strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true"), exporter == "none":
		return "", nil
	case exporter != "" && exporter != "otlp":
		return "", fmt.Errorf("OTEL_TRACES_EXPORTER is %q: must be otlp or none", exporter)
	case endpoint == "":
		return "", nil
	}

	name := "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"
	if os.Getenv(name) == "" {
		name = "OTEL_EXPORTER_OTLP_PROTOCOL"
	}
	protocol := cmp.Or(os.Getenv(name), "http/protobuf")
	switch protocol {
	case "grpc": // takes whatever gRPC can dial
	case "http/protobuf":
		if u, err := url.Parse(endpoint); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return "", fmt.Errorf("%s is no URL such as http://localhost:4318, as %s needs", endpointName, protocol)
		}
	default:
		return "", fmt.Errorf("%s is %q: must be grpc or http/protobuf", name, protocol)
	}
	return protocol, nil
}
