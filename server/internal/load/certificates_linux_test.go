package load

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"testing"

	"google.golang.org/grpc/credentials"

	"github.com/promptassembly/promptassembly/server/dev"
)

// clientCredentials makes who takes part, and returns the folder of it and what the harness connects
// with.
func clientCredentials(b *testing.B) (folder string, transport credentials.TransportCredentials) {
	b.Helper()
	folder = b.TempDir()
	files, err := dev.Write(folder)
	if err != nil {
		b.Fatal(err)
	}
	pair, err := tls.LoadX509KeyPair(files.Harness.Certificate, files.Harness.Key)
	if err != nil {
		b.Fatal(err)
	}
	ca, err := os.ReadFile(files.CA)
	if err != nil {
		b.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	return folder, credentials.NewTLS(&tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{pair}, RootCAs: roots,
	})
}

// serverTLS is what a server that identifies nobody secures connections with, as one that does would.
func serverTLS(files dev.Files) (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(files.Server.Certificate, files.Server.Key)
	return &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{pair}, NextProtos: []string{"h2"},
		ClientAuth: tls.RequestClientCert, SessionTicketsDisabled: true,
	}, err
}
