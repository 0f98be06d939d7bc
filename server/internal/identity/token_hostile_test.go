package identity_test

import (
	"crypto/x509"
	"encoding/pem"
	"strings"
	"testing"
)

// everyKind are keys of each kind, by the same IDs for every issuer.
func everyKind(tb testing.TB) []object {
	tb.Helper()
	return []object{
		jwk(tb, rsaKey(), "k1", nil),
		jwk(tb, p256(), "p256", nil), jwk(tb, p384(), "p384", nil), jwk(tb, p521(), "p521", nil),
		jwk(tb, edKey(), "ed", nil),
		jwk(tb, weakRSA(), "weak", nil),
		jwk(tb, otherRSA(), "enc", object{"use": "enc"}),
		jwk(tb, otherRSA(), "ops", object{"key_ops": []string{"encrypt"}}),
		jwk(tb, otherRSA(), "rs512", object{"alg": "RS512"}),
		jwk(tb, otherRSA(), "twice", nil), jwk(tb, rsaKey(), "twice", nil),
		{"kty": "oct", "kid": "oct", "k": encode([]byte(strings.Repeat("k", 32)))},
	}
}

func TestHostileHeaders(t *testing.T) {
	tokens := tokens(t, issuerA(t, everyKind(t)...))
	payload := toJSON(t, claimsAt(today))
	public, err := x509.MarshalPKIXPublicKey(rsaKey().Public())
	if err != nil {
		t.Fatal(err)
	}
	rs256 := func(header string) string { return signed(t, "RS256", rsaKey(), header, payload) }
	more := func(member string) string { return rs256(`{"alg":"RS256","kid":"k1",` + member + `}`) }
	good := rs256(`{"alg":"RS256","kid":"k1"}`)
	parts := strings.Split(good, ".")
	unsigned := parts[0] + "." + parts[1]
	embedded := toJSON(t, jwk(t, otherRSA(), "k1", nil))
	if got := check(t, tokens, good); got != "" {
		t.Fatalf("the token that the others are made of is refused: %s", got)
	}
	for _, c := range []struct{ name, token, want string }{
		{"alg none", encode([]byte(`{"alg":"none","kid":"k1"}`)) + "." + parts[1] + ".", "algorithm"},
		{"alg None with a signature", rs256(`{"alg":"None","kid":"k1"}`), "algorithm"},
		{"no alg", rs256(`{"kid":"k1"}`), "algorithm"},
		{"alg that is no string", rs256(`{"alg":["RS256"],"kid":"k1"}`), "algorithm"},
		{"alg in lower case", rs256(`{"alg":"rs256","kid":"k1"}`), "algorithm"},
		{"alg under a name in upper case", rs256(`{"ALG":"RS256","kid":"k1"}`), "algorithm"},
		{"HS256 by the public key in PEM", hs256(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}), `{"alg":"HS256","kid":"k1"}`, payload), "algorithm"},
		{"HS256 by the public key in DER", hs256(public, `{"alg":"HS256","kid":"k1"}`, payload), "algorithm"},
		{"HS256 by the JWK", hs256([]byte(toJSON(t, jwk(t, rsaKey(), "k1", nil))), `{"alg":"HS256","kid":"k1"}`, payload), "algorithm"},
		{"HS256 by a symmetric key of the set", hs256([]byte(strings.Repeat("k", 32)), `{"alg":"HS256","kid":"oct"}`, payload), "algorithm"},
		{"RS256 that is said to be ES256", rs256(`{"alg":"ES256","kid":"k1"}`), "algorithm"},
		{"RS256 by the ID of a P-256 key", rs256(`{"alg":"RS256","kid":"p256"}`), "algorithm"},
		{"PS256, not listed", signed(t, "PS256", rsaKey(), `{"alg":"PS256","kid":"k1"}`, payload), "algorithm"},
		{"RS512, not listed", signed(t, "RS512", rsaKey(), `{"alg":"RS512","kid":"k1"}`, payload), "algorithm"},
		{"ES256 by a P-384 key", signed(t, "ES256", p384(), `{"alg":"ES256","kid":"p384"}`, payload), "algorithm"},
		{"a key for another algorithm", signed(t, "RS256", otherRSA(), `{"alg":"RS256","kid":"rs512"}`, payload), "algorithm"},
		{"a key of 1024 bits", signed(t, "RS256", weakRSA(), `{"alg":"RS256","kid":"weak"}`, payload), "unknown key"},
		{"a key for encryption", signed(t, "RS256", otherRSA(), `{"alg":"RS256","kid":"enc"}`, payload), "unknown key"},
		{"a key with operations without verify", signed(t, "RS256", otherRSA(), `{"alg":"RS256","kid":"ops"}`, payload), "unknown key"},
		{"a symmetric key", rs256(`{"alg":"RS256","kid":"oct"}`), "unknown key"},
		{"one of two keys of an ID", rs256(`{"alg":"RS256","kid":"twice"}`), "ambiguous key"},

		{"jwk", signed(t, "RS256", otherRSA(), `{"alg":"RS256","kid":"k1","jwk":`+embedded+`}`, payload), "header"},
		{"jwk without kid", signed(t, "RS256", otherRSA(), `{"alg":"RS256","jwk":`+embedded+`}`, payload), "header"},
		{"jwk null", more(`"jwk":null`), "header"},
		{"jku", more(`"jku":"https://evil.example/jwks.json"`), "header"},
		{"x5u", more(`"x5u":"https://evil.example/cert.pem"`), "header"},
		{"x5c", more(`"x5c":["MIIB"]`), "header"},
		{"crit", more(`"crit":["exp"],"exp":1`), "header"},
		{"crit empty", more(`"crit":[]`), "header"},
		{"crit null", more(`"crit":null`), "header"},
		{"b64 false", more(`"b64":false,"crit":["b64"]`), "header"},
		{"b64 true", more(`"b64":true`), "header"},
		{"zip", more(`"zip":"DEF"`), "header"},
		{"enc", more(`"enc":"A256GCM"`), "header"},

		{"typ at+jwt", more(`"typ":"AT+JWT"`), ""},
		{"typ jose", more(`"typ":"jose"`), ""},
		{"typ dpop+jwt", more(`"typ":"dpop+jwt"`), "type"},
		{"typ logout+jwt", more(`"typ":"logout+jwt"`), "type"},
		{"typ empty", more(`"typ":""`), "type"},
		{"typ null", more(`"typ":null`), "type"},
		{"typ that Unicode folds", more(`"typ":"JWT` + "\u212a" + `"`), "type"},

		{"kid of 256 bytes", rs256(`{"alg":"RS256","kid":"` + strings.Repeat("k", 256) + `"}`), "unknown key"},
		{"kid of 257 bytes", rs256(`{"alg":"RS256","kid":"` + strings.Repeat("k", 257) + `"}`), "key id"},
		{"kid of 1 MiB", rs256(`{"alg":"RS256","kid":"` + strings.Repeat("k", 1<<20) + `"}`), "too long"},
		{"kid that is a number", rs256(`{"alg":"RS256","kid":1}`), "key id"},
		{"kid empty", rs256(`{"alg":"RS256","kid":""}`), "key id"},
		{"kid null", rs256(`{"alg":"RS256","kid":null}`), "key id"},
		{"no kid, several keys", rs256(`{"alg":"RS256"}`), "key id"},
		{"kid that is a path", rs256(`{"alg":"RS256","kid":"../../dev/null"}`), "unknown key"},

		{"JWE", parts[0] + ".." + parts[1] + "." + parts[1] + "." + parts[2], "malformed"},
		{"JSON serialisation", `{"protected":"` + parts[0] + `","payload":"` + parts[1] + `","signature":"` + parts[2] + `"}`, "malformed"},
		{"empty", "", "malformed"},
		{"two parts", unsigned, "malformed"},
		{"four parts", good + ".", "malformed"},
		{"no header", "." + parts[1] + "." + parts[2], "malformed"},
		{"no payload", parts[0] + ".." + parts[2], "malformed"},
		{"no signature", unsigned + ".", "signature"},
		{"a space before", " " + good, "malformed"},
		{"a line break behind", good + "\n", "malformed"},
		{"a line break in the header", parts[0][:5] + "\n" + parts[0][5:] + "." + parts[1] + "." + parts[2], "malformed"},
		{"a line break in the payload", parts[0] + "." + parts[1][:5] + "\r\n" + parts[1][5:] + "." + parts[2], "malformed"},
		{"a line break in the signature", unsigned + "." + parts[2][:5] + "\n" + parts[2][5:], "malformed"},
		{"padding", good + "==", "malformed"},
		{"standard base64", unsigned + "." + strings.Repeat("+/", 171), "malformed"},
		{"duplicate member of the header", rs256(`{"alg":"RS256","kid":"k1","kid":"k1"}`), "malformed"},
		{"duplicate member, escaped", rs256(`{"alg":"RS256","kid":"k1","k\u0069d":"k1"}`), "malformed"},
		{"duplicate member, nested", rs256(`{"alg":"RS256","kid":"k1","x":[{"y":1,"y":1}]}`), "malformed"},
		{"header that is an array", rs256(`["RS256"]`), "malformed"},
		{"header that is null", rs256(`null`), "malformed"},
		{"two headers", rs256(`{"alg":"RS256","kid":"k1"}{}`), "malformed"},
		{"header that is not UTF-8", rs256("{\"alg\":\"RS256\",\"kid\":\"k1\",\"x\":\"\xff\"}"), "malformed"},
		{"longer than 16 KiB", rs256(`{"alg":"RS256","kid":"k1","x":"` + strings.Repeat("x", 16<<10) + `"}`), "too long"},

		{"another's signature", signed(t, "RS256", otherRSA(), `{"alg":"RS256","kid":"k1"}`, payload), "signature"},
		{"another payload", parts[0] + "." + encode([]byte(toJSON(t, with(claimsAt(today), object{"sub": "admin"})))) + "." + parts[2], "signature"},
		{"another header", encode([]byte(`{"alg":"RS256","kid":"k1" }`)) + "." + parts[1] + "." + parts[2], "signature"},
		{"DER instead of two numbers", derES256(t, payload), "signature"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := check(t, tokens, c.token); got != c.want {
				t.Errorf("%s: %q, want %q", quoted(c.token), got, c.want)
			}
		})
	}
}

