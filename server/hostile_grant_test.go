package server_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
	"github.com/promptassembly/promptassembly/server"
	"github.com/promptassembly/promptassembly/server/grant"
)

// forged returns a token of any header and payload, signed by any function of what is signed.
func forged(header string, payload []byte, sign func(input []byte) []byte) []byte {
	input := base64.RawURLEncoding.EncodeToString([]byte(header)) + "." + base64.RawURLEncoding.EncodeToString(payload)
	return []byte(input + "." + base64.RawURLEncoding.EncodeToString(sign([]byte(input))))
}

func byEd25519(key grant.SigningKey) func([]byte) []byte {
	return func(input []byte) []byte { return ed25519.Sign(key.Signer.(ed25519.PrivateKey), input) }
}

func byES256(t testing.TB, key *ecdsa.PrivateKey) func([]byte) []byte {
	return func(input []byte) []byte {
		digest := sha256.Sum256(input)
		r, s, err := ecdsa.Sign(rand.Reader, key, digest[:])
		if err != nil {
			t.Fatal(err)
		}
		return append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...)
	}
}

func header(alg, kid, typ, iss string) string {
	return fmt.Sprintf(`{"alg":%q,"kid":%q,"typ":%q,"iss":%q}`, alg, kid, typ, iss)
}

// goodHeader is that of a grant by an Ed25519 key.
var goodHeader = header("EdDSA", "1", grant.Type, granter)

// grantee sends grants to a server that believes two issuers and knows one relay.
type grantee struct {
	t           *testing.T
	conn        *grpc.ClientConn
	guarded     *guarded
	key, second grant.SigningKey // of two issuers, with equal IDs
	es256       *ecdsa.PrivateKey
}

const secondGranter = "https://second.example"

func newGrantee(t *testing.T) *grantee {
	key, set := newGranter(t, granter, jose.EdDSA)
	second, secondSet := newGranter(t, secondGranter, jose.EdDSA)
	es256, esSet := newGranter(t, granter, jose.ES256)
	large, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	_, once, _ := ed25519.GenerateKey(rand.Reader)
	esSet.Keys[0].KeyID = "es"
	set.Keys = append(set.Keys, esSet.Keys[0],
		jose.JSONWebKey{Key: large.Public(), KeyID: "rsa"},
		jose.JSONWebKey{Key: once.Public(), KeyID: "twice"}, jose.JSONWebKey{Key: es256.Signer.Public(), KeyID: "twice"})
	policy := strings.Replace(grantPolicy(keysIn(t, set)), "callers:", fmt.Sprintf(
		"  - {issuer: %q, keys: {file: %q}, audiences: [prompt-assembly]}\ncallers:\n  - {name: second, identities: [{source: grant, issuer: %[1]q}], scopes: [{exact: u}]}",
		secondGranter, keysIn(t, secondSet)), 1)
	policy = strings.Replace(policy, "may_relay: [", fmt.Sprintf("may_relay: [{issuer: %q, scopes: [{exact: u}]}, ", secondGranter), 1)
	g := serveAccess(t, newCA(t), policy, server.Config{})
	return &grantee{t, g.as(t, exampleID("/relay")), g, key, second, es256.Signer.(*ecdsa.PrivateKey)}
}

// refused checks that a grant is refused by a check, with the message's type of that request.
func (g *grantee) refused(name string, token []byte, check grant.Check, like proto.Message) {
	g.t.Helper()
	checkRefused(g.t, name, invoke(g.t.Context(), g.t, g.conn, carrying(like, token), nil), refused{
		codes.PermissionDenied, "GRANT_INVALID", map[string]string{"path": "grant", "check": string(check)},
	})
}

var forMemory = new(pb.SelectMemoryRequest)

