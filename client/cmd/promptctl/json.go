package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

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
	return escapeInvisible(line.Bytes()), err
}

// encodeJSON renders v on one line, with `<`, `>` and `&` as they are, as protojson has them.
func encodeJSON(v any) ([]byte, error) {
	var line bytes.Buffer
	encoder := json.NewEncoder(&line)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(v)
	return escapeInvisible(bytes.TrimSuffix(line.Bytes(), []byte("\n"))), err
}

// escapeInvisible writes what a terminal could take for a command, or reorder text by, as \u escapes:
// DEL, C1, line and paragraph separator, and format characters. In JSON they stand only in strings,
// whose values stay the same.
func escapeInvisible(text []byte) []byte {
	if bytes.IndexFunc(text, invisible) < 0 {
		return text
	}
	var escaped []byte
	for _, r := range string(text) {
		switch {
		case !invisible(r):
			escaped = utf8.AppendRune(escaped, r)
		case r <= 0xFFFF:
			escaped = fmt.Appendf(escaped, `\u%04x`, r)
		default:
			high, low := utf16.EncodeRune(r)
			escaped = fmt.Appendf(escaped, `\u%04x\u%04x`, high, low)
		}
	}
	return escaped
}

func invisible(r rune) bool {
	return 0x7F <= r && r <= 0x9F || r == '\u2028' || r == '\u2029' || r > 0x9F && unicode.Is(unicode.Cf, r)
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
