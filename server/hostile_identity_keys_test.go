package server_test

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
	"github.com/promptassembly/promptassembly/server"
)

// hostileEndpoint serves the keys of an issuer, at once or when it is told to.
type hostileEndpoint struct {
	*httptest.Server
	fetches atomic.Int64
	mu      sync.Mutex
	keys    []byte
	hangs   chan struct{} // nil: not
}

// hostileKeys serves over TLS with the keys of the first issuer from an endpoint.
func hostileKeys(t *testing.T) (*hostileServer, *hostileEndpoint) {
	t.Helper()
	f := hostileIssuers(t)
	e := &hostileEndpoint{keys: f.idp.keys()}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e.fetches.Add(1)
		e.mu.Lock()
		hangs := e.hangs
		e.mu.Unlock()
		if hangs != nil {
			select {
			case <-hangs:
			case <-r.Context().Done():
			}
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		_, _ = w.Write(e.keys)
	}))
	t.Cleanup(e.Close)
	f.serve(t, true, strings.Replace(hostilePolicy, `{file: "DIR/idp.jwks"}`, `{url: "`+e.URL+`/jwks"}`, 1), server.Config{})
	if n := e.fetches.Load(); n != 1 {
		t.Fatalf("%d fetches, want one before anybody calls", n)
	}
	return f, e
}

// hang makes the endpoint hang until it is told to go on.
func (e *hostileEndpoint) hang() (goOn func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	hangs := make(chan struct{})
	e.hangs = hangs
	return sync.OnceFunc(func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.hangs = nil
		close(hangs)
	})
}

// unknownKey returns a token of the issuer with a key that there is not.
func (i *hostileIssuer) unknownKey() string {
	return i.token(func(h *hostileToken) {
		id := make([]byte, 16)
		_, _ = rand.Read(id)
		h.header["kid"], h.sign = hex.EncodeToString(id), func([]byte) []byte { return make([]byte, 64) }
	})
}

// flood makes calls with unknown keys, a hundred at a time, and waits until all but some have ended.
func (f *hostileServer) flood(t *testing.T, calls, connections, but int) {
	t.Helper()
	var all sync.WaitGroup
	peers := make([]*peer, connections)
	ended := func(p *peer) (n int) {
		for _, a := range p.answers {
			if a.ended {
				n++
			}
		}
		return n
	}
	for i := range peers {
		p := f.peer(t, nil)
		peers[i] = p
		all.Go(func() {
			for n := range calls / connections {
				p.reading.Lock()
				for !p.ended && n-ended(p) >= 100 {
					p.changed.Wait()
				}
				p.reading.Unlock()
				p.open(true, headersOf(servicePath+"ListTokenizers", hostileBearers(f.idp.unknownKey())...)...)
			}
		})
	}
	all.Wait()
	eventually(t, "the calls are refused", func() bool {
		n := 0
		for _, p := range peers {
			n += p.counted()[codes.Unauthenticated]
		}
		return n >= calls-but
	})
}

// hostileHonest are callers who hold what is believed: a certificate, and a token that was verified.
type hostileHonest struct{ certified, remembered func() error }

func (f *hostileServer) honest(t *testing.T) hostileHonest {
	t.Helper()
	calls := func(conn *grpc.ClientConn, header ...string) func() error {
		ctx := metadata.AppendToOutgoingContext(t.Context(), header...)
		return func() error {
			ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
			defer cancel()
			_, err := pb.NewPromptAssemblyServiceClient(conn).ListTokenizers(ctx, new(pb.ListTokenizersRequest))
			return err
		}
	}
	h := hostileHonest{calls(f.client(t, f.leaf(hostileHarness))), calls(f.client(t, nil), hostileBearers(f.idp.token(nil))...)}
	h.check(t)
	return h
}