// What is not a token of the one form, of the one type, by a key of the issuer that it names.
func TestForgedGrants(t *testing.T) {
	g := newGrantee(t)
	payload := marshal(t, granted(claiming(), nil))
	ed := byEd25519(g.key)
	token := forged(goodHeader, payload, ed)
	if err := invoke(t.Context(), t, g.conn, carrying(forMemory, token), nil); err != nil {
		t.Fatalf("the grant that all others are made of: %v", err)
	}
	public, err := x509.MarshalPKIXPublicKey(g.key.Signer.Public())
	if err != nil {
		t.Fatal(err)
	}
	hs := func(input []byte) []byte {
		mac := hmac.New(sha256.New, public)
		mac.Write(input)
		return mac.Sum(nil)
	}
	none := func([]byte) []byte { return nil }
	jwk := fmt.Sprintf(`"jwk":{"kty":"OKP","crv":"Ed25519","x":%q}`, base64.RawURLEncoding.EncodeToString(g.key.Signer.Public().(ed25519.PublicKey)))
	more := func(member string) []byte {
		return forged(strings.TrimSuffix(goodHeader, "}")+","+member+"}", payload, ed)
	}
	parts := strings.Split(string(token), ".")
	part := func(i int, edit func(string) string) []byte {
		edited := append([]string(nil), parts...)
		edited[i] = edit(edited[i])
		return []byte(strings.Join(edited, "."))
	}
	// spare sets a bit of the last character that stands for no byte.
	spare := func(s string) string {
		const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
		if len(s)%4 == 0 {
			return s + "\n" // there is none
		}
		return s[:len(s)-1] + string(alphabet[strings.IndexByte(alphabet, s[len(s)-1])|1])
	}
	for _, test := range []struct {
		name  string
		token []byte
		want  grant.Check
	}{
		{"random bytes", []byte("\x00\xff\x80"), grant.Form},
		{"dots", []byte(".."), grant.Form},
		{"one part", []byte(parts[0]), grant.Form},
		{"two parts", []byte(parts[0] + "." + parts[1]), grant.Form},
		{"four parts", append(bytes.Clone(token), ".x"...), grant.Form},
		{"five parts, as of a JWE", append(bytes.Clone(token), ".x.y"...), grant.Form},
		{"JSON serialisation", fmt.Appendf(nil, `{"payload":%q,"protected":%q,"signature":%q}`, parts[1], parts[0], parts[2]), grant.Form},
		{"a newline after it", append(bytes.Clone(token), '\n'), grant.Form},
		{"a space before it", append([]byte(" "), token...), grant.Form},
		{"a newline in the header", part(0, func(s string) string { return s[:8] + "\n" + s[8:] }), grant.Form},
		{"newlines in the payload", part(1, func(s string) string { return s[:4] + "\r\n" + s[4:] }), grant.Form},
		{"a newline in the signature", part(2, func(s string) string { return s + "\n" }), grant.Form},
		{"padding of the header", part(0, func(s string) string { return s + "=" }), grant.Form},
		{"padding of the payload", part(1, func(s string) string { return s + strings.Repeat("=", 4-len(s)%4) }), grant.Form},
		{"padding of the signature", part(2, func(s string) string { return s + "==" }), grant.Form},
		{"the other alphabet", part(2, func(string) string { return "+/+/" + parts[2][4:] }), grant.Form},
		{"spare bits of the header", part(0, spare), grant.Form},
		{"spare bits of the payload", part(1, spare), grant.Form},
		{"spare bits of the signature", part(2, spare), grant.Form},
		{"no JSON", forged("{", payload, ed), grant.Form},
		{"a list", forged("[]", payload, ed), grant.Form},
		{"null", forged("null", payload, ed), grant.Form},
		{"a member twice", more(`"kid":"1"`), grant.Form},
		{"invalid UTF-8", forged(strings.Replace(goodHeader, "https", "https\xff", 1), payload, ed), grant.Form},
		{"an embedded jwk", more(jwk), grant.Form},
		{"jku", more(`"jku":"https://harness.example/keys"`), grant.Form},
		{"x5c", more(`"x5c":[]`), grant.Form},
		{"crit", more(`"crit":["exp"],"exp":1`), grant.Form},
		{"b64", more(`"b64":false,"crit":["b64"]`), grant.Form},
		{"cty", more(`"cty":"x"`), grant.Form},
		{"a member of another case", more(`"ALG":"none"`), grant.Form},
		{"no kid", forged(strings.Replace(goodHeader, `"kid":"1",`, "", 1), payload, ed), grant.Form},
		{"an empty kid", forged(header("EdDSA", "", grant.Type, granter), payload, ed), grant.Form},
		{"a kid of 257 bytes", forged(header("EdDSA", strings.Repeat("k", 257), grant.Type, granter), payload, ed), grant.Form},
		{"a kid that is a number", forged(strings.Replace(goodHeader, `"kid":"1"`, `"kid":1`, 1), payload, ed), grant.Form},
		{"no iss", forged(`{"alg":"EdDSA","kid":"1","typ":"promptassembly-grant"}`, payload, ed), grant.Form},
		{"an empty iss", forged(header("EdDSA", "1", grant.Type, ""), payload, ed), grant.Form},
		{"an iss of 2049 bytes", forged(header("EdDSA", "1", grant.Type, strings.Repeat("i", 2049)), payload, ed), grant.Form},
		{"no alg", forged(`{"kid":"1","typ":"promptassembly-grant","iss":"https://harness.example"}`, payload, ed), grant.Form},
		{"a header of 1 MiB", forged(strings.Replace(goodHeader, "{", "{"+strings.Repeat(" ", 1<<20), 1), payload, ed), grant.Form},

		{"the type of a login", forged(header("EdDSA", "1", "JWT", granter), payload, ed), grant.Typ},
		{"no type", forged(strings.Replace(goodHeader, `"typ":"promptassembly-grant",`, "", 1), payload, ed), grant.Typ},
		{"a type of another case", forged(header("EdDSA", "1", "PromptAssembly-Grant", granter), payload, ed), grant.Typ},
		{"a media type", forged(header("EdDSA", "1", "application/promptassembly-grant", granter), payload, ed), grant.Typ},

		{"none", forged(header("none", "1", grant.Type, granter), payload, none), grant.Algorithm},
		{"None", forged(header("None", "1", grant.Type, granter), payload, none), grant.Algorithm},
		{"HS256 with the public key", forged(header("HS256", "1", grant.Type, granter), payload, hs), grant.Algorithm},
		{"RS256", forged(header("RS256", "rsa", grant.Type, granter), payload, none), grant.Algorithm},
		{"ES384", forged(header("ES384", "1", grant.Type, granter), payload, none), grant.Algorithm},
		{"Ed25519 as ES256", forged(header("ES256", "1", grant.Type, granter), payload, ed), grant.Algorithm},
		{"P-256 as EdDSA", forged(header("EdDSA", "es", grant.Type, granter), payload, byES256(t, g.es256)), grant.Algorithm},
		{"an RSA key as EdDSA", forged(header("EdDSA", "rsa", grant.Type, granter), payload, ed), grant.Algorithm},

		{"an issuer that is not known", forged(header("EdDSA", "1", grant.Type, "https://relay.example"), payload, ed), grant.Key},
		{"an issuer of another case", forged(header("EdDSA", "1", grant.Type, "https://HARNESS.example"), payload, ed), grant.Key},
		{"a SPIFFE ID as the issuer", forged(header("EdDSA", "1", grant.Type, exampleID("/harness")), payload, ed), grant.Key},
		{"a key that is not known", forged(header("EdDSA", "2", grant.Type, granter), payload, ed), grant.Key},
		{"an ID of two keys", forged(header("EdDSA", "twice", grant.Type, granter), payload, ed), grant.Key},

		{"no signature", forged(goodHeader, payload, none), grant.Signature},
		{"half a signature", forged(goodHeader, payload, func(in []byte) []byte { return ed(in)[:32] }), grant.Signature},
		{"a signature of zeros", forged(goodHeader, payload, func([]byte) []byte { return make([]byte, 64) }), grant.Signature},
		{"one issuer's key in the name of another", forged(header("EdDSA", "1", grant.Type, secondGranter), payload, ed), grant.Signature},
		{"another issuer's key in the name of the first", forged(goodHeader, payload, byEd25519(g.second)), grant.Signature},
		{"another header over the same", []byte(strings.Split(string(forged(`{"iss":"https://harness.example","alg":"EdDSA","kid":"1","typ":"promptassembly-grant"}`, payload, ed)), ".")[0] + "." + parts[1] + "." + parts[2]), grant.Signature},
	} {
		g.refused(test.name, test.token, test.want, forMemory)
	}
}

