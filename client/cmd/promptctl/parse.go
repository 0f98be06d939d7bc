package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// byteOrderMark is what some editors and shells put before UTF-8.
var byteOrderMark = []byte("\ufeff")

// protojsonFault finds in an error of protojson where the fault is and, of the kinds that it can
// name without quoting the input, which. Of what it quotes only a word where a field's name belongs
// is kept.
var protojsonFault = regexp.MustCompile(`\(line (\d+):(\d+)\)(?:: ((?:unknown|duplicate) field(?: "\w{1,40}")?|unexpected token|` +
	`invalid value for \w+ field \w+|invalid google\.protobuf\.Timestamp value))?`)

// parseJSON reads text as protojson into m. The error says where the fault is and of which kind; it
// quotes nothing, for what stands there may be a memory's text.
func parseJSON(text []byte, m proto.Message) error {
	text = bytes.TrimPrefix(text, byteOrderMark)
	if len(bytes.TrimSpace(text)) == 0 {
		return errors.New("there is no JSON in it")
	}
	err := protojson.Unmarshal(text, m)
	if err == nil {
		return nil
	}
	if strings.HasSuffix(err.Error(), io.ErrUnexpectedEOF.Error()) { // it is not wrapped
		return errors.New("it ends within the JSON")
	}
	fault := protojsonFault.FindStringSubmatch(err.Error())
	if fault == nil {
		return errors.New("not the JSON of a request")
	}
	kind := fault[3]
	if kind == "" {
		kind = "not valid JSON"
	}
	return fmt.Errorf("line %s, column %s: %s", fault[1], fault[2], kind)
}
