package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spiffe/go-spiffe/v2/spiffeid"

	"github.com/promptassembly/promptassembly/client"
)

// credentialFlags say who calls a server, and what the server has to prove.
type credentialFlags struct {
	files     client.TLSFiles
	tokenFile string
}

// flags adds the flags to cmd. Shells complete those of files by themselves.
func (c *credentialFlags) flags(cmd *cobra.Command) {
	for _, flag := range []struct {
		value       *string
		name, usage string
	}{
		{&c.files.CA, "ca", "`file` of the certificate authorities that the server is verified against, in PEM form (default: the system's)"},
		{&c.files.Certificate, "cert", "`file` of the certificate that the server is shown, in PEM form"},
		{&c.files.Key, "key", "`file` of the private key of --cert, in PEM form"},
		{&c.files.ServerName, "server-name", "host `name` that the server's certificate has to name (default: that of --server)"},
		{&c.files.ServerID, "server-id", "SPIFFE `id` that the server's certificate has to hold, instead of a host name; needs --ca"},
		{&c.tokenFile, "token-file", "`file` of the token that is sent with each call; in plaintext only on this machine"},
	} {
		cmd.Flags().StringVar(flag.value, flag.name, "", flag.usage)
	}
	noFiles(cmd, "server-name")
	noFiles(cmd, "server-id")
}

// noFiles keeps shells from completing the flag with the names of files.
func noFiles(cmd *cobra.Command, flag string) {
	if err := cmd.RegisterFlagCompletionFunc(flag, cobra.NoFileCompletions); err != nil {
		panic(err) // the flag was added before
	}
}

// options returns what the flags ask for; an error is wrong usage. An empty value is one, as it is of
// a forgotten variable: without the flag the call would go out in plaintext, or with no name.
func (c *credentialFlags) options(cmd *cobra.Command) ([]client.Option, error) {
	given := cmd.Flags().Changed
	for _, name := range []string{"ca", "cert", "key", "token-file", "server-name", "server-id"} {
		switch {
		case given(name) && cmd.Flag(name).Value.String() == "":
			return nil, fmt.Errorf("--%s is empty", name)
		case given(name) && !given("server"):
			return nil, fmt.Errorf("--%s needs --server: the server in this process trusts its caller", name)
		}
	}
	switch {
	case given("cert") && !given("key"):
		return nil, errors.New("--cert needs --key")
	case given("key") && !given("cert"):
		return nil, errors.New("--key needs --cert")
	case given("server-name") && given("server-id"):
		return nil, errors.New("--server-name cannot go with --server-id")
	case given("server-id") && !given("ca"):
		return nil, errors.New("--server-id needs --ca, the authorities of its trust domain")
	case given("server-id"):
		if id, err := spiffeid.FromString(c.files.ServerID); err != nil || id.Path() == "" {
			return nil, fmt.Errorf("--server-id must be like spiffe://example.org/name, not %q", c.files.ServerID)
		}
	}
	var options []client.Option
	if c.files != (client.TLSFiles{}) {
		options = append(options, client.WithTLSFiles(c.files))
	}
	if given("token-file") {
		options = append(options, client.WithTokenFile(c.tokenFile))
	}
	return options, nil
}
