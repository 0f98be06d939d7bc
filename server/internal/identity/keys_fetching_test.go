package identity_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/promptassembly/promptassembly/server/internal/identity"
	"github.com/promptassembly/promptassembly/server/internal/jwks"
)

// endpoint answers fetches of keys, without a network.
type endpoint struct {
	mu      sync.Mutex
	answer  string // empty: an error
	hangs   bool
	fetches int
}

func (e *endpoint) RoundTrip(r *http.Request) (*http.Response, error) {
	e.mu.Lock()
	e.fetches++
	answer, hangs := e.answer, e.hangs
	e.mu.Unlock()
	if hangs {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	if answer == "" {
		return nil, errors.New("a secret of the answer")
	}
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(answer))}, nil
}

func (e *endpoint) set(answer string, hangs bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.answer, e.hangs = answer, hangs
}

func (e *endpoint) count() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.fetches
}

var byURL = identity.Issuer{Name: "https://a.example", Keys: jwks.Location{URL: "https://a.example/jwks.json"}, Audiences: []string{"prompt-assembly"}}

// fetching returns Tokens with keys from the endpoint. The clock is that of the bubble.
func fetching(t *testing.T, e *endpoint, log io.Writer, metrics prometheus.Registerer) *identity.Tokens {
	t.Helper()
	tokens := identity.NewTokens(identity.TokensConfig{Log: slog.New(slog.NewTextHandler(log, nil)), Metrics: metrics, Transport: e})
	t.Cleanup(tokens.Close)
	if err := tokens.Configure(context.Background(), []identity.Issuer{byURL}); err != nil {
		t.Fatal(err)
	}
	return tokens
}

// lasting are claims that hold for a day from now.
func lasting() object {
	return with(claimsAt(time.Now()), object{"exp": time.Now().Add(24 * time.Hour).Unix()})
}

func byOtherRSA(tb testing.TB, id string, claims object) string {
	tb.Helper()
	return signed(tb, "RS256", otherRSA(), `{"alg":"RS256","kid":"`+id+`"}`, toJSON(tb, claims))
}

// counted returns how many fetches are counted with the result.
func counted(t *testing.T, registry prometheus.Gatherer, result string) (n float64) {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() != "promptassembly_jwks_fetches_total" {
			t.Errorf("a metric named %s", family.GetName())
		}
		for _, m := range family.GetMetric() {
			labels := map[string]string{}
			for _, pair := range m.GetLabel() {
				labels[pair.GetName()] = pair.GetValue()
			}
			if labels["issuer"] == "https://a.example" && labels["result"] == result {
				n += m.GetCounter().GetValue()
			}
		}
	}
	return n
}