// Each flipped bit of a token is found.
func TestFlippedBitsOfAGrant(t *testing.T) {
	g := newGrantee(t)
	request := &pb.SelectMemoryRequest{UserScope: "u", Candidates: []*pb.MemoryContextCandidate{candidate("a", "x")}}
	token := signGrant(t, g.key, granted(request, nil))
	for at := range token {
		for _, bit := range []byte{1, 4, 0x20, 0x80} {
			flipped := bytes.Clone(token)
			flipped[at] ^= bit
			err := invoke(t.Context(), t, g.conn, carrying(forMemory, flipped), nil)
			if info, _ := refusalOf(err); info.GetReason() != "GRANT_INVALID" {
				t.Fatalf("byte %d of %d flipped by %#x: %v", at, len(token), bit, err)
			}
		}
	}
	_, payload, _ := bytes.Cut(token, []byte("."))
	begin := len(token) - len(payload)
	end := bytes.LastIndexByte(token, '.')
	for at := begin; at < end-1; at++ { // the last one can be another spelling
		flipped := bytes.Clone(token)
		flipped[at] = 'A'
		if token[at] == 'A' {
			flipped[at] = 'B'
		}
		g.refused(fmt.Sprintf("byte %d of the payload", at), flipped, grant.Signature, forMemory)
	}
}

