// Package dev makes what a server on one machine needs to tell callers apart: an authority, a
// certificate for the server, one for a harness and one for a plain agent, a key with which the harness
// signs grants, and the policy that says what they may assert. It is for development and demonstrations: whoever can read the folder is all of them.
package dev

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"

	"github.com/promptassembly/promptassembly/server"
)

// TrustDomain is the trust domain of the certificates.
const TrustDomain = "promptassembly.test"

// The SPIFFE IDs of the callers.
const (
	// Harness may assert every authority, every required segment and every scope.
	Harness = "spiffe://" + TrustDomain + "/harness"
	// Agent may ask for every scope, and assert nothing above user default.
	Agent = "spiffe://" + TrustDomain + "/agent"
)

// The harness signs grants as GrantIssuer for GrantAudience. The agent may carry them.
const (
	GrantIssuer   = "https://harness." + TrustDomain
	GrantAudience = "promptd-dev"
)

// ServerID is the SPIFFE ID of the server. Its certificate is for localhost, too.
const ServerID = "spiffe://" + TrustDomain + "/server"

//go:embed policy.yaml
var policyFile []byte

//go:embed request.json
var requestFile []byte

// Identity is a certificate and its key, by the paths of their PEM files.
type Identity struct{ Certificate, Key string }

// Files are the paths of what was written.
type Files struct {
	// CA is the authority that made all certificates. Its key was not kept.
	CA string
	// Server, Harness and Agent are who takes part.
	Server, Harness, Agent Identity
	// GrantKey is the private key that signs grants, a JSON Web Key, and GrantKeys its public one in a set.
	GrantKey, GrantKeys string
	// Policy is the policy file.
	Policy string
	// Request is a SelectMemoryRequest in protojson that asserts CURRENT_TURN.
	Request string
}

// At returns the paths of what Write writes to a folder.
func At(folder string) Files {
	at := func(name string) string { return filepath.Join(folder, name) }
	identity := func(name string) Identity { return Identity{at(name + ".pem"), at(name + "-key.pem")} }
	return Files{
		CA: at("ca.pem"), Server: identity("server"), Harness: identity("harness"), Agent: identity("agent"),
		GrantKey: at("grant-key.jwk"), GrantKeys: at("grant-keys.jwks"),
		Policy: at("policy.yaml"), Request: at("request.json"),
	}
}

// Write makes everything anew in a folder, which it makes, too, if there is none. Only its owner can
// read what it writes. The certificates are good for 30 days.
func Write(folder string) (Files, error) {
	folder, err := filepath.Abs(folder)
	if err != nil {
		return Files{}, err
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return Files{}, err
	}
	files := At(folder)
	contents, err := files.certificates()
	if err != nil {
		return Files{}, err
	}
	keys, err := files.grantKeys()
	if err != nil {
		return Files{}, err
	}
	maps.Copy(contents, keys)
	path, err := json.Marshal(files.GrantKeys) // which is YAML, too
	if err != nil {
		return Files{}, err
	}
	contents[files.Policy] = bytes.ReplaceAll(policyFile, []byte("GRANT_KEYS"), path)
	contents[files.Request] = requestFile
	for path, content := range contents {
		if err := write(path, content); err != nil {
			return Files{}, err
		}
	}
	return files, nil
}

// write puts a file into its place whole, and for its owner only.
func write(path string, content []byte) error {
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*") // with mode 0600
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(file.Name()) }() // unless it was renamed
	_, err = file.Write(content)
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}

// Access returns what a server needs.
func (f Files) Access() server.AccessConfig {
	return server.AccessConfig{
		Policy: f.Policy,
		TLS: server.TLS{
			Certificate: f.Server.Certificate, Key: f.Server.Key,
			ClientCA: f.CA, TrustDomain: TrustDomain,
		},
	}
}
