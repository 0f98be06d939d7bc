package client

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
)

const (
	// tokenEvery is how often a token file is read at most.
	tokenEvery = time.Second
	// maxToken is the size of the longest token, in bytes; servers take no longer one.
	maxToken = 16 << 10
)

// tokenFile sends what a file holds as the bearer token of each call.
type tokenFile struct{ token *fresh[string] }

func openToken(path string, now func() time.Time) (*tokenFile, error) {
	if path == "" {
		return nil, errors.New("the path of the token file is empty")
	}
	token, err := newFresh(func() (string, error) { return readToken(path) }, tokenEvery, now)
	if err != nil {
		return nil, err
	}
	return &tokenFile{token}, nil
}

func readToken(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", fileError(path, err)
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxToken+3)) // and a newline, and a byte too many
	if err != nil {
		return "", fileError(path, err)
	}
	token := strings.TrimRight(string(data), "\r\n")
	switch {
	case token == "":
		return "", fileError(path, errors.New("it holds no token"))
	case len(token) > maxToken:
		return "", fileError(path, errors.New("it is longer than a token may be, which is 16 KiB"))
	case strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }):
		return "", fileError(path, errors.New("it holds more than a token: white space, or what is not ASCII"))
	}
	return token, nil
}

// GetRequestMetadata implements credentials.PerRPCCredentials.
func (t *tokenFile) GetRequestMetadata(ctx context.Context, _ ...string) (map[string]string, error) {
	request, _ := credentials.RequestInfoFromContext(ctx)
	err := checkPrivate(request.AuthInfo)
	var token string
	if err == nil {
		token, err = t.token.get()
	}
	switch {
	case err == nil:
		return map[string]string{"authorization": "Bearer " + token}, nil
	case request.Method == healthpb.Health_Watch_FullMethodName:
		// gRPC would keep calls waiting for it, and not say why. They fail by themselves.
		return nil, nil
	default:
		return nil, status.Error(codes.Unauthenticated, "client: "+err.Error())
	}
}

// RequireTransportSecurity implements credentials.PerRPCCredentials. What it requires depends on the
// address, so GetRequestMetadata looks at each connection.
func (*tokenFile) RequireTransportSecurity() bool { return false }
