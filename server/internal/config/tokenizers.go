package config

import (
	"fmt"
	"strings"

	"github.com/promptassembly/promptassembly/server"
)

// maxTokenizers is how many there may be: all their names fit into a refusal.
const maxTokenizers = 32

func checkTokenizers(list string) error {
	_, err := parseTokenizers(list)
	return err
}

// tokenizersOf returns what checkTokenizers has found to be a list.
func tokenizersOf(list string) []server.TokenizerFile {
	files, _ := parseTokenizers(list)
	return files
}

func parseTokenizers(list string) ([]server.TokenizerFile, error) {
	if list == "" {
		return nil, nil
	}
	var files []server.TokenizerFile
	seen := make(map[string]bool)
	for entry := range strings.SplitSeq(list, ",") {
		entry = strings.TrimSpace(entry)
		file, err := server.ParseTokenizerFile(entry)
		switch {
		case err != nil:
			return nil, fmt.Errorf("%s %w", quoted(entry), err)
		case seen[file.Name]:
			return nil, fmt.Errorf("%s stands there twice", file.Name)
		case len(files) == maxTokenizers:
			return nil, fmt.Errorf("there are more than %d", maxTokenizers)
		}
		seen[file.Name] = true
		files = append(files, file)
	}
	return files, nil
}