// A payload that anybody has changed is refused before anything of it is looked at.
func TestChangedPayloads(t *testing.T) {
	g := newGrantee(t)
	base := claiming()
	base.Recall = &pb.RecallResult{Query: &pb.RecallQuery{UserScope: "u"}, Hits: []*pb.RecallHit{
		{
			MemoryId: "h", Rank: 1, Snippet: "Go.", Provenance: &pb.Provenance{SourceId: "s", SourceType: "t"},
			ScoreBreakdown: &pb.ScoreBreakdown{Total: new(0.5)},
		},
		{
			MemoryId: "i", Rank: 2, Snippet: "C.", Provenance: &pb.Provenance{SourceId: "s", SourceType: "t", Title: "T", CapturedAt: timestamppb.Now()},
			ScoreBreakdown: &pb.ScoreBreakdown{Total: new(0.5)},
		},
	}}
	base.ConflictKeys = map[string]string{"h": "slot"}
	base.AuthorityByMemoryId = map[string]pb.Authority{"h": pb.Authority_AUTHORITY_CURRENT_TURN}
	original := granted(base, nil)
	parts := strings.Split(string(signGrant(t, g.key, original)), ".")
	first := func(g *pb.Grant) *pb.RecallHit { return g.GetSelectMemory().GetRecall().GetHits()[0] }
	for name, edit := range map[string]func(*pb.Grant){
		"a hit dropped": func(g *pb.Grant) { r := g.GetSelectMemory().GetRecall(); r.Hits = r.Hits[:1] },
		"a hit added": func(g *pb.Grant) {
			r := g.GetSelectMemory().GetRecall()
			r.Hits = append(r.Hits, withID(r.Hits[0], "j"))
		},
		"a hit duplicated": func(g *pb.Grant) { r := g.GetSelectMemory().GetRecall(); r.Hits = append(r.Hits, r.Hits[0]) },
		"hits reordered":   func(g *pb.Grant) { r := g.GetSelectMemory().GetRecall(); r.Hits[0], r.Hits[1] = r.Hits[1], r.Hits[0] },
		"a candidate less": func(g *pb.Grant) { g.GetSelectMemory().Candidates = g.GetSelectMemory().GetCandidates()[:1] },
		"an id":            func(g *pb.Grant) { first(g).MemoryId = "x" },
		"a text":           func(g *pb.Grant) { first(g).Snippet = "Go!" },
		"a slot":           func(g *pb.Grant) { g.GetSelectMemory().ConflictKeys["h"] = "language" },
		"a score":          func(g *pb.Grant) { first(g).ScoreBreakdown.Total = new(0.75) },
		"a rank":           func(g *pb.Grant) { first(g).Rank = 3 },
		"a time":           func(g *pb.Grant) { first(g).Provenance.CapturedAt = timestamppb.Now() },
		"a title":          func(g *pb.Grant) { first(g).Provenance.Title = "T" },
		"an authority":     func(g *pb.Grant) { g.GetSelectMemory().AuthorityByMemoryId["h"] = workspace },
		"a scope":          func(g *pb.Grant) { g.GetSelectMemory().UserScope = "v" },
		"a policy":         func(g *pb.Grant) { g.GetSelectMemory().Policy.TopK = new(uint32(1)) },
		"a query":          func(g *pb.Grant) { g.QueryId = "r" },
		"an audience":      func(g *pb.Grant) { g.Audience = "other-name" },
		"an expiry":        func(g *pb.Grant) { g.ExpireTime = timestamppb.New(g.GetExpireTime().AsTime().Add(time.Second)) },
		"an issue":         func(g *pb.Grant) { g.IssueTime = timestamppb.New(g.GetIssueTime().AsTime().Add(-time.Second)) },
		"another request": func(g *pb.Grant) {
			g.Request = &pb.Grant_PlanPrompt{PlanPrompt: &pb.PlanPromptRequest{Memory: g.GetSelectMemory()}}
		},
	} {
		changed := proto.CloneOf(original)
		edit(changed)
		if proto.Equal(changed, original) {
			t.Errorf("%s: nothing is changed", name)
		}
		payload := base64.RawURLEncoding.EncodeToString(marshal(t, changed))
		g.refused(name, []byte(parts[0]+"."+payload+"."+parts[2]), grant.Signature, forMemory)
	}
	reencoded := base64.RawURLEncoding.EncodeToString(append(marshal(t, original), protowire.AppendVarint(protowire.AppendTag(nil, 99, protowire.VarintType), 1)...))
	g.refused("a field more", []byte(parts[0]+"."+reencoded+"."+parts[2]), grant.Signature, forMemory)
}

