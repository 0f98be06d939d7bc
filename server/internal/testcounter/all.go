package testcounter

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/promptassembly/promptassembly/server/tokens"
	"github.com/promptassembly/promptassembly/server/tokens/bpe"
)

// All returns a counter of every kind: those of this package, the estimate, the embedded encodings, and
// one for each tokenizer.json in the folder. It panics if one of these is broken.
func All(folder string) []tokens.Counter {
	all := []tokens.Counter{Pieces{}, Merges{}, Blocks{}, tokens.Estimate{}}
	for _, c := range bpe.Embedded() {
		if strings.HasSuffix(c.Name(), "_base") {
			all = append(all, c)
		}
	}
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil || len(files) == 0 {
		panic("testcounter: no tokenizer.json in " + folder)
	}
	for _, path := range files {
		content, err := os.ReadFile(path)
		if err != nil {
			panic(err)
		}
		c, err := bpe.Load(strings.TrimSuffix(filepath.Base(path), ".json"), content)
		if err != nil {
			panic(err)
		}
		all = append(all, c)
	}
	return all
}
