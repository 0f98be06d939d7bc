package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/promptassembly/promptassembly/server/internal/yamlfile"
)

// file adds the layer of the YAML file at path, which origin names.
func (l *loader) file(path, origin string) {
	if path == "" {
		l.fault(FileKey, origin, "names no file")
		return
	}
	data, err := yamlfile.Read(path)
	if err != nil {
		l.fault(FileKey, origin, err.Error())
		return
	}
	root, err := parseFile(data)
	if err != nil {
		l.fault("", path, err.Error())
		return
	}
	layer := layer{values: make(map[string]any), origin: func(Key) string { return path }}
	if root != nil {
		(&reader{l, layer, path}).section("", root)
	}
	l.layers = append(l.layers, layer)
}

// parseFile returns the mapping that is the file's one document, or nil if there is nothing in it.
func parseFile(data []byte) (*yaml.Node, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var document yaml.Node
	switch err := decoder.Decode(&document); {
	case errors.Is(err, io.EOF):
		return nil, nil
	case err != nil:
		return nil, syntaxError(err)
	}
	switch err := decoder.Decode(new(yaml.Node)); {
	case err == nil:
		return nil, errors.New("holds more than one YAML document; must be one")
	case !errors.Is(err, io.EOF):
		return nil, syntaxError(err)
	}
	root := document.Content[0]
	if root.ShortTag() == "!!null" {
		return nil, nil
	}
	if root.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("is %s; must be a mapping of keys to values", yamlfile.What(root))
	}
	return root, nil
}

// syntaxError says where the file is no YAML, but not what text, perhaps a secret, was taken for the
// name of an anchor.
func syntaxError(err error) error {
	if strings.Contains(err.Error(), "anchor") {
		return errors.New("is no YAML: an unknown anchor; text that begins with * goes in quotes")
	}
	return errors.New("is no YAML: " + strings.TrimPrefix(err.Error(), "yaml: "))
}

// reader reads the values of a file into a layer.
type reader struct {
	*loader
	layer layer
	path  string
}

// section reads the mapping with the keys that begin with prefix.
func (r *reader) section(prefix string, mapping *yaml.Node) {
	seen := make(map[string]int) // the lines
	for pair := range slices.Chunk(mapping.Content, 2) {
		name, value := prefix+pair[0].Value, pair[1]
		if value.Kind == yaml.AliasNode {
			value = value.Alias
		}
		at := fmt.Sprintf("%s:%d", r.path, pair[0].Line)
		if line, twice := seen[name]; twice {
			r.fault(name, at, fmt.Sprintf("stands in line %d already; must stand once", line))
			continue
		}
		seen[name] = pair[0].Line

		key, known := r.byName[name]
		switch {
		case known && pair[0].Kind == yaml.ScalarNode && !strings.Contains(pair[0].Value, "."):
			r.value(key, value, at)
		case !r.isSection(name):
			r.fault(name, at, "there is no such key; there are "+strings.Join(r.names(prefix), ", "))
		case value.ShortTag() == "!!null": // all of it is commented out
		case value.Kind != yaml.MappingNode:
			r.fault(name, at, fmt.Sprintf("is %s; must be a mapping, with %s", yamlfile.What(value), strings.Join(r.names(name+"."), ", ")))
		default:
			r.section(name+".", value)
		}
	}
}

// value reads the value of a key. A text may not be written as a number and the like, or YAML would
// make something else of it, and the other way round.
func (r *reader) value(key Key, node *yaml.Node, at string) {
	tag := node.ShortTag()
	tags := map[Kind][]string{
		Bool: {"!!bool"}, Duration: {"!!str", "!!int"}, Size: {"!!str", "!!int"}, Count: {"!!int"}, Fraction: {"!!int", "!!float"},
	}[key.Kind]
	if tags == nil {
		tags = []string{"!!str"}
	}
	switch {
	case node.Kind == yaml.ScalarNode && slices.Contains(tags, tag):
		r.set(r.layer, key, node.Value, at)
	case tags[0] == "!!str" && slices.Contains([]string{"!!int", "!!float", "!!bool", "!!timestamp"}, tag):
		r.fault(key.Name, at, fmt.Sprintf("is %s; must be %s, in quotes", yamlfile.What(node), key.Allowed()))
	default:
		r.fault(key.Name, at, fmt.Sprintf("is %s; must be %s", yamlfile.What(node), key.Allowed()))
	}
}

// names returns the names of the keys and the sections that come right after prefix.
func (r *reader) names(prefix string) []string {
	var names []string
	for _, key := range r.keys {
		if rest, ok := strings.CutPrefix(key.Name, prefix); ok {
			name, _, _ := strings.Cut(rest, ".")
			names = append(names, name)
		}
	}
	return slices.Compact(names)
}

func (r *reader) isSection(name string) bool {
	return !strings.HasSuffix(name, ".") && slices.ContainsFunc(r.keys, func(key Key) bool { return strings.HasPrefix(key.Name, name+".") })
}
