package main

import (
	"strings"
	"testing"
)

// The counts of the two encodings are the reference implementation's.
const countedText = "请用简体中文回答, not English.\n"

func TestCount(t *testing.T) {
	want := `tokenizer   tokens exact
estimate        12 no
cl100k_base     13 yes
o200k_base      10 yes
chars 23, bytes 39
`
	args := []string{"count", "--tokenizer", "estimate,cl100k_base", "--tokenizer", "o200k_base"}
	for name, got := range map[string]result{
		"standard input": promptctl(t, countedText, args...),
		"a dash":         promptctl(t, countedText, append(args, "-")...),
		"a file":         promptctl(t, "", append(args, file(t, "text", countedText))...),
	} {
		if got.status != 0 || got.stderr != "" || got.stdout != want {
			t.Errorf("%s: status %d, stderr %q, stdout\n%s\nwant\n%s", name, got.status, got.stderr, got.stdout, want)
		}
	}
}

func TestCountJSON(t *testing.T) {
	got := promptctl(t, countedText, "count", "-o", "json", "--tokenizer", "gpt-4o,estimate")
	want := `{
  "bytes": 39,
  "chars": 23,
  "tokens": [
    {
      "tokenizer": "gpt-4o",
      "exact": true,
      "count": 10
    },
    {
      "tokenizer": "estimate",
      "exact": false,
      "count": 12
    }
  ]
}
`
	if got.status != 0 || got.stdout != want {
		t.Errorf("status %d, stderr %q, stdout\n%s\nwant\n%s", got.status, got.stderr, got.stdout, want)
	}
}

// gpt2File describes a small vocabulary. In it "a b" is two tokens.
const gpt2File = "../../../server/tokens/bpe/testdata/small/gpt2.json"

func TestCountWithFile(t *testing.T) {
	got := promptctl(t, "a b", "count", "--tokenizer-file", "mine="+gpt2File)
	if want := "tokenizer tokens exact\nmine           2 yes\nchars 3, bytes 3\n"; got.status != 0 || got.stdout != want {
		t.Errorf("got %+v, want %s", got, want)
	}
	got = promptctl(t, "a b", "count", "--tokenizer-file", "mine="+gpt2File, "--tokenizer", "estimate,mine")
	if want := "tokenizer tokens exact\nestimate       2 no\nmine           2 yes\nchars 3, bytes 3\n"; got.status != 0 || got.stdout != want {
		t.Errorf("got %+v, want %s", got, want)
	}
}

func TestCountOfNothing(t *testing.T) {
	if got := promptctl(t, "", "count", "-"); got.status != 0 || !strings.HasSuffix(got.stdout, "\nchars 0, bytes 0\n") {
		t.Errorf("got %+v", got)
	}
}

func TestCountWantsText(t *testing.T) {
	got := promptctl(t, "\xff", "count")
	if want := "promptctl: standard input: the text is no UTF-8\n"; got.status != 1 || got.stdout != "" || got.stderr != want {
		t.Errorf("got %+v, want %s", got, want)
	}
}
