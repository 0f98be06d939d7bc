package bpe_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/promptassembly/promptassembly/server/tokens/bpe"
)

// With TOKENIZERS naming a folder of vocabularies NAME.json, and counts.json.gz recorded of them by the
// reference, which .ci/run makes from packages.
func TestRealVocabularies(t *testing.T) {
	folder := os.Getenv("TOKENIZERS")
	if folder == "" {
		t.Skip("TOKENIZERS is not set")
	}
	texts := readTexts(t, filepath.Join(folder, "texts.jsonl.gz"))
	for name, counts := range readRecorded(t, filepath.Join(folder, "counts.json.gz")).Counts {
		t.Run(name, func(t *testing.T) {
			file, err := os.ReadFile(filepath.Join(folder, name+".json"))
			if err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			c, err := bpe.Load(name, file)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("loaded in %v, additive: %t", time.Since(start), c.Additive())
			compare(t, c, texts, counts)
		})
	}
}
