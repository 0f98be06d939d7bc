package policy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/promptassembly/promptassembly/server/internal/yamlfile"
)

// field is a value of a file, and where it stands. A nil node is one that is not there.
type field struct {
	*yaml.Node
	path string
}

// reader reads a YAML file strictly: a value is of the type that it must be and nothing is made into
// it, and all that is written means something.
type reader struct {
	faults
}

// document returns the mapping that is the one document of data, or an absent field after a fault.
func (r *reader) document(data []byte) field {
	if len(data) > yamlfile.MaxBytes {
		r.add(0, "is larger than 1 MiB")
		return field{}
	}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var document yaml.Node
	switch err := decoder.Decode(&document); {
	case errors.Is(err, io.EOF):
		r.add(0, "is empty; must be a mapping of keys to values")
		return field{}
	case err != nil:
		r.syntax(err)
		return field{}
	}
	var second yaml.Node
	switch err := decoder.Decode(&second); {
	case err == nil:
		r.add(second.Line, "holds more than one YAML document; must be one")
		return field{}
	case !errors.Is(err, io.EOF):
		r.syntax(err)
		return field{}
	}
	if root := document.Content[0]; r.plain(root) {
		return field{Node: root}
	}
	return field{}
}

var syntaxLine = regexp.MustCompile(`^line (\d+): `)

func (r *reader) syntax(err error) {
	text, line := strings.TrimPrefix(err.Error(), "yaml: "), 0
	if found := syntaxLine.FindStringSubmatch(text); found != nil {
		line, _ = strconv.Atoi(found[1])
		text = text[len(found[0]):]
	}
	if strings.Contains(text, "anchor") {
		text = "an unknown anchor; text that begins with * goes in quotes"
	}
	r.add(line, "is no YAML: %s", text)
}

// plain refuses what makes a value stand for another one.
func (r *reader) plain(node *yaml.Node) bool {
	ok := true
	switch {
	case node.Kind == yaml.AliasNode:
		r.add(node.Line, "holds an alias; each value must be written out, and text that begins with * goes in quotes")
		ok = false
	case node.Anchor != "":
		r.add(node.Line, "holds an anchor; each value must be written out, and text that begins with & goes in quotes")
		ok = false
	case node.ShortTag() == "!!merge":
		r.add(node.Line, "holds a merge key; each value must be written out")
		ok = false
	}
	for _, child := range node.Content {
		ok = r.plain(child) && ok
	}
	return ok
}

// wrong adds the fault of a value.
func (r *reader) wrong(f field, problem string, args ...any) {
	path := f.path
	if path != "" {
		path += ": "
	}
	r.add(f.Line, "%s%s", path, fmt.Sprintf(problem, args...))
}

