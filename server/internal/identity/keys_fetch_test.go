package identity_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/promptassembly/promptassembly/server/internal/identity"
)

func TestRotation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &endpoint{answer: keySet(t, jwk(t, rsaKey(), "k1", nil))}
		tokens := fetching(t, e, io.Discard, nil)
		accepted(t, tokens, token(t, lasting()))
		e.set(keySet(t, jwk(t, rsaKey(), "k1", nil), jwk(t, otherRSA(), "k2", nil)), false)
		began := time.Now()
		var waited atomic.Int32
		var wg sync.WaitGroup
		for n := range 50 { // a burst of callers with the new key
			rotated := byOtherRSA(t, "k2", with(lasting(), object{"sub": fmt.Sprint(n)}))
			wg.Go(func() {
				if _, err := tokens.Verify(context.Background(), rotated, func() { waited.Add(1) }); err != nil {
					t.Errorf("a call with the new key: %v", err)
				}
			})
		}
		wg.Wait()
		if e.count() != 2 {
			t.Errorf("%d fetches, want 2", e.count())
		}
		if waited.Load() == 0 || time.Since(began) != 0 {
			t.Errorf("%d calls waited, for %v", waited.Load(), time.Since(began))
		}
	})
}

func TestUnknownKeysAreAskedForOnceInTenSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &endpoint{answer: keySet(t, jwk(t, rsaKey(), "k1", nil))}
		tokens := fetching(t, e, io.Discard, nil)
		unknown := byOtherRSA(t, "k2", lasting())
		for _, step := range []struct {
			pause time.Duration
			want  int
		}{{0, 2}, {0, 2}, {9999 * time.Millisecond, 2}, {time.Millisecond, 3}, {5 * time.Second, 3}, {5 * time.Second, 4}} {
			time.Sleep(step.pause)
			if got := check(t, tokens, unknown); got != "unknown key" {
				t.Errorf("%q", got)
			}
			if e.count() != step.want {
				t.Errorf("%d fetches, want %d", e.count(), step.want)
			}
		}
		// What is refused before its key is looked for asks for nothing.
		time.Sleep(time.Minute)
		for _, hostile := range []string{
			signed(t, "PS256", otherRSA(), `{"alg":"PS256","kid":"k2"}`, toJSON(t, lasting())),
			byOtherRSA(t, "k2", with(lasting(), object{"iss": "https://b.example"})),
			byOtherRSA(t, strings.Repeat("k", 257), lasting()),
			byOtherRSA(t, "k1", lasting()),
		} {
			check(t, tokens, hostile)
		}
		if e.count() != 4 {
			t.Errorf("%d fetches, want 4", e.count())
		}
	})
}

func TestFloodOfUnknownKeysWhileTheEndpointHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &endpoint{answer: keySet(t, jwk(t, rsaKey(), "k1", nil))}
		registry := prometheus.NewRegistry()
		tokens := fetching(t, e, io.Discard, registry)
		e.set("", true)
		began := time.Now()
		var refused, waited atomic.Int32
		var wg sync.WaitGroup
		payload := encode([]byte(toJSON(t, lasting())))
		for n := range 10_000 {
			forged := encode(fmt.Appendf(nil, `{"alg":"RS256","kid":"random%d"}`, n)) + "." + payload + ".AAAA"
			wg.Go(func() {
				_, err := tokens.Verify(context.Background(), forged, func() { waited.Add(1) })
				if invalid, ok := errors.AsType[*identity.InvalidError](err); ok && invalid.Check == "unknown key" {
					refused.Add(1)
				}
			})
		}
		synctest.Wait()
		if refused.Load() != 10_000-64 || waited.Load() != 64 || e.count() != 2 {
			t.Errorf("%d are refused at once, %d wait, %d fetches", refused.Load(), waited.Load(), e.count())
		}
		// Meanwhile others are verified, cold and warm.
		for range 2 {
			accepted(t, tokens, token(t, lasting()))
		}
		if time.Since(began) != 0 {
			t.Errorf("another caller waited %v", time.Since(began))
		}
		wg.Wait()
		if refused.Load() != 10_000 || time.Since(began) != 5*time.Second {
			t.Errorf("%d are refused after %v", refused.Load(), time.Since(began))
		}
		time.Sleep(5*time.Second + time.Millisecond) // the fetch has ended
		if n := counted(t, registry, "failed"); n != 1 {
			t.Errorf("%v fetches are counted as failed", n)
		}
		if tokens.Remembered() != 1 {
			t.Errorf("%d tokens are remembered", tokens.Remembered())
		}
	})
}

// A call stops waiting when its own time is over.
func TestWaitEndsWithTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &endpoint{answer: keySet(t, jwk(t, rsaKey(), "k1", nil))}
		tokens := fetching(t, e, io.Discard, nil)
		e.set("", true)
		began := time.Now()
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if _, err := tokens.Verify(ctx, byOtherRSA(t, "k2", lasting()), nil); err == nil {
			t.Error("a token of an unknown key is accepted")
		}
		if d := time.Since(began); d != time.Second {
			t.Errorf("it waited %v", d)
		}
		tokens.Close() // while the fetch hangs
		if d := time.Since(began); d != time.Second {
			t.Errorf("Close waited, until %v", d)
		}
	})
}

