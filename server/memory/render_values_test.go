package memory_test

import (
	"math"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/promptassembly/promptassembly/server/memory"
)

func TestScore(t *testing.T) {
	for _, tt := range []struct {
		score float64
		want  string
	}{
		{0, "0"},
		{math.Copysign(0, -1), "0"},
		{1, "1"},
		{0.5, "0.5"},
		{0.93, "0.93"},
		{0.1234, "0.1234"},
		{0.0001, "0.0001"},
		{0.001, "0.001"},
		{0.1, "0.1"},
		{0.1001, "0.1001"},
		{0.99994, "0.9999"},
		{0.99995, "1"}, // as a float64 a little above the tie
		{0.99996, "1"},
		{0.00005, "0.0001"}, // a little above the tie
		{0.00015, "0.0001"}, // a little below the tie
		{0.00004, "0"},
		{math.SmallestNonzeroFloat64, "0"},
		{math.Nextafter(1, 0), "1"},
		{0.03125, "0.0312"}, // a tie: 1/32
		{0.09375, "0.0938"}, // a tie: 3/32
		{0.15625, "0.1562"}, // a tie: 5/32
		{0.96875, "0.9688"}, // a tie: 31/32
		{math.Nextafter(0.03125, 1), "0.0313"},
		{math.Nextafter(0.09375, 0), "0.0937"},
	} {
		if got := memory.Score(tt.score); got != tt.want {
			t.Errorf("%v is rendered as %s, want %s", tt.score, got, tt.want)
		}
	}
}

// decimal rounds by the standard library, which rounds the exact value to even.
func decimal(score float64) string {
	if score == 0 {
		return "0" // and not "-0"
	}
	return strings.TrimRight(strings.TrimRight(strconv.FormatFloat(score, 'f', 4, 64), "0"), ".")
}

func checkScore(t rapid.TB, score float64) {
	got, want := memory.Score(score), decimal(score)
	if got != want {
		t.Fatalf("%v is rendered as %s, want %s", score, got, want)
	}
	if memory.ScoreChars(score) != len(want) {
		t.Fatalf("%v takes %d chars, computed are %d", score, len(want), memory.ScoreChars(score))
	}
	exact, err := strconv.ParseFloat(memory.ExactScore(score), 64)
	if err != nil || exact != score {
		t.Fatalf("%v in full is %s", score, memory.ExactScore(score))
	}
}

func TestScoreRoundsTheExactValue(t *testing.T) {
	// Every decimal half between two results, and what lies next to it; true ties are among them.
	for n := range 10000 {
		half := (float64(n) + 0.5) / 10000
		below, above := math.Nextafter(half, 0), math.Nextafter(half, 1)
		for _, score := range []float64{half, below, above, math.Nextafter(below, 0), math.Nextafter(above, 1), float64(n) / 10000} {
			checkScore(t, score)
		}
	}
	for n := range 1<<12 + 1 {
		checkScore(t, float64(n)/(1<<12))
	}
	rapid.Check(t, func(t *rapid.T) { checkScore(t, rapid.Float64Range(0, 1).Draw(t, "score")) })
}

func TestInstant(t *testing.T) {
	for _, tt := range []struct{ at, want string }{
		{"2026-08-17T09:00:00Z", "2026-08-17T09:00:00Z"},
		{"2026-08-17T09:00:00.000Z", "2026-08-17T09:00:00Z"},
		{"2026-08-17T01:00:00+09:00", "2026-08-16T16:00:00Z"},
		{"2026-08-17T09:00:00.5Z", "2026-08-17T09:00:00.5Z"},
		{"2026-08-17T09:00:00.050Z", "2026-08-17T09:00:00.05Z"},
		{"2026-08-17T09:00:00.000000001Z", "2026-08-17T09:00:00.000000001Z"},
		{"0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z"},
		{"0099-12-31T23:59:59.9Z", "0099-12-31T23:59:59.9Z"},
		{"9999-12-31T23:59:59.999999999Z", "9999-12-31T23:59:59.999999999Z"},
		{"1969-12-31T23:59:59.75Z", "1969-12-31T23:59:59.75Z"},
		{"2024-02-29T00:00:00Z", "2024-02-29T00:00:00Z"},
	} {
		if got := instant(tt.at).Text(); got != tt.want {
			t.Errorf("%s is rendered as %s, want %s", tt.at, got, tt.want)
		}
	}
}

var (
	firstInstant = instant("0001-01-01T00:00:00Z")
	lastInstant  = instant("9999-12-31T23:59:59.999999999Z")
	anyInstant   = rapid.Custom(func(t *rapid.T) memory.Instant {
		nanos := rapid.Int32Range(0, 999_999_999).Draw(t, "nanos")
		unit := rapid.SampledFrom([]int32{1, 10, 1000, 1_000_000, 100_000_000, 1_000_000_000}).Draw(t, "unit")
		return memory.Instant{
			Seconds: rapid.Int64Range(firstInstant.Seconds, lastInstant.Seconds).Draw(t, "seconds"),
			Nanos:   nanos - nanos%unit,
			Set:     true,
		}
	})
)

func TestInstantIsRenderedAsByTheStandardLibrary(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := anyInstant.Draw(t, "instant")
		want := time.Unix(at.Seconds, int64(at.Nanos)).UTC().Format(time.RFC3339Nano)
		if got := at.Text(); got != want || at.Chars() != len(want) {
			t.Fatalf("%+v is rendered as %s in %d chars, want %s", at, got, at.Chars(), want)
		}
	})
}

func TestComputedCharsAreThoseRendered(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		same := func(what, rendered string, computed int) {
			if got := utf8.RuneCountInString(rendered); got != computed {
				t.Fatalf("%s: %d chars are rendered, computed are %d:\n%q", what, got, computed, rendered)
			}
		}
		c := drawCandidate(t, home)
		same("text", memory.Text(c.Text), memory.TextChars(c.Text))
		same("attribute", memory.Attribute(c.Text), memory.AttributeChars(c.Text))
		same("FULL", memory.Line(&c, memory.Full, 1), memory.LineChars(&c, memory.Full)+1)
		same("COMPACT", memory.Line(&c, memory.Compact, 1), memory.LineChars(&c, memory.Compact)+1)

		scope := hostileText.Draw(t, "scope")
		place := rapid.SampledFrom([]int{1, 9, 10, 99, 100, 10_000}).Draw(t, "place")
		digits := len(strconv.Itoa(place))
		same("opening", memory.Opening(scope, place), memory.OpeningChars(scope)+digits)
		same("COMPACT, later", memory.Line(&c, memory.Compact, place), memory.LineChars(&c, memory.Compact)+digits)
	})
}
