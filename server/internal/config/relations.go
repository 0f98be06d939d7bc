package config

import (
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/spiffe/go-spiffe/v2/spiffeid"
	"github.com/spiffe/go-spiffe/v2/workloadapi"
)

func checkPath(path string) error {
	if len(path) > 4096 || !utf8.ValidString(path) {
		return errors.New("is no path")
	}
	return nil
}

func checkTrustDomain(name string) error {
	if _, err := spiffeid.TrustDomainFromString(name); err != nil {
		return fmt.Errorf("%s: %w", quoted(name), err)
	}
	return nil
}

func checkWorkloadAPI(address string) error {
	if err := workloadapi.ValidateAddress(address); err != nil {
		return fmt.Errorf("%s: %w", quoted(address), err)
	}
	return nil
}

// relations checks what keys mean for each other.
func (l *loader) relations(cfg Config, origins map[string]string) {
	fault := func(key, problem string) { l.fault(key, origins[key], problem) }
	tls := cfg.Access.TLS
	if tls.WorkloadAPI != "" {
		for _, given := range []struct{ key, value string }{
			{"tls.certificate", tls.Certificate}, {"tls.key", tls.Key}, {"tls.client_ca", tls.ClientCA}, {"tls.trust_domain", tls.TrustDomain},
		} {
			if given.value != "" {
				fault(given.key, "must not be set beside tls.workload_api, which gives that")
			}
		}
		if origins["tls.client_name"] != ByDefault && tls.ClientName != 0 {
			fault("tls.client_name", "must be spiffe beside tls.workload_api")
		}
	}
	for _, pair := range []struct{ key, value, needs, needed string }{
		{"tls.certificate", tls.Certificate, "tls.key", tls.Key},
		{"tls.key", tls.Key, "tls.certificate", tls.Certificate},
		{"tls.client_ca", tls.ClientCA, "tls.certificate", tls.Certificate},
		{"tls.client_ca", tls.ClientCA, "tls.trust_domain", tls.TrustDomain},
		{"tls.trust_domain", tls.TrustDomain, "tls.client_ca", tls.ClientCA},
	} {
		if pair.value != "" && pair.needed == "" && tls.WorkloadAPI == "" {
			fault(pair.key, "needs "+pair.needs+" beside it")
		}
	}
	if !tls.On() && !Local(cfg.Listen) {
		fault("listen", quoted(cfg.Listen)+" is not a loopback address or a unix socket; without TLS (tls.certificate or tls.workload_api) it must be")
	}
	age, grace := cfg.Limits.ConnectionAge, cfg.Limits.ConnectionAgeGrace
	if longest := age + age/10 + grace; tls.Clients() && longest > tls.ShortestLife/2 {
		fault("limits.connection_age", fmt.Sprintf("a connection may last %s (10 %% more, and limits.connection_age_grace), "+
			"and its certificate, renewed at half of its life, end before it; must be at most half of tls.shortest_life, which is %s",
			formatDuration(longest.Round(time.Second)), formatDuration(tls.ShortestLife/2)))
	}
}
