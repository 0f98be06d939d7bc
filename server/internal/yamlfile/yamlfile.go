// Package yamlfile is what the strict readers of YAML files have in common.
package yamlfile

import (
	"fmt"
	"io"
	"os"

	"go.yaml.in/yaml/v3"
)

// MaxBytes bounds a file.
const MaxBytes = 1 << 20

// Read returns the content of a file of at most MaxBytes.
func Read(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	data, err := io.ReadAll(io.LimitReader(file, MaxBytes+1))
	if err == nil && len(data) > MaxBytes {
		err = fmt.Errorf("%s is larger than 1 MiB", path)
	}
	return data, err
}

// What says what a node is, without its value.
func What(node *yaml.Node) string {
	name, ok := map[string]string{
		"!!str": "text", "!!int": "a number", "!!float": "a number", "!!bool": "true or false", "!!null": "empty",
		"!!timestamp": "a date", "!!seq": "a list", "!!map": "a mapping", // and tags of a file's own
	}[node.ShortTag()]
	if !ok {
		return "something else"
	}
	return name
}
