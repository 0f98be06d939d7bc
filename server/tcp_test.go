package server_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/promptassembly/promptassembly/server"
)

// listen serves a server on a loopback port for the length of the test. Its log goes to log.
func listen(t testing.TB, log io.Writer) (s *server.Server, address string) {
	t.Helper()
	return listenWith(t, server.Config{Logger: slog.New(slog.NewTextHandler(log, nil))})
}

// listenWith is listen for a server of any configuration.
func listenWith(t testing.TB, cfg server.Config) (s *server.Server, address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s = server.New(cfg)
	go func() { _ = s.Serve(listener) }()
	t.Cleanup(s.Stop)
	return s, listener.Addr().String()
}

// dial returns a connection with the defaults of gRPC's client.
func dial(t testing.TB, address string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// http2Client speaks HTTP/2 in plaintext, for what gRPC's client does not do.
func http2Client(t testing.TB) *http.Client {
	transport := &http.Transport{Protocols: new(http.Protocols)}
	transport.Protocols.SetUnencryptedHTTP2(true)
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// post makes a call and returns its status code.
func post(t testing.TB, client *http.Client, address, method string, body io.Reader, header http.Header) codes.Code {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+address+servicePath+method, body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header = http.Header{"Content-Type": {"application/grpc"}, "Te": {"trailers"}}
	for name, values := range header {
		req.Header[name] = values
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Error(err)
		return codes.Unknown
	}
	defer func() { _ = resp.Body.Close() }()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil { // the trailers follow it
		t.Error(err)
	}
	code := resp.Trailer.Get("Grpc-Status")
	if code == "" { // an answer without a body
		code = resp.Header.Get("Grpc-Status")
	}
	n, err := strconv.Atoi(code)
	if err != nil {
		t.Errorf("grpc-status %q", code)
	}
	return codes.Code(n)
}

// framed returns a message as a gRPC body holds it.
func framed(compressed byte, message []byte) []byte {
	var b bytes.Buffer
	b.WriteByte(compressed)
	_ = binary.Write(&b, binary.BigEndian, uint32(len(message)))
	b.Write(message)
	return b.Bytes()
}
