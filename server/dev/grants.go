package dev

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"

	"github.com/go-jose/go-jose/v4"
)

// grantKeys makes a key with which the harness signs, and returns the content of the files of it.
func (f Files) grantKeys() (map[string][]byte, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	key := jose.JSONWebKey{Key: private, KeyID: "dev", Algorithm: string(jose.EdDSA), Use: "sig"}
	signing, err := json.MarshalIndent(key, "", "  ")
	if err != nil {
		return nil, err
	}
	public, err := json.MarshalIndent(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{key.Public()}}, "", "  ")
	if err != nil {
		return nil, err
	}
	return map[string][]byte{f.GrantKey: append(signing, '\n'), f.GrantKeys: append(public, '\n')}, nil
}
