package bpe_test

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/promptassembly/promptassembly/server/tokens/bpe"
)

// recorded is how many tokens a reference implementation makes of the texts, by encoding. Both are
// made by the scripts in .ci/tokens.
type recorded struct {
	Reference string
	Counts    map[string][]int
}

func readRecorded(t testing.TB, path string) recorded {
	var r recorded
	if err := json.NewDecoder(unpacked(t, path)).Decode(&r); err != nil {
		t.Fatal(err)
	}
	return r
}

func readTexts(t testing.TB, path string) []string {
	var texts []string
	lines := bufio.NewScanner(unpacked(t, path))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var text string
		if err := json.Unmarshal(lines.Bytes(), &text); err != nil {
			t.Fatal(err)
		}
		texts = append(texts, text)
	}
	if lines.Err() != nil {
		t.Fatal(lines.Err())
	}
	return texts
}

func unpacked(t testing.TB, path string) *gzip.Reader {
	f, err := os.Open(filepath.FromSlash(path))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	reader, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	return reader
}

// compare reports the texts of which the counter makes another number of tokens than the reference.
func compare(t *testing.T, c *bpe.Counter, texts []string, counts []int) {
	if len(texts) < 20_000 || len(counts) != len(texts) {
		t.Fatalf("%d texts and %d counts", len(texts), len(counts))
	}
	wrong := 0
	for i, text := range texts {
		if got := c.Count([]byte(text)); got != counts[i] {
			if wrong++; wrong <= 10 {
				t.Errorf("%q has %d tokens, want %d", text, got, counts[i])
			}
		}
	}
	t.Logf("%s: %d mismatches in %d texts", c.Name(), wrong, len(texts))
}

func embedded(t testing.TB, name string) *bpe.Counter {
	for _, c := range bpe.Embedded() {
		if c.Name() == name {
			return c
		}
	}
	t.Fatalf("no encoding %s is embedded", name)
	return nil
}

func TestEmbeddedAgainstReference(t *testing.T) {
	texts := readTexts(t, "testdata/texts.jsonl.gz")
	r := readRecorded(t, "testdata/tiktoken.json.gz")
	for _, name := range []string{"cl100k_base", "o200k_base"} {
		t.Run(name, func(t *testing.T) { compare(t, embedded(t, name), texts, r.Counts[name]) })
	}
}

// A small vocabulary with the pre-tokenisers, normalisers and added tokens of the families.
func TestSmallVocabularies(t *testing.T) {
	texts := readTexts(t, "testdata/texts.jsonl.gz")
	counts := readRecorded(t, "testdata/small.json.gz").Counts
	files, err := filepath.Glob("testdata/small/*.json")
	if err != nil || len(files) != len(counts) {
		t.Fatalf("%d files, counts of %d: %v", len(files), len(counts), err)
	}
	for _, path := range files {
		name := strings.TrimSuffix(filepath.Base(path), ".json")
		t.Run(name, func(t *testing.T) {
			file, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			c, err := bpe.Load(name, file)
			if err != nil {
				t.Fatal(err)
			}
			compare(t, c, texts, counts[name])
		})
	}
}
