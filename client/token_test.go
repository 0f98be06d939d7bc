package client_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io/fs"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"

	"github.com/promptassembly/promptassembly/client"
	"github.com/promptassembly/promptassembly/client/internal/testca"
	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
)

// bearer answers with what the caller sends as authorization.
func bearer(ctx context.Context, _ int) (*pb.ListTokenizersResponse, error) {
	header, _ := metadata.FromIncomingContext(ctx)
	return good(strings.Join(header.Get("authorization"), " and ")), nil
}

// watched keeps what callers send as authorization when they ask for health.
type watched struct {
	mu   sync.Mutex
	sent []string
}

func (w *watched) intercept(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	if info.FullMethod == healthpb.Health_Watch_FullMethodName {
		header, _ := metadata.FromIncomingContext(stream.Context())
		w.mu.Lock()
		w.sent = append(w.sent, strings.Join(header.Get("authorization"), " and "))
		w.mu.Unlock()
	}
	return next(srv, stream)
}

func (w *watched) all() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string{}, w.sent...)
}

// A token is sent with calls and health watches, over TLS, to loopback and to unix sockets.
func TestTokenFile(t *testing.T) {
	ca := testca.New(t)
	folder := t.TempDir()
	trusted, token := write(t, folder, "ca.pem", ca.PEM()), write(t, folder, "token", []byte("abc.def.ghi\r\n"))
	socket := filepath.Join(folder, "s")
	unix, err := new(net.ListenConfig).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		listener net.Listener
		target   string // empty: the address
		opts     []client.Option
	}{
		"loopback":     {listener: listen(t)},
		"by its name":  {listener: listen(t), target: "localhost"},
		"unix socket":  {listener: unix, target: "unix:" + socket},
		"TLS by files": {listener: listen(t), opts: []client.Option{client.WithTLSFiles(client.TLSFiles{CA: trusted})}},
		"TLS":          {listener: listen(t), opts: []client.Option{client.WithTLS(&tls.Config{RootCAs: ca.Pool()})}},
	} {
		t.Run(name, func(t *testing.T) {
			var health watched
			opts := []grpc.ServerOption{grpc.StreamInterceptor(health.intercept)}
			if test.opts != nil {
				opts = append(opts, grpc.Creds(credentials.NewServerTLSFromCert(new(ca.Certificate(t, "127.0.0.1")))))
			}
			serveFake(t, test.listener, bearer, opts...)
			target := test.target
			switch address := test.listener.Addr().String(); target {
			case "":
				target = address
			case "localhost":
				_, port, _ := net.SplitHostPort(address)
				target = net.JoinHostPort(target, port)
			}
			c := dial(t, []string{target}, append(test.opts, client.WithTokenFile(token))...)
			if answer, err := list(t.Context(), c); err != nil || answer.GetUnicodeVersion() != "Bearer abc.def.ghi" {
				t.Errorf("got %v, %v", answer, err)
			}
			if got := health.all(); len(got) != 1 || got[0] != "Bearer abc.def.ghi" {
				t.Errorf("with the health watch: %q", got)
			}
		})
	}
}

// A token is read again once a second. While the file cannot be used, the one before is, for a minute.
func TestTokenIsReplaced(t *testing.T) {
	_, address := fakeServer(t, bearer)
	folder := t.TempDir()
	path := write(t, folder, "token", []byte("first"))
	// A clock that stands, as a second may pass between two calls.
	now := time.Now()
	c := dial(t, []string{address}, client.WithTokenFile(path), client.WithClock(func() time.Time { return now }))
	expect := func(want string) {
		t.Helper()
		if answer, err := list(t.Context(), c); err != nil || answer.GetUnicodeVersion() != "Bearer "+want {
			t.Fatalf("got %v, %v, want %s", answer, err, want)
		}
	}
	expect("first")
	write(t, folder, "token", []byte("second\n"))
	expect("first")
	now = now.Add(time.Second)
	expect("second")

	write(t, folder, "token", []byte("two words"))
	now = now.Add(time.Second)
	expect("second")
	now = now.Add(time.Minute - 1)
	expect("second")
	now = now.Add(time.Second)
	_, err := list(t.Context(), c)
	failed := failedWith(t, err, codes.Unauthenticated)
	if failed.Attempts != 1 || failed.ReasonName() != "" || !strings.Contains(failed.Error(), path) ||
		strings.Contains(failed.Error(), "words") {
		t.Errorf("got %+v", failed)
	}
	write(t, folder, "token", []byte("third"))
	now = now.Add(time.Second)
	expect("third")
}