func (h hostileHonest) check(t *testing.T) {
	t.Helper()
	for name, call := range map[string]func() error{"a certificate": h.certified, "a remembered token": h.remembered} {
		if err := call(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// during checks, until what happens has ended, and returns how many times.
func (h hostileHonest) during(t *testing.T, happens func()) (times int) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		happens()
	}()
	for {
		h.check(t)
		times++
		select {
		case <-done:
			return times
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// checkUnknown checks that so many calls are counted and logged as of an unknown key.
func (f *hostileServer) checkUnknown(t *testing.T, calls int) {
	t.Helper()
	eventually(t, "the refusals are counted", func() bool {
		return f.value(t, "promptassembly_identity_refusals_total unknown key jwt") == float64(calls)
	})
	eventually(t, "as many are logged", func() bool { // after they are counted
		logged := 0
		for _, line := range f.lines(t) {
			if line["refused_source"] == "jwt" && line["refused_check"] == "unknown key" && line["reason"] == "IDENTITY_INVALID" {
				logged++
			}
		}
		return logged == calls
	})
}

// However many unknown keys are named, there is one fetch for them in 10 s.
func TestHostileUnknownKeys(t *testing.T) {
	const calls = 10_000
	f, e := hostileKeys(t)
	honest := f.honest(t)
	began := time.Now()
	answered := honest.during(t, func() { f.flood(t, calls, 8, 0) })
	most := int64(2 + time.Since(began)/(10*time.Second))
	t.Logf("%d calls in %v cost %d fetches; honest callers were answered %d times", calls, time.Since(began), e.fetches.Load()-1, 2*answered)
	if n := e.fetches.Load(); n > most {
		t.Errorf("%d fetches, want at most %d", n, most)
	}
	f.checkUnknown(t, calls)
	f.isEmpty(t)
}

// While the keys do not come, few of those who ask for them wait, and nobody else.
func TestHostileUnknownKeysWhileKeysHang(t *testing.T) {
	const calls = 10_000
	f, e := hostileKeys(t)
	honest := f.honest(t)
	goOn := e.hang()
	defer goOn()
	began := time.Now()
	answered := honest.during(t, func() { f.flood(t, calls, 8, 64) })
	honest.check(t)
	f.answers(t, f.peer(t, nil), "SCOPE_NOT_PERMITTED", hostileBearers(f.svid.token(func(h *hostileToken) { h.claims["sub"] = hostileAgent }))...)
	most := int64(2 + time.Since(began)/(10*time.Second))
	if n := e.fetches.Load(); n < 2 || n > most {
		t.Errorf("%d fetches, want at most %d", n, most)
	}
	t.Logf("%d calls in %v cost %d fetches; honest callers were answered %d times", calls, time.Since(began), e.fetches.Load()-1, 2*answered)
	goOn()
	f.checkUnknown(t, calls)
	f.isEmpty(t)
}

// A call whose key is new waits for it, holds no room meanwhile, and holds up nobody.
func TestHostileRotationWhileKeysHang(t *testing.T) {
	f, e := hostileKeys(t)
	honest := f.honest(t)
	goOn := e.hang()
	defer goOn()
	next := newHostileIssuer(t, f.idp.claims)
	rotated := strings.ReplaceAll(string(next.keys()), `"ec"`, `"next"`)
	p := f.peer(t, nil)
	stream := p.open(false, headersOf(servicePath+"SelectMemory", hostileBearers(next.token(func(h *hostileToken) {
		h.header["kid"] = "next"
	}))...)...)
	p.data(stream, true, framed(0, hostileClaim(t)))
	eventually(t, "it waits for the keys", func() bool { return e.fetches.Load() == 2 })
	f.isEmpty(t)
	f.flood(t, 200, 1, 64)
	honest.check(t)
	if a := p.answer(stream); a.ended {
		t.Errorf("answered with %+v before the keys came", a)
	}
	e.mu.Lock()
	e.keys = []byte(rotated)
	e.mu.Unlock()
	goOn()
	if a := p.wait(stream); a.code() != codes.OK {
		t.Errorf("answered with %+v, want OK", a)
	}
	if n := e.fetches.Load(); n != 2 {
		t.Errorf("%d fetches, want 2", n)
	}
	// The old key is gone, and with it the tokens that were remembered.
	if err := honest.remembered(); err == nil {
		t.Error("a token of a key that is gone is believed")
	}
	if err := honest.certified(); err != nil {
		t.Error(err)
	}
	f.isEmpty(t)
}
