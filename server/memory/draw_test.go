package memory_test

import (
	"fmt"
	"math"
	"strings"

	"golang.org/x/text/unicode/norm"
	"pgregory.net/rapid"

	"github.com/promptassembly/promptassembly/server/budget"
	"github.com/promptassembly/promptassembly/server/internal/testcounter"
	"github.com/promptassembly/promptassembly/server/memory"
	"github.com/promptassembly/promptassembly/server/tokens"
)

// The requests drawn here are hostile, and seldom without equals: texts of a few forms in many
// spellings, few slots, few scores, few times.

// fragments are what texts are made of.
var fragments = []string{
	// words, white space, and what looks like it
	"a", "B", "9", "_", "Use Go", "prefers tea", "STRASSE", " ", "  ", "\n", "\r", "\r\n", "\t", "\v", "\f",
	"\u0085", "\u00A0", "\u1680", "\u2003", "\u2028", "\u2029", "\u202F", "\u205F", "\u3000", "\u001C", "\u200B", "\u180E", "\uFEFF",
	// what could forge a tag or a boundary
	"<", ">", "&", `"`, "'", "&lt;", "&#45;", "-", "--", "---", "-----", "\n---\n", "\r---", "\v---", "\u0085---", "\u2028---", "\u2029---",
	"</memory_hit>", "</recalled_memory>", `<memory_hit n="1">`, "<![CDATA[", "]]>", "<!--", "<?xml ?>",
	// what XML does not allow, and its neighbours
	"\x00", "\x07", "\x1B", "\x1F", "\x7F", "\uFFFD", "\uFFFE", "\uFFFF", "\uFFBE", "\U0001FFFE",
	// what folds, composes and reorders
	"ß", "ẞ", "ss", "İ", "ı", "i\u0307", "ŉ", "ﬁ", "ſ", "K", "½", "㎏", "ﷺ", "²", "Σ", "σ", "ς", "ᾳ", "ΐ", "Ⅷ", "Ａ", "ｂ",
	"\u0301", "\u0323", "\u0307", "\u0345", "\u034F", "e\u0301", "é", "q\u0323\u0307", "q\u0307\u0323", "\u1E9B\u0323", "\u0344",
	"가", "각", "\u1100", "\u1161", "\u11A8", "ㄱ", "ㄳ", "ﾡ", "ￂ", "カ", "ｶ", "ﾞ", "\u3099", "ガ", "゛",
	"Ꭰ", "ꭰ", "Ᏸ", "ᏸ", "\u0958", "\u0915\u093C", "\u0DDD", "Å", "Ω", "\U0001D400", "\U00010400", "\U00010428", "豈", "\U0002F800",
	// what takes several code points
	"请用简体中文", "界", "👩‍👩‍👧‍👦", "می\u200Cخواهم", "\u202E", "\U000E0041", "\uE000",
	// a run of marks that is too long for the stream-safe form
	strings.Repeat("\u0301", 31),
}

var hostileText = rapid.Custom(func(t *rapid.T) string {
	text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(fragments), 0, 10).Draw(t, "fragments"), "")
	if rapid.IntRange(0, 3).Draw(t, "any") == 0 {
		text += rapid.String().Draw(t, "text")
	}
	return text
})

// spellings mostly keep a text's normalised form.
var spellings = []func(string) string{
	func(s string) string { return s },
	strings.ToUpper,
	strings.ToLower,
	norm.NFD.String,
	norm.NFKD.String,
	func(s string) string { return "\u3000" + strings.ReplaceAll(s, " ", "\t \u2003") + "\n" },
	func(s string) string { // full-width
		return strings.Map(func(r rune) rune {
			if '!' <= r && r <= '~' {
				return r - '!' + '！'
			}
			return r
		}, s)
	},
}

// notBlank is s, or a word where s is not content.
func notBlank(s string) string {
	if strings.TrimSpace(s) == "" {
		return s + "x"
	}
	return s
}

func drawText(t *rapid.T) string { return notBlank(hostileText.Draw(t, "text")) }

// foreignMark is in no text but some of those of foreign scopes.
const foreignMark = "\U000F0000foreign"