func withID(h *pb.RecallHit, id string) *pb.RecallHit {
	h = proto.CloneOf(h)
	h.MemoryId = id
	return h
}

// A grant is no login, and a login no grant.
func TestGrantsAndLoginsAreNotEachOther(t *testing.T) {
	login := newIssuer(t, granter)
	key := grant.SigningKey{Issuer: granter, ID: "1", Signer: login.key}
	file := login.file()
	policy := strings.Replace(grantPolicy(file), "callers:", fmt.Sprintf(
		"issuers: [{issuer: %q, keys: {file: %q}, audiences: [prompt-assembly]}]\ncallers:", granter, file), 1)
	policy = strings.Replace(policy, "  - name: relay\n    identities: [", fmt.Sprintf("  - name: relay\n    identities: [{source: jwt, issuer: %q, subject: relay}, ", granter), 1)
	g := serveAccess(t, newCA(t), policy, server.Config{})
	token := signGrant(t, key, granted(claiming(), nil))
	relay := g.bearing(t, login.token("relay", nil))
	if err := invoke(t.Context(), t, relay, carrying(forMemory, token), nil); err != nil {
		t.Errorf("a grant carried by whom the same key names: %v", err)
	}
	checkRefused(t, "a login as a grant", invoke(t.Context(), t, relay, carrying(forMemory, []byte(login.token("relay", nil))), nil), refused{
		codes.PermissionDenied, "GRANT_INVALID", map[string]string{"path": "grant", "check": "type"},
	})
	checkRefused(t, "a grant as a login", invoke(t.Context(), t, g.bearing(t, string(token)), claiming(), nil), refused{
		codes.Unauthenticated, "IDENTITY_INVALID", nil,
	})
	checkRefused(t, "a grant that nobody carries", invoke(t.Context(), t, connect(t, g.address, certified(g.ca), nil), carrying(forMemory, token), nil), refused{
		codes.Unauthenticated, "IDENTITY_MISSING", nil,
	})
	for _, id := range []string{"/harness", "/nobody"} {
		checkRefused(t, id+" is no relay", invoke(t.Context(), t, g.as(t, exampleID(id)), carrying(forMemory, token), nil), refused{
			codes.PermissionDenied, "GRANT_INVALID",
			map[string]string{"path": "grant", "check": "relay", "identity": exampleID(id), "scope": "u"},
		})
	}
}

