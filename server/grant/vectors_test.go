package grant_test

import (
	"crypto"
	"encoding/base64"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
	"github.com/promptassembly/promptassembly/server/grant"
)

const (
	vectors  = "../../proto/vectors/grants"
	issuer   = "https://harness.example.org" // of all vectors
	audience = "prompt-assembly"
)

// vector is a file of vectors/grants.
type vector struct {
	Shows, Method, QueryID, Token string
	Now                           time.Time
	Grant                         json.RawMessage // what a token that holds says
	Check                         grant.Check     // the one that fails for another
}

func vectorKeys(t testing.TB) jose.JSONWebKeySet {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(vectors, "signing-keys.jwks"))
	if err != nil {
		t.Fatal(err)
	}
	var set jose.JSONWebKeySet
	if err := json.Unmarshal(data, &set); err != nil {
		t.Fatal(err)
	}
	return set
}

func eachVector(t *testing.T, check func(t *testing.T, v vector)) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(vectors, "*.json"))
	if err != nil || len(files) != 18 {
		t.Fatalf("%d vectors, want 18: %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var v vector
			if err := json.Unmarshal(data, &v); err != nil {
				t.Fatal(err)
			}
			check(t, v)
		})
	}
}

// open does what a service does with a token.
func open(token string, keys jose.JSONWebKeySet, plan bool, now time.Time, queryID string) ([]byte, *grant.Contents, error) {
	signed, err := grant.Parse([]byte(token))
	if err != nil {
		return nil, nil, err
	}
	found := keys.Key(signed.KeyID)
	if signed.Issuer != issuer || len(found) != 1 {
		return nil, nil, &grant.InvalidError{Check: grant.Key}
	}
	payload, err := signed.Verify(found[0].Public().Key)
	if err != nil {
		return nil, nil, err
	}
	contents, err := grant.Open(payload)
	if err == nil && contents.Plan != plan {
		err = &grant.InvalidError{Check: grant.Payload}
	}
	if err == nil {
		err = contents.Holds([]string{audience}, now, queryID)
	}
	return payload, contents, err
}

func TestVectors(t *testing.T) {
	keys := vectorKeys(t)
	seen := make(map[grant.Check]bool)
	eachVector(t, func(t *testing.T, v vector) {
		payload, contents, err := open(v.Token, keys, v.Method == "PlanPrompt", v.Now, v.QueryID)
		seen[v.Check] = true
		if v.Check != "" {
			if invalid, ok := errors.AsType[*grant.InvalidError](err); !ok || invalid.Check != v.Check {
				t.Errorf("%v, want %s", err, v.Check)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		want, got := new(pb.Grant), new(pb.Grant)
		if err := errors.Join(protojson.Unmarshal(v.Grant, want), proto.Unmarshal(payload, got)); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
			t.Error(diff)
		}
		if contents.Audience != want.GetAudience() || contents.QueryID != want.GetQueryId() ||
			!contents.Issued.Equal(want.GetIssueTime().AsTime()) || !contents.Expires.Equal(want.GetExpireTime().AsTime()) {
			t.Errorf("%+v", contents)
		}
	})
	for _, check := range []grant.Check{
		"", grant.Form, grant.Typ, grant.Algorithm, grant.Key, grant.Signature, grant.Payload, grant.Audience,
		grant.Expiry, grant.Issued, grant.Query,
	} {
		if !seen[check] {
			t.Errorf("no vector for %q", check)
		}
	}
}

// Ed25519 signs the same in the same way: Sign makes the vectors that it can.
func TestSignMakesTheVectors(t *testing.T) {
	keys := vectorKeys(t)
	made := 0
	eachVector(t, func(t *testing.T, v vector) {
		if v.Check != "" {
			return
		}
		g := new(pb.Grant)
		if err := protojson.Unmarshal(v.Grant, g); err != nil {
			t.Fatal(err)
		}
		signed, err := grant.Parse([]byte(v.Token))
		if err != nil {
			t.Fatal(err)
		}
		key := keys.Key(signed.KeyID)[0]
		token, err := grant.Sign(grant.SigningKey{Issuer: issuer, ID: signed.KeyID, Signer: key.Key.(crypto.Signer)}, g)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := open(string(token), keys, g.GetPlanPrompt() != nil, v.Now, v.QueryID); err != nil {
			t.Errorf("what was signed does not hold: %v", err)
		}
		if string(token) == v.Token {
			made++
		}
	})
	if made != 2 { // eddsa-select and last-moment
		t.Errorf("%d of the vectors are made again, want 2", made)
	}
}

// A signature has one spelling: whoever changes a character of a token changes what it says.
func TestATokenHasOneSpelling(t *testing.T) {
	keys := vectorKeys(t)
	eachVector(t, func(t *testing.T, v vector) {
		if v.Check != "" {
			return
		}
		const characters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
		at := len(v.Token) - 1
		last := strings.IndexByte(characters, v.Token[at])
		for i := range characters { // all but two bits of the last one are spare
			if i>>4 != last>>4 || i == last {
				continue
			}
			other := v.Token[:at] + characters[i:i+1]
			if _, err := base64.RawURLEncoding.DecodeString(other[strings.LastIndexByte(other, '.')+1:]); err != nil {
				t.Fatal(err)
			}
			_, _, err := open(other, keys, v.Method == "PlanPrompt", v.Now, v.QueryID)
			if invalid, ok := errors.AsType[*grant.InvalidError](err); !ok || invalid.Check != grant.Form {
				t.Errorf("%q for %q: %v", characters[i], characters[last], err)
			}
		}
	})
}
