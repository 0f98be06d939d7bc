package main

import (
	"bytes"
	"encoding/json"
	"io"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// compact renders m as protojson on one line. protojson varies its white space on purpose; here
// the same message is always the same bytes.
func compact(m proto.Message) ([]byte, error) {
	text, err := protojson.Marshal(m)
	if err != nil {
		return nil, err
	}
	var line bytes.Buffer
	line.Grow(len(text))
	err = json.Compact(&line, text)
	return line.Bytes(), err
}

// encodeJSON renders v on one line, with `<`, `>` and `&` as they are, as protojson has them.
func encodeJSON(v any) ([]byte, error) {
	var line bytes.Buffer
	encoder := json.NewEncoder(&line)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(v)
	return bytes.TrimSuffix(line.Bytes(), []byte("\n")), err
}

// writeIndented lays a JSON text out for reading and ends it with a newline.
func writeIndented(w io.Writer, text []byte) error {
	var out bytes.Buffer
	if err := json.Indent(&out, text, "", "  "); err != nil {
		return err
	}
	out.WriteByte('\n')
	_, err := out.WriteTo(w)
	return err
}
