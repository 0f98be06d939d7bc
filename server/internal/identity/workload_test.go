package identity_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/promptassembly/promptassembly/server/internal/identity"
	"github.com/promptassembly/promptassembly/server/internal/testca"
)

func workloadAPI(t *testing.T) *testca.WorkloadAPI {
	t.Helper()
	dir, err := os.MkdirTemp("", "socket") // short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return testca.ServeWorkloadAPI(t, filepath.Join(dir, "s"))
}

func openWorkload(t *testing.T, cfg identity.WorkloadConfig) *identity.Certificates {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cfg.Log = slog.New(slog.DiscardHandler)
	certificates, err := identity.OpenWorkload(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := certificates.Close(); err != nil {
			t.Error(err)
		}
	})
	return certificates
}

var own = testca.Spec{URIs: []string{"spiffe://example.org/prompt-assembly"}}

func TestWorkloadRotates(t *testing.T) {
	first, second, foreign := testca.New(t, "example.org"), testca.New(t, "example.org"), testca.New(t, "example.com")
	api := workloadAPI(t)
	api.Rotate(first.Issue(own), first, foreign)
	var told reports
	certificates := openWorkload(t, identity.WorkloadConfig{Address: api.Address(), Failed: told.add})
	client := func(ca *testca.CA, id string) *identity.Peer {
		return connect(t, certificates, first, ca.Issue(testca.Spec{URIs: []string{id}}))
	}
	old := client(first, harnessID)
	expectCheck(t, old, "")
	federated := client(foreign, "spiffe://example.com/ns/prod/sa/harness")
	if got, caller := checkPeer(t, federated, time.Now()); got != "" || caller.Issuer != "example.com" {
		t.Errorf("got %q of %q, want none of example.com", got, caller.Issuer)
	}
	expectCheck(t, client(foreign, harnessID), "not trusted") // each vouches for its own
	expectCheck(t, client(first, "spiffe://example.net/a"), "trust domain")

	before, _ := old.Caller(time.Now())
	renewed := first.Issue(own)
	api.Rotate(renewed, first, foreign)
	if err := told.take(t, 1); err != nil {
		t.Fatal(err)
	}
	if !served(t, certificates, first).TLS.Leaf.Equal(renewed.TLS.Leaf) {
		t.Error("the server shows the certificate before")
	}
	if after, _ := old.Caller(time.Now()); after != before {
		t.Error("the same roots verified the same certificate twice")
	}

	api.Rotate(second.Issue(own), second)
	if err := told.take(t, 2); err != nil {
		t.Fatal(err)
	}
	expectCheck(t, old, "not trusted")
	expectCheck(t, federated, "trust domain")
}

func TestWorkloadAPIIsAwayForAWhile(t *testing.T) {
	ca := testca.New(t, "example.org")
	api := workloadAPI(t)
	api.Rotate(ca.Issue(own), ca)
	var told reports
	certificates := openWorkload(t, identity.WorkloadConfig{Address: api.Address(), Failed: told.add})
	peer := connect(t, certificates, ca, ca.Issue(testca.Spec{URIs: []string{harnessID}}))
	api.Stop()
	eventually(t, "the failure is reported", func() bool {
		told.mu.Lock()
		defer told.mu.Unlock()
		return len(told.all) > 0 && told.all[0] != nil
	})
	expectCheck(t, peer, "")
	renewed := ca.Issue(own)
	api.Rotate(renewed, ca)
	api.Start()
	eventually(t, "the success is reported", func() bool {
		told.mu.Lock()
		defer told.mu.Unlock()
		return told.all[len(told.all)-1] == nil
	})
	if !served(t, certificates, ca).TLS.Leaf.Equal(renewed.TLS.Leaf) {
		t.Error("the server shows the certificate before")
	}
}

func TestWorkloadIsWaitedFor(t *testing.T) {
	ca := testca.New(t, "example.org")
	api := workloadAPI(t)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err := identity.OpenWorkload(ctx, identity.WorkloadConfig{Address: api.Address(), Log: slog.New(slog.DiscardHandler)})
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "no identity issued") {
		t.Errorf("got %v, want that the time is over and why", err)
	}
	timer := time.AfterFunc(100*time.Millisecond, func() { api.Rotate(ca.Issue(own), ca) })
	defer timer.Stop()
	certificates := openWorkload(t, identity.WorkloadConfig{Address: api.Address(), ShortestLife: 3 * time.Hour})
	expectCheck(t, connect(t, certificates, ca, ca.Issue(testca.Spec{URIs: []string{harnessID}})), "life too short")
}

func TestWorkloadAddress(t *testing.T) {
	if _, err := identity.OpenWorkload(t.Context(), identity.WorkloadConfig{Address: "/run/agent.sock"}); err == nil {
		t.Error("a path was taken for an address")
	}
}
