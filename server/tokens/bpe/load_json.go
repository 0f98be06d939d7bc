package bpe

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// object is a JSON object, with the key where it stands in the file, "" for the whole.
type object struct {
	key    string
	values map[string]json.RawMessage
}

// readObject reads an object that has no other than the known keys, and none twice.
func readObject(key string, raw json.RawMessage, known ...string) (object, error) {
	o := object{key, map[string]json.RawMessage{}}
	err := eachField(key, raw, func(name string, value *json.Decoder) error {
		if !slices.Contains(known, name) {
			return fmt.Errorf("%s is a key that is not known", o.at(shown(name)))
		}
		if _, ok := o.values[name]; ok {
			return fmt.Errorf("%s is there twice", o.at(name))
		}
		var v json.RawMessage
		if err := value.Decode(&v); err != nil {
			return fmt.Errorf("%s is not JSON: %w", o.at(name), err)
		}
		o.values[name] = v
		return nil
	})
	return o, err
}

// shown returns a key as an error names it: as it is, or quoted and cut where it is not as keys are.
func shown(key string) string {
	if quoted := fmt.Sprintf("%.64q", key); quoted != `"`+key+`"` {
		return quoted
	}
	return key
}

// eachField calls field for each field of an object, in their order; it has to read the value.
func eachField(key string, raw json.RawMessage, field func(name string, value *json.Decoder) error) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	if err := opens(d, key, '{', "an object"); err != nil {
		return err
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return fmt.Errorf("%s is not JSON: %w", orFile(key), err)
		}
		if err := field(name.(string), d); err != nil {
			return err
		}
	}
	return closes(d, key)
}

// eachElement calls element before each element of a list; it has to read the value.
func eachElement(key string, raw json.RawMessage, element func(value *json.Decoder) error) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	if err := opens(d, key, '[', "a list"); err != nil {
		return err
	}
	for d.More() {
		if err := element(d); err != nil {
			return err
		}
	}
	return closes(d, key)
}

func opens(d *json.Decoder, key string, delim json.Delim, what string) error {
	switch token, err := d.Token(); {
	case err != nil:
		return fmt.Errorf("%s is missing or not JSON: %w", orFile(key), err)
	case token != delim:
		return fmt.Errorf("%s is not %s", orFile(key), what)
	}
	return nil
}

// closes reads the end, after which there must be nothing else.
func closes(d *json.Decoder, key string) error {
	if _, err := d.Token(); err != nil {
		return fmt.Errorf("%s is not JSON: %w", orFile(key), err)
	}
	if d.More() {
		return fmt.Errorf("%s goes on after its end", orFile(key))
	}
	return nil
}

func readList(key string, raw json.RawMessage) ([]json.RawMessage, error) {
	var list []json.RawMessage
	err := eachElement(key, raw, func(value *json.Decoder) error {
		if len(list) == maxList {
			return fmt.Errorf("%s has more than %d elements", key, maxList)
		}
		var v json.RawMessage
		if err := value.Decode(&v); err != nil {
			return fmt.Errorf("%s is not JSON: %w", key, err)
		}
		list = append(list, v)
		return nil
	})
	return list, err
}

// maxList is how many elements a list may have that is read at once.
const maxList = 1 << 16

func orFile(key string) string {
	if key == "" {
		return "it"
	}
	return key
}

// tooDeep reports whether what stands at the key may hold no further lists.
func tooDeep(key string) bool { return strings.Count(key, "[") == 8 }

func isNull(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }

// at returns the key of a field.
func (o object) at(name string) string {
	if o.key == "" {
		return name
	}
	return o.key + "." + name
}

func (o object) list(name string) ([]json.RawMessage, error) {
	return readList(o.at(name), o.values[name])
}

// flag returns a boolean, or otherwise where it is missing or null.
func (o object) flag(name string, otherwise bool) (bool, error) {
	raw := o.values[name]
	if isNull(raw) {
		return otherwise, nil
	}
	var v bool
	if json.Unmarshal(raw, &v) != nil {
		return false, fmt.Errorf("%s is neither true nor false", o.at(name))
	}
	return v, nil
}

// text returns a string, or otherwise where it is missing or null.
func (o object) text(name, otherwise string) (string, error) {
	raw := o.values[name]
	if isNull(raw) {
		return otherwise, nil
	}
	var v string
	if json.Unmarshal(raw, &v) != nil {
		return "", fmt.Errorf("%s is not a string", o.at(name))
	}
	return v, nil
}
