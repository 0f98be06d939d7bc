package main

import (
	"strings"
	"testing"
)

// What could drive a terminal, or reorder what it shows, is escaped; the value stays the same.
func TestInvisibleCharactersAreEscaped(t *testing.T) {
	const text = "a\u009b31m\u007f \u202eb\u2028c \u00e9 \U0001F600\u200d\U000E0041"
	const want = `a\u009b31m\u007f \u202eb\u2028c é 😀\u200d\udb40\udc41`
	request := `{"userScope":"u","candidates":[{"memoryId":"m","text":"` + text + `","userScope":"u","score":1,"sourceRank":1,` +
		`"provenance":{"sourceId":"s","sourceType":"s"}}]}`
	for _, args := range [][]string{{"select"}, {"select", "--jsonl"}} {
		got := promptctl(t, request, args...)
		if got.status != 0 || !strings.Contains(got.stdout, want) {
			t.Errorf("%v: status %d, %q, want %q in it", args, got.status, got.stdout, want)
		}
	}
}