func TestKeyRemovedAtTheURL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &endpoint{answer: keySet(t, jwk(t, rsaKey(), "k1", nil))}
		tokens := fetching(t, e, io.Discard, nil)
		valid := token(t, lasting())
		accepted(t, tokens, valid)
		e.set(keySet(t, jwk(t, otherRSA(), "k2", nil)), false)
		time.Sleep(5*time.Minute - time.Millisecond)
		accepted(t, tokens, valid)
		time.Sleep(2 * time.Millisecond)
		if got := check(t, tokens, valid); got != "unknown key" {
			t.Errorf("a remembered token whose key is removed: %q", got)
		}
		accepted(t, tokens, byOtherRSA(t, "k2", lasting()))
	})
}

func TestKeysGoStale(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &endpoint{answer: keySet(t, jwk(t, rsaKey(), "k1", nil))}
		var log bytes.Buffer
		tokens := fetching(t, e, &log, nil)
		remembered, fresh := token(t, lasting()), token(t, with(lasting(), object{"sub": "other"}))
		accepted(t, tokens, remembered)
		e.set("", false)
		time.Sleep(time.Hour)
		accepted(t, tokens, remembered)
		if p := tokens.Problems(); len(p) != 1 || !strings.Contains(p[0], "https://a.example") ||
			!strings.Contains(p[0], "2000-01-01T00:05:00Z") || strings.Contains(p[0], "refused") || strings.Contains(p[0], "secret") {
			t.Errorf("problems after an hour: %q", p)
		}
		time.Sleep(time.Millisecond)
		for _, valid := range []string{remembered, fresh} {
			if got := check(t, tokens, valid); got != "no keys" {
				t.Errorf("after an hour without a fetch: %q", got)
			}
		}
		if p := tokens.Problems(); len(p) != 1 || !strings.Contains(p[0], "refused") {
			t.Errorf("problems when keys are stale: %q", p)
		}
		// From 0:05 to 1:00, every minute.
		if n := strings.Count(log.String(), "level=ERROR"); n != 56 {
			t.Errorf("%d lines of failures", n)
		}
		if n := e.count(); n < 1+55*6 || n > 1+55*6+3 {
			t.Errorf("%d fetches, want one every 10 s", n)
		}
		if strings.Contains(log.String(), "secret") {
			t.Errorf("the log quotes the answer:\n%.400s", log.String())
		}
		e.set(keySet(t, jwk(t, rsaKey(), "k1", nil)), false)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		accepted(t, tokens, remembered)
		accepted(t, tokens, fresh)
		if p := tokens.Problems(); p != nil {
			t.Errorf("problems with keys: %q", p)
		}
		if n := strings.Count(log.String(), "level=INFO"); n != 1 {
			t.Errorf("%d lines of the recovery", n)
		}
	})
}

// An endpoint that is not there yet holds up Configure for 10 s, and is tried again.
func TestFirstKeysComeLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &endpoint{hangs: true}
		began := time.Now()
		tokens := fetching(t, e, io.Discard, nil)
		if d := time.Since(began); d != 10*time.Second {
			t.Errorf("Configure took %v", d)
		}
		synctest.Wait()
		if p := tokens.Problems(); len(p) != 1 || !strings.Contains(p[0], "no answer in 10 s") {
			t.Errorf("problems: %q", p)
		}
		e.set(keySet(t, jwk(t, rsaKey(), "k1", nil)), false)
		if _, err := tokens.Verify(context.Background(), token(t, lasting()), nil); err != nil { // asks for them
			t.Error(err)
		}
		// An issuer that stays keeps its keys, and is not fetched anew.
		n := e.count()
		if err := tokens.Configure(context.Background(), []identity.Issuer{byURL}); err != nil {
			t.Fatal(err)
		}
		accepted(t, tokens, token(t, lasting()))
		if e.count() != n {
			t.Error("Configure fetches keys that are there")
		}
		if files := tokens.Files(); files != nil {
			t.Errorf("files to watch: %q", files)
		}
	})
}

func TestFetchesAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &endpoint{answer: "{}"}
		registry := prometheus.NewRegistry()
		tokens := fetching(t, e, io.Discard, registry)
		e.set(keySet(t, jwk(t, rsaKey(), "k1", nil)), false)
		time.Sleep(11 * time.Second)
		time.Sleep(5 * time.Minute)
		for result, want := range map[string]float64{"failed": 1, "ok": 2} {
			if got := counted(t, registry, result); got != want {
				t.Errorf("%v fetches are counted as %s, want %v", got, result, want)
			}
		}
		if err := tokens.Configure(context.Background(), nil); err != nil {
			t.Fatal(err)
		}
		if families, err := registry.Gather(); err != nil || len(families) != 0 {
			t.Errorf("of an issuer that is gone there is %v, %v", families, err)
		}
	})
}
