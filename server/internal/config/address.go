package config

import (
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"unicode/utf8"
)

// off is the address of a listener that there is not.
const off = "off"

// Network splits an address of a Config into the network and the address for package net.
func Network(address string) (network, name string) {
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		return "unix", path
	}
	return "tcp", address
}

func addressOf(text string) string {
	if text == off {
		return ""
	}
	return text
}

func checkListen(address string) error {
	_, err := checkAddress(address)
	return err
}

// Local reports whether only this machine reaches an address.
func Local(address string) bool {
	host, err := checkAddress(address)
	ip := net.ParseIP(host)
	return err == nil && (strings.HasPrefix(address, "unix:") || host == "localhost" || ip != nil && ip.IsLoopback())
}

func checkAdmin(address string) error {
	if address == "" || address == off {
		return nil
	}
	_, err := checkAddress(address)
	return err
}

// maxSocketPath is the longest path of a unix socket on Linux; other systems allow a little less and
// say so themselves.
const maxSocketPath = 107

// checkAddress returns the host of host:port, and an empty one of unix:/path.
func checkAddress(address string) (host string, err error) {
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		if !filepath.IsAbs(path) || len(path) > maxSocketPath || strings.ContainsRune(path, 0) || !utf8.ValidString(path) {
			return "", fmt.Errorf("%s: the path of a unix socket is absolute, UTF-8 and of at most %d bytes", quoted(address), maxSocketPath)
		}
		return "", nil
	}
	host, port, err := net.SplitHostPort(address)
	if addr, ok := errors.AsType[*net.AddrError](err); ok {
		return "", fmt.Errorf("%s: %s", quoted(address), addr.Err)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return "", fmt.Errorf("%s: the port is a number from 0 to 65535", quoted(address))
	}
	return host, nil
}