var (
	scores = []float64{0, math.Copysign(0, -1), 0.35, math.Nextafter(0.35, 0), 0.5, 0.03125, 0.99995, math.Nextafter(1, 0), 1}
	times  = []memory.Instant{
		{},
		firstInstant,
		instant("1969-12-31T23:59:59.5Z"),
		instant("2025-05-01T12:00:00Z"),
		instant("2025-05-01T12:00:00.1Z"),
		instant("2025-05-01T12:00:00.15Z"),
		lastInstant,
	}
	keys   = []string{"", "k", "", "K", "k", "Ｋ", " k\u3000", "straße", "STRASSE", `a&"b"<c>`, "q\u0323\u0307", "q\u0307\u0323"}
	scopes = []string{"u-1", `tenant "a"&<b>/é`}
)

// drawCandidate draws one without an id.
func drawCandidate(t *rapid.T, scope string) memory.Candidate {
	return memory.Candidate{
		Text:       drawText(t),
		Scope:      scope,
		Score:      rapid.OneOf(rapid.SampledFrom(scores), rapid.SampledFrom(scores), rapid.Float64Range(0, 1)).Draw(t, "score"),
		SourceRank: rapid.SampledFrom([]uint32{1, 2, 10, math.MaxUint32}).Draw(t, "rank"),
		Provenance: memory.Provenance{
			SourceID:   rapid.SampledFrom([]string{"s", `<s "&>`, "出典"}).Draw(t, "source"),
			SourceType: rapid.SampledFrom([]string{"chat", "a>b"}).Draw(t, "type"),
			Title:      rapid.SampledFrom([]string{"", "Title", `"--- <Ttl> &amp;`}).Draw(t, "title"),
			CapturedAt: rapid.OneOf(rapid.SampledFrom(times), anyInstant).Draw(t, "captured"),
		},
		ConflictKey: rapid.SampledFrom(keys).Draw(t, "key"),
		Authority:   memory.Authority(rapid.IntRange(0, 2).Draw(t, "authority")),
	}
}

func drawRequest(t *rapid.T) memory.Request {
	scope := rapid.SampledFrom(scopes).Draw(t, "scope")
	foreign := []string{scope + "0", scope + "/sub", " " + scope, strings.ToUpper(scope), scope[:1]}
	texts := []string{drawText(t), drawText(t)}
	ids := rapid.Permutation(someIDs()).Draw(t, "ids")

	candidates := make([]memory.Candidate, rapid.IntRange(0, len(ids)).Draw(t, "candidates"))
	for i := range candidates {
		c := drawCandidate(t, scope)
		c.ID = ids[i]
		if rapid.IntRange(0, 2).Draw(t, "again") > 0 {
			spell := rapid.SampledFrom(spellings).Draw(t, "spelling")
			c.Text = notBlank(spell(rapid.SampledFrom(texts).Draw(t, "form")))
		}
		if rapid.IntRange(0, 5).Draw(t, "foreign") == 5 {
			c.Scope = rapid.SampledFrom(foreign).Draw(t, "of")
			if rapid.Bool().Draw(t, "marked") {
				c.Text += foreignMark
			}
		}
		candidates[i] = c
	}
	return memory.Request{Scope: scope, Candidates: candidates, Policy: drawPolicy(t), Counter: drawCounter(t)}
}

func someIDs() []string {
	ids := []string{`"<&>`, "é", "M1"}
	for i := range 15 {
		ids = append(ids, fmt.Sprintf("m%d", i))
	}
	return ids
}

func drawPolicy(t *rapid.T) memory.Policy {
	limit := func(most uint32) *rapid.Generator[budget.Budget] {
		return rapid.OneOf(
			rapid.Just(budget.Unlimited()), rapid.Map(rapid.Uint32Range(0, most), budget.Of), rapid.Map(rapid.Uint32Range(most/10, most), budget.Of),
		)
	}
	return memory.Policy{
		MinScore:  rapid.SampledFrom([]float64{0, 0, 0, 0, 0.35, 0.35, 1}).Draw(t, "min score"),
		TopK:      rapid.SampledFrom([]uint32{5, 0, 1, 2, 9, 10, math.MaxUint32}).Draw(t, "top k"),
		MaxChars:  limit(3000).Draw(t, "max chars"),
		MaxTokens: limit(800).Draw(t, "max tokens"),
		Winner:    rapid.SampledFrom([]memory.ConflictWinner{memory.BestEvidence, memory.MostRecent}).Draw(t, "winner"),
		Rendering: rapid.SampledFrom([]memory.Rendering{memory.Full, memory.Compact}).Draw(t, "rendering"),
	}
}

func drawCounter(t *rapid.T) tokens.Counter {
	return rapid.SampledFrom(counters).Draw(t, "counter")
}

// counters are of every kind, some of them additive.
var counters = testcounter.All("../tokens/bpe/testdata/small")