// An ECDSA signature has a twin, which anybody can make of it. It changes nothing.
func TestTwinOfASignature(t *testing.T) {
	g := newGrantee(t)
	payload := marshal(t, granted(claiming(), nil))
	token := forged(header("ES256", "es", grant.Type, granter), payload, byES256(t, g.es256))
	i := bytes.LastIndexByte(token, '.') + 1
	signature, err := base64.RawURLEncoding.DecodeString(string(token[i:]))
	if err != nil {
		t.Fatal(err)
	}
	s := new(big.Int).SetBytes(signature[32:])
	s.Sub(elliptic.P256().Params().N, s).FillBytes(signature[32:])
	twin := append(bytes.Clone(token[:i]), base64.RawURLEncoding.EncodeToString(signature)...)
	want, err := callBytes(t, g.conn, "SelectMemory", marshal(t, carrying(forMemory, token)))
	if err != nil {
		t.Fatal(err)
	}
	got, err := callBytes(t, g.conn, "SelectMemory", marshal(t, carrying(forMemory, twin)))
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%v, or another answer", err)
	}
	digest := fmt.Sprintf("%x", sha256.Sum256(payload))
	eventually(t, "both calls are logged", func() bool { return len(g.guarded.lines(t)) >= 2 })
	for _, line := range g.guarded.lines(t) {
		if line["grant_digest"] != digest || line["grant_issuer"] != granter || line["identity"] != exampleID("/relay") || line["query_id"] != "q" {
			t.Errorf("%v", line)
		}
	}
}

// A grant that fills the largest message costs what any such message does, whatever it holds.
func TestLargestGrants(t *testing.T) {
	g := newGrantee(t)
	size := func(n int) []byte {
		payload := make([]byte, n)
		_, _ = rand.Read(payload)
		return forged(goodHeader, payload, byEd25519(g.key))
	}
	const fits = (16<<20-1024)/4*3 - 64
	g.refused("16 MiB of random bytes", size(fits), grant.Payload, forMemory)
	if err := invoke(t.Context(), t, g.conn, carrying(forMemory, size(fits+2048)), nil); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("more than a message: %v", err)
	}

	r := &pb.SelectMemoryRequest{UserScope: "u", Policy: &pb.MemorySelectionPolicy{MaxChars: &pb.Budget{Bound: &pb.Budget_Unlimited{Unlimited: true}}, TopK: new(uint32(7))}}
	for i := range 47 {
		r.Candidates = append(r.Candidates, candidate(fmt.Sprint(i), strings.Repeat(string(rune('A'+i)), 1<<18)))
	}
	if err := invoke(t.Context(), t, g.conn, carrying(r, signGrant(t, g.key, granted(r, nil))), nil); err != nil {
		t.Errorf("a request of %d bytes: %v", proto.Size(r), err)
	}
}
