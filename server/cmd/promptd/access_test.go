package main

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/promptassembly/promptassembly/server/dev"
)

// files is who takes part, for all tests.
var party dev.Files

// withFiles runs tests with files in a folder of their own.
func withFiles(run func() int) int {
	folder, err := os.MkdirTemp("", "promptd-test-")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(folder) }()
	if party, err = dev.Write(folder); err != nil {
		panic(err)
	}
	return run()
}

// withAccess returns args after flags that say who may call.
func withAccess(args ...string) []string {
	return append([]string{
		"--policy", party.Policy, "--tls-certificate", party.Server.Certificate, "--tls-key", party.Server.Key,
		"--tls-client-ca", party.CA, "--tls-trust-domain", dev.TrustDomain,
	}, args...)
}

// credentialsOf returns those of a client.
func credentialsOf(t *testing.T, who dev.Identity) credentials.TransportCredentials {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(who.Certificate, who.Key)
	if err != nil {
		t.Fatal(err)
	}
	ca, err := os.ReadFile(party.CA)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	return credentials.NewTLS(&tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{pair}, RootCAs: roots})
}

// dial returns a connection of the harness.
func dial(t *testing.T, address string) *grpc.ClientConn {
	t.Helper()
	return dialWith(t, address, credentialsOf(t, party.Harness))
}

func dialWith(t *testing.T, address string, transport credentials.TransportCredentials) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(transport))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}
