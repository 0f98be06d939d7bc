package server_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
	"github.com/promptassembly/promptassembly/server"
)

// What callers write into headers, and call methods, shows nowhere.
func TestHeadersAreHidden(t *testing.T) {
	w := &watch{observed: observe(t, server.Config{}, true)}
	p := dialPeer(t, w.address)
	message := framed(0, marshal(t, &pb.SelectMemoryRequest{UserScope: "u"}))
	for name, headers := range map[string][]string{
		"metadata":      headersOf(servicePath+"SelectMemory", "canary", canary, "x-bin", "Y2FuYXJ5LTdmM2E"),
		"authorization": headersOf(servicePath+"SelectMemory", "authorization", "Bearer "+canary, "cookie", canary),
		"agent":         headersOf(servicePath+"SelectMemory", "user-agent", canary, "grpc-accept-encoding", canary),
		"trace": headersOf(servicePath+"SelectMemory", "traceparent", canary, "baggage", "k="+canary,
			"tracestate", "k="+canary),
		"content type":   replace(":authority", canary, replace("content-type", "application/grpc+"+canary)),
		"method":         headersOf(servicePath + canary),
		"service":        headersOf("/" + canary + "/" + canary),
		"method of none": headersOf("//" + canary),
	} {
		t.Run(name, func(t *testing.T) {
			w.answers(t, p, headers, message)
		})
	}
	t.Run("compression", func(t *testing.T) {
		a := p.wait(p.open(true, headersOf(servicePath+"SelectMemory", "grpc-encoding", canary)...))
		// gRPC's own message quotes the header, to the caller that sent it.
		if want := fmt.Sprintf("grpc: Decompressor is not installed for grpc-encoding %q", canary); a.message() != want {
			t.Errorf("%q, want %q", a.message(), want)
		}
		w.hides(t, nil, nil)
	})
	w.isEmpty(t)
}

// What never becomes a call is answered by gRPC with its own messages, which quote headers to the
// caller that sent them. It is neither counted nor logged, and has no span.
func TestHeadersOfNoCallAreHidden(t *testing.T) {
	w := &watch{observed: observe(t, server.Config{}, true)}
	p := dialPeer(t, w.address)
	for want, headers := range map[string][]string{
		fmt.Sprintf("malformed method name: %q", canary):                                         headersOf(canary),
		fmt.Sprintf("malformed method name: %q", "/"+canary):                                     headersOf("/" + canary),
		fmt.Sprintf("invalid gRPC request content-type %q", canary):                              replace("content-type", canary),
		fmt.Sprintf("malformed grpc-timeout: transport: timeout string is too long: %q", canary): headersOf(servicePath, "grpc-timeout", canary),
		fmt.Sprintf("Received a HEADERS frame with :method %q which should be POST", canary):     replace(":method", canary),
	} {
		if a := p.wait(p.open(true, headers...)); a.message() != want {
			t.Errorf("%q, want %q", a.message(), want)
		}
	}
	if lines, spans := len(w.observed.lines(t)), len(w.observed.spans.Started()); lines+spans > 0 {
		t.Errorf("%d lines and %d spans, want none", lines, spans)
	}
	w.hiddenInMetrics(t)
	w.isAlive(t)
}

// answers makes a call and checks what is to be seen of it.
func (w *watch) answers(t *testing.T, p *peer, headers []string, message []byte) {
	t.Helper()
	stream := p.open(false, headers...)
	p.data(stream, true, message)
	a := p.wait(stream)
	if a.code() != codes.OK && a.code() != codes.Unimplemented || a.header["grpc-status-details-bin"] != "" {
		t.Errorf("answered with %v", a.header)
	}
	w.hides(t, status.Error(a.code(), a.message()), nil)
}

// message returns the message of a status.
func (a answer) message() string {
	message, _ := url.PathUnescape(a.header["grpc-message"])
	return message
}

// replace returns the headers of a call, the given or usual, with another value of one.
func replace(name, value string, headers ...[]string) []string {
	replaced := headersOf(servicePath + "SelectMemory")
	if len(headers) > 0 {
		replaced = headers[0]
	}
	for i := 0; i < len(replaced); i += 2 {
		if strings.EqualFold(replaced[i], name) {
			replaced[i+1] = value
		}
	}
	return replaced
}
