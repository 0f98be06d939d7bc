package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/go-jose/go-jose/v4"
	"github.com/spf13/cobra"
)

func newGrantKeygen() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "keygen --out FILE",
		Short: "Make a key that signs grants",
		Long: `Makes a private key that signs grants, writes it to a new file as a JSON Web Key
(RFC 7517) that its owner alone can read, and prints its public key as a key set,
for 'grants' in the policy of the service. Who has several keys keeps the public
ones in one set, each with an ID of its own.`,
		Example: `  promptctl grant keygen --out grant-key.jwk > grant-keys.jwks`,
		Args:    cobra.NoArgs,
	}
	out := cmd.Flags().String("out", "", "`file` for the private key, which must not be there yet")
	id := cmd.Flags().String("kid", "", "`id` of the key, 1 to 256 bytes (default: its thumbprint, RFC 7638)")
	noFiles(cmd, "kid")
	algorithm := &choice{value: "EdDSA", allowed: []string{"EdDSA", "ES256"}}
	algorithm.flag(cmd, "alg", "", "Ed25519, or ECDSA on P-256")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if *out == "" {
			return usageError{errors.New("--out is missing")}
		}
		if len(*id) > 256 || cmd.Flags().Changed("kid") && *id == "" {
			return usageError{errors.New("--kid must be 1 to 256 bytes")}
		}
		key, err := newGrantKey(algorithm.value, *id)
		if err != nil {
			return err
		}
		private, err := json.MarshalIndent(key, "", "  ")
		if err != nil {
			return err
		}
		public, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{key.Public()}})
		if err != nil {
			return err
		}
		if err := writeNew(*out, append(private, '\n')); err != nil {
			return err
		}
		if err := writeIndented(cmd.OutOrStdout(), public); err != nil {
			_ = os.Remove(*out) // a key whose public part nobody has is of no use
			return err
		}
		return nil
	}
	return cmd
}

// newGrantKey makes a private key. Without an ID its thumbprint is one.
func newGrantKey(algorithm, id string) (key jose.JSONWebKey, err error) {
	key = jose.JSONWebKey{KeyID: id, Algorithm: algorithm, Use: "sig"}
	if algorithm == string(jose.ES256) {
		key.Key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	} else {
		_, key.Key, err = ed25519.GenerateKey(rand.Reader)
	}
	if err != nil || id != "" {
		return key, err
	}
	thumbprint, err := key.Thumbprint(crypto.SHA256)
	key.KeyID = base64.RawURLEncoding.EncodeToString(thumbprint)
	return key, err
}

// writeNew writes a file for its owner alone, and none in the place of another.
func writeNew(path string, content []byte) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err != nil {
		_ = os.Remove(path)
	}
	return err
}

// maxKeyFile is the size of the largest file of keys that is read.
const maxKeyFile = 1 << 20

func readKeyFile(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxKeyFile+1))
	if err == nil && len(data) > maxKeyFile {
		err = fmt.Errorf("%s: larger than %d bytes", path, maxKeyFile)
	}
	return data, err
}

// readGrantKey reads a private key that keygen, or whoever writes JSON Web Keys, has written. Its errors
// hold nothing of the file.
func readGrantKey(path string) (signer crypto.Signer, id string, err error) {
	data, err := readKeyFile(path)
	if err != nil {
		return nil, "", err
	}
	var key jose.JSONWebKey
	if json.Unmarshal(data, &key) != nil {
		return nil, "", fmt.Errorf("%s: not a JSON Web Key", path)
	}
	signer, ok := key.Key.(crypto.Signer)
	switch {
	case !ok:
		return nil, "", fmt.Errorf("%s: not a private key that can sign", path)
	case key.KeyID == "":
		return nil, "", fmt.Errorf("%s: the key has no kid", path)
	case key.Use != "" && key.Use != "sig":
		return nil, "", fmt.Errorf("%s: the key is not for signatures", path)
	}
	return signer, key.KeyID, nil
}

// readGrantKeys reads a public key set. One that holds a private key is refused: no service would read it.
func readGrantKeys(path string) (set jose.JSONWebKeySet, err error) {
	data, err := readKeyFile(path)
	if err != nil {
		return set, err
	}
	if json.Unmarshal(data, &set) != nil || len(set.Keys) == 0 {
		return set, fmt.Errorf("%s: not a JSON Web Key Set", path)
	}
	for _, key := range set.Keys {
		if !key.IsPublic() {
			return set, fmt.Errorf("%s: holds a private key, which is for the signer alone", path)
		}
	}
	return set, nil
}