func derES256(tb testing.TB, payload string) string {
	tb.Helper()
	valid := signed(tb, "ES256", p256(), `{"alg":"ES256","kid":"p256"}`, payload)
	return valid[:strings.LastIndexByte(valid, '.')+1] + encode([]byte("\x30\x06\x02\x01\x01\x02\x01\x01"))
}

// Base64 has several spellings of bytes whose number is no multiple of three, of which one counts.
func TestSpareBits(t *testing.T) {
	tokens := tokens(t, issuerA(t, jwk(t, rsaKey(), "k1", nil)))
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	header, payload := `{"alg":"RS256","kid":"k1"}`, toJSON(t, claimsAt(today))
	for len(payload)%3 == 0 {
		payload += " "
	}
	token := signed(t, "RS256", rsaKey(), header, payload)
	accepted(t, tokens, token)
	parts := strings.Split(token, ".")
	for n := range parts {
		last := parts[n][len(parts[n])-1]
		other := alphabet[strings.IndexByte(alphabet, last)|1]
		if other == last {
			t.Fatalf("part %d has no spare bit", n)
		}
		changed := append([]string(nil), parts...)
		changed[n] = parts[n][:len(parts[n])-1] + string(other)
		if got := check(t, tokens, strings.Join(changed, ".")); got != "malformed" {
			t.Errorf("part %d with a spare bit: %q", n, got)
		}
	}
}
