package jwks

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"syscall"
	"time"
)

// maxBearerBytes is the size of the largest file with a token for fetches.
const maxBearerBytes = 64 << 10

// endpoint is where keys are fetched from.
type endpoint struct {
	url                string
	caFile, bearerFile string
	transport          http.RoundTripper // nil: a new one for each fetch
}

// checkURL returns an error for what is no URL to fetch keys from.
func checkURL(s string) error {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || u.User != nil || u.Fragment != "" {
		return errors.New("not an absolute URL without user and fragment")
	}
	if u.Scheme == "https" || u.Scheme == "http" && loopback(u.Hostname()) {
		return nil
	}
	return errors.New("must be https; http is for loopback")
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// fetch returns what the endpoint answers. Its errors hold nothing of the answer and of the bearer.
func (e *endpoint) fetch(ctx context.Context) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, e.url, nil)
	if err != nil {
		return nil, errors.New("the URL cannot be used")
	}
	request.Header.Set("Accept", "application/jwk-set+json, application/json")
	if e.bearerFile != "" {
		bearer, err := readBounded(e.bearerFile, maxBearerBytes)
		if err != nil {
			return nil, err
		}
		bearer = bytes.TrimSpace(bearer)
		if len(bearer) == 0 || bytes.ContainsFunc(bearer, func(r rune) bool { return r <= ' ' || r > '~' }) {
			return nil, fmt.Errorf("%s: empty, or not the bearer alone", e.bearerFile)
		}
		request.Header.Set("Authorization", "Bearer "+string(bearer))
	}
	transport := e.transport
	if transport == nil {
		if transport, err = e.newTransport(request.URL.Scheme); err != nil {
			return nil, err
		}
	}
	client := &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, fetchFailure(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		if response.StatusCode/100 == 3 {
			return nil, fmt.Errorf("the answer is status %d: redirects are not followed", response.StatusCode)
		}
		return nil, fmt.Errorf("the answer is status %d", response.StatusCode)
	}
	data, err := io.ReadAll(io.LimitReader(response.Body, maxKeySetBytes+1))
	if err != nil {
		return nil, fetchFailure(err)
	}
	if len(data) > maxKeySetBytes {
		return nil, fmt.Errorf("the answer is larger than %d bytes", maxKeySetBytes)
	}
	return data, nil
}

// newTransport returns a transport for one fetch: at one in minutes a connection that is kept gains
// nothing, and authorities that are replaced count at once.
func (e *endpoint) newTransport(scheme string) (*http.Transport, error) {
	dialer := &net.Dialer{Timeout: fetchTimeout}
	t := &http.Transport{
		DialContext:            dialer.DialContext,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    fetchTimeout,
		DisableKeepAlives:      true,
		DisableCompression:     true,
		MaxResponseHeaderBytes: 64 << 10,
	}
	if scheme == "http" {
		dialer.Control = onlyLoopback
		return t, nil
	}
	t.Proxy = http.ProxyFromEnvironment
	if e.caFile != "" {
		pem, err := readBounded(e.caFile, maxKeySetBytes)
		if err != nil {
			return nil, err
		}
		t.TLSClientConfig.RootCAs = x509.NewCertPool()
		if !t.TLSClientConfig.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s: no certificate in PEM", e.caFile)
		}
	}
	return t, nil
}

var errNotLoopback = errors.New("http is for loopback")

// onlyLoopback refuses what the name localhost may have been resolved to.
func onlyLoopback(_, address string, _ syscall.RawConn) error {
	if host, _, err := net.SplitHostPort(address); err != nil || !loopback(host) {
		return errNotLoopback
	}
	return nil
}

// fetchFailure says what failed in words that quote no answer and no certificate.
func fetchFailure(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("no answer in %d s", fetchTimeout/time.Second)
	}
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return errors.New("its certificate is of an authority that is not trusted")
	}
	if _, ok := errors.AsType[x509.HostnameError](err); ok {
		return errors.New("its certificate is for another host")
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return errors.New("its certificate does not hold: expired, or not trusted")
	}
	if e, ok := errors.AsType[*net.OpError](err); ok {
		return e
	}
	return errors.New("the answer is not one of HTTP, or ends early")
}