// Without a token that can be used a new connection is not waited for in vain: the call says why.
func TestTokenGoneBeforeConnecting(t *testing.T) {
	listener := &cuttable{Listener: listen(t)}
	serveFake(t, listener, bearer)
	path := write(t, t.TempDir(), "token", []byte("first"))
	var clock clock
	c := dial(t, []string{listener.Addr().String()}, client.WithTokenFile(path), client.WithClock(clock.now))
	if _, err := list(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Dir(path), "token", nil)
	clock.advance(time.Second)
	if _, err := list(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	clock.advance(time.Hour)
	listener.cut()
	_, err := list(t.Context(), c)
	if failed := failedWith(t, err, codes.Unauthenticated); !strings.Contains(failed.Error(), "it holds no token") {
		t.Errorf("it says %q", failed)
	}
}

func TestTokenFileThatCannotBeUsed(t *testing.T) {
	folder := t.TempDir()
	for name, test := range map[string]struct{ text, want string }{
		"empty":       {"", "no token"},
		"a line":      {"\r\n", "no token"},
		"two words":   {"Bearer secret", "white space"},
		"two lines":   {"secret\nsecret\n", "white space"},
		"not ASCII":   {"secrét", "not ASCII"},
		"NUL":         {"secret\x00", "white space"},
		"too long":    {strings.Repeat("secret", 3000), "16 KiB"},
		"a byte over": {strings.Repeat("s", 16<<10+1) + "\n", "16 KiB"},
	} {
		path := write(t, folder, "token", []byte(test.text))
		_, err := client.Dial("localhost:1", client.WithTokenFile(path))
		file, ok := errors.AsType[*client.FileError](err)
		if !ok || file.Path != path || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "secr") {
			t.Errorf("%s: got %v, want %q in it", name, err, test.want)
		}
	}
	c, err := client.Dial("localhost:1", client.WithTokenFile(write(t, folder, "token", []byte(strings.Repeat("s", 16<<10)+"\r\n"))))
	if err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
	if _, err := client.DialAll([]string{"localhost:1"}, client.WithTokenFile(filepath.Join(folder, "none"))); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	if _, err := client.Dial("localhost:1", client.WithTokenFile("")); err == nil || !strings.Contains(err.Error(), "empty") {
		t.Errorf("got %v", err)
	}
}

// elsewhere is a connection that seems to lead to another machine.
type elsewhere struct{ net.Conn }

func (elsewhere) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 443} }

// Without TLS no token leaves the machine, whatever the address is written like, and calls say so.
func TestTokenStaysOnTheMachine(t *testing.T) {
	path := write(t, t.TempDir(), "token", []byte("secret"))
	for _, address := range []string{"192.0.2.1:50051", "[2001:db8::1]:50051", "0.0.0.0:50051", "[::ffff:192.0.2.1]:50051"} {
		one, err := client.Dial(address, client.WithTokenFile(path))
		if err != nil {
			t.Fatal(err)
		}
		defer one.Close()
		for _, c := range []*client.Client{one, dial(t, []string{address}, client.WithTokenFile(path)), dial(t, []string{"127.0.0.1:1", address}, client.WithTokenFile(path))} {
			_, err = list(t.Context(), c)
			failed := failedWith(t, err, codes.Unauthenticated)
			if want := "UNAUTHENTICATED: client: a token goes over TLS, to loopback or to a unix socket only, not to " + address; failed.Attempts != 1 || failed.Error() != want {
				t.Errorf("%s: got %+v", address, failed)
			}
		}
	}

	// What a name leads to shows once it is connected.
	var health watched
	listener := listen(t)
	f := serveFake(t, listener, bearer, grpc.StreamInterceptor(health.intercept))
	dialer := grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", listener.Addr().String())
		return elsewhere{conn}, err
	})
	_, err := list(t.Context(), dial(t, []string{"example.org:50051"}, client.WithTokenFile(path), client.WithDialOptions(dialer)))
	if failed := failedWith(t, err, codes.Unauthenticated); failed.Attempts != 1 || !strings.Contains(failed.Error(), "goes over TLS") {
		t.Errorf("got %+v", failed)
	}
	for _, sent := range health.all() {
		if sent != "" {
			t.Errorf("the health watch carried %q", sent)
		}
	}
	if len(f.calls) != 0 {
		t.Error("the call was made")
	}
}
