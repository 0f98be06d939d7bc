package server_test

import (
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"testing"
	"time"

	"github.com/promptassembly/promptassembly/server/internal/testca"
)

// proxy serves a proxy before the server, HTTP/2 and mTLS on both sides, and returns its address. To the
// server it is id. In place of whatever x-forwarded-client-cert comes in, it sends its client's, or
// none if it is not to forward them.
func (g *guarded) proxy(t testing.TB, id string, forward bool) string {
	t.Helper()
	transport := &http.Transport{
		TLSClientConfig: certified(g.ca, id), Protocols: new(http.Protocols), DisableCompression: true,
	}
	transport.Protocols.SetHTTP2(true)
	front := certified(g.ca, id)
	front.ClientAuth, front.ClientCAs = tls.RequireAndVerifyClientCert, g.ca.Pool()
	hop := &http.Server{
		Handler: &httputil.ReverseProxy{
			Rewrite: func(r *httputil.ProxyRequest) {
				r.SetURL(&url.URL{Scheme: "https", Host: g.address})
				r.Out.Header.Del("X-Forwarded-Client-Cert")
				if forward {
					client := r.In.TLS.PeerCertificates[0]
					hash := sha256.Sum256(client.Raw)
					r.Out.Header.Set("X-Forwarded-Client-Cert",
						"By="+id+";Hash="+hex.EncodeToString(hash[:])+";URI="+client.URIs[0].String())
				}
			},
			// What streams is flushed as it comes. A flush of what does not would tear headers and trailers of
			// an answer without a body apart.
			FlushInterval: 0,
			Transport:     transport,
			ErrorLog:      log.New(new(lockedBuffer), "", 0), // of calls that are cancelled when the test ends
		},
		TLSConfig: front, Protocols: transport.Protocols, ReadHeaderTimeout: time.Minute,
		ErrorLog: log.New(new(lockedBuffer), "", 0),
	}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = hop.ServeTLS(listener, "", "") }()
	t.Cleanup(func() {
		_ = hop.Close()
		transport.CloseIdleConnections()
	})
	return listener.Addr().String()
}

// newCA returns the authority of the trust domain of all tests.
func newCA(t testing.TB) *testca.CA {
	t.Helper()
	return testca.New(t, "example.org")
}