// mapping returns the values of a mapping by key, and false after a fault of the mapping itself. Keys
// that are not among those given are faults.
func (r *reader) mapping(f field, keys ...string) (map[string]field, bool) {
	if f.Kind != yaml.MappingNode {
		r.wrong(f, "is %s; must be a mapping, with %s", yamlfile.What(f.Node), strings.Join(keys, ", "))
		return nil, false
	}
	values := make(map[string]field)
	lines := make(map[string]int)
	for pair := range slices.Chunk(f.Content, 2) {
		key := field{pair[0], join(f.path, shown(pair[0].Value))}
		line, twice := lines[key.Value]
		switch {
		case twice:
			r.wrong(key, "stands in line %d already; must stand once", line)
		case key.Kind != yaml.ScalarNode || !slices.Contains(keys, key.Value):
			r.wrong(key, "there is no such key; there are %s", strings.Join(keys, ", "))
		default:
			values[key.Value] = field{pair[1], key.path}
		}
		lines[key.Value] = key.Line
	}
	return values, true
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// shown is a key as a fault names it: no longer than a key can be.
func shown(key string) string {
	if len(key) > 64 {
		return strings.ToValidUTF8(key[:64], "") + "…"
	}
	return key
}

// required adds a fault for each of the keys that is not there, and reports whether all are.
func (r *reader) required(f field, values map[string]field, keys ...string) bool {
	ok := true
	for _, key := range keys {
		if values[key].Node == nil {
			r.wrong(f, "%s is missing", key)
			ok = false
		}
	}
	return ok
}

// list returns the elements of a list, at least as many as least; none if it is absent.
func (r *reader) list(f field, least int, of string) []field {
	switch {
	case f.Node == nil:
		return nil
	case f.Kind != yaml.SequenceNode:
		r.wrong(f, "is %s; must be a list of %s", yamlfile.What(f.Node), of)
		return nil
	case len(f.Content) < least:
		r.wrong(f, "is an empty list; must hold %s", of)
		return nil
	}
	elements := make([]field, len(f.Content))
	for i, node := range f.Content {
		elements[i] = field{node, fmt.Sprintf("%s[%d]", f.path, i)}
	}
	return elements
}

// text returns a text, and false if it is absent or, after a fault, none. YAML would make something
// else of one that looks like a number and the like, so that must be in quotes.
func (r *reader) text(f field, must string) (string, bool) {
	if f.Node == nil {
		return "", false
	}
	switch tag := f.ShortTag(); {
	case f.Kind == yaml.ScalarNode && tag == "!!str":
		return f.Value, true
	case slices.Contains([]string{"!!int", "!!float", "!!bool", "!!timestamp"}, tag):
		r.wrong(f, "is %s; must be %s, in quotes", yamlfile.What(f.Node), must)
	default:
		r.wrong(f, "is %s; must be %s", yamlfile.What(f.Node), must)
	}
	return "", false
}

// checked is text that obeys a rule: rule returns what is wrong, or "".
func (r *reader) checked(f field, must string, rule func(string) string) (string, bool) {
	s, ok := r.text(f, must)
	if !ok {
		return "", false
	}
	if problem := rule(s); problem != "" {
		r.wrong(f, "%s; must be %s", problem, must)
		return "", false
	}
	return s, true
}

// choice returns one of the values.
func (r *reader) choice(f field, values ...string) (string, bool) {
	return r.checked(f, oneOf(values), func(s string) string {
		if slices.Contains(values, s) {
			return ""
		}
		return fmt.Sprintf("%q is not known", shown(s))
	})
}

func oneOf(values []string) string {
	last := len(values) - 1
	if last == 0 {
		return values[0]
	}
	return strings.Join(values[:last], ", ") + " or " + values[last]
}

// distinct calls read with each element of a list that no earlier one equals.
func (r *reader) distinct(elements []field, read func(field) (string, bool)) {
	lines := make(map[string]int)
	for _, element := range elements {
		value, ok := read(element)
		if !ok {
			continue
		}
		if line, twice := lines[value]; twice {
			r.wrong(element, "%q stands in line %d already; must stand once", value, line)
			continue
		}
		lines[value] = element.Line
	}
}

// texts returns the elements of a list, each once.
func (r *reader) texts(f field, least int, must string, rule func(string) string) []string {
	var values []string
	r.distinct(r.list(f, least, must), func(element field) (string, bool) {
		value, ok := r.checked(element, must, rule)
		if ok {
			values = append(values, value)
		}
		return value, ok
	})
	return values
}

// boolean returns false where the value is absent.
func (r *reader) boolean(f field) bool {
	if f.Node == nil {
		return false
	}
	if f.Kind != yaml.ScalarNode || f.ShortTag() != "!!bool" {
		r.wrong(f, "is %s; must be true or false", yamlfile.What(f.Node))
		return false
	}
	return strings.EqualFold(f.Value, "true")
}

// whole returns a whole number from 0 to most, in decimal; nil if it is absent or, after a fault, none.
func (r *reader) whole(f field, most uint32) *uint32 {
	if f.Node == nil {
		return nil
	}
	must := fmt.Sprintf("a whole number from 0 to %d", most)
	if f.Kind != yaml.ScalarNode || f.ShortTag() != "!!int" {
		r.wrong(f, "is %s; must be %s", yamlfile.What(f.Node), must)
		return nil
	}
	n, err := strconv.ParseUint(f.Value, 10, 32)
	if err != nil || n > uint64(most) || len(f.Value) > 1 && f.Value[0] == '0' { // octal to some
		r.wrong(f, "%q is out of range; must be %s, in decimal", shown(f.Value), must)
		return nil
	}
	return new(uint32(n))
}

// fraction returns a number from 0 to 1; nil if it is absent or, after a fault, none.
func (r *reader) fraction(f field) *float64 {
	if f.Node == nil {
		return nil
	}
	const must = "a number from 0 to 1"
	tag := f.ShortTag()
	if f.Kind != yaml.ScalarNode || tag != "!!float" && tag != "!!int" {
		r.wrong(f, "is %s; must be %s", yamlfile.What(f.Node), must)
		return nil
	}
	x, err := strconv.ParseFloat(f.Value, 64)
	if err != nil || !(x >= 0 && x <= 1) || strings.ContainsAny(f.Value, "xX") {
		r.wrong(f, "%q is out of range; must be %s, in decimal", shown(f.Value), must)
		return nil
	}
	return &x
}
