package bpe_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/promptassembly/promptassembly/server/tokens/bpe"
)

// With REFERENCE naming a folder of further texts, real vocabularies NAME.json from packages, and what
// the references count; .ci/run makes it.
func TestFurtherTexts(t *testing.T) {
	folder := os.Getenv("REFERENCE")
	if folder == "" {
		t.Skip("REFERENCE names no folder")
	}
	texts := readTexts(t, filepath.Join(folder, "texts.jsonl.gz"))
	for name, counts := range readRecorded(t, filepath.Join(folder, "embedded.json.gz")).Counts {
		t.Run(name, func(t *testing.T) { compare(t, embedded(t, name), texts, counts) })
	}
	for name, counts := range readRecorded(t, filepath.Join(folder, "loaded.json.gz")).Counts {
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
			t.Logf("loaded in %v; additive: %t", time.Since(start), c.Additive())
			compare(t, c, texts, counts)
		})
	}
}
