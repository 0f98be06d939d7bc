package policy

import (
	"net/netip"
	"net/url"
	"strings"
)

const mustURL = "an https URL, or an http URL of a loopback address"

// urlRule is that of where keys are fetched.
func urlRule(s string) string {
	if len(s) > 2048 {
		return "is longer than 2048 bytes"
	}
	u, err := url.Parse(s)
	switch {
	case err != nil:
		return "is no URL"
	case u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "":
		return "has another scheme, or no host"
	case u.User != nil:
		return "holds a user"
	case u.Fragment != "":
		return "holds a fragment"
	case u.Scheme == "http" && !loopback(u.Hostname()):
		return "is in plaintext, to a host that is not loopback"
	default:
		return ""
	}
}

func isHTTP(s string) bool { return strings.HasPrefix(strings.ToLower(s), "http:") }

func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	address, err := netip.ParseAddr(host)
	return err == nil && address.IsLoopback()
}
