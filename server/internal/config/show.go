package config

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"unicode"
)

// redacted stands for a secret that is set.
const redacted = "(redacted)"

// Shown returns the setting's value for people: a secret that is set is redacted.
func (s Setting) Shown() string {
	switch {
	case s.Kind == Secret && s.Value != "":
		return redacted
	case s.Value == "" || strings.ContainsFunc(s.Value, func(r rune) bool { return !unicode.IsPrint(r) || r == ' ' || r == '"' }):
		return strconv.Quote(s.Value)
	default:
		return s.Value
	}
}

// WriteText writes a line for each setting: the key, its value and its origin.
func WriteText(w io.Writer, settings []Setting) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, s := range settings {
		fmt.Fprintf(table, "%s\t%s\t%s\n", s.Name, s.Shown(), s.Origin)
	}
	return table.Flush()
}

// WriteYAML writes the settings as a file that Load reads. What a file cannot say stands in comments:
// a secret that is set, and what the environment tells the Go runtime.
func WriteYAML(w io.Writer, settings []Setting) error {
	var text strings.Builder
	section := ""
	for _, s := range settings {
		name := s.Name
		indent := ""
		if before, after, nested := strings.Cut(s.Name, "."); nested {
			if before != section {
				fmt.Fprintf(&text, "%s:\n", before)
			}
			section, name, indent = before, after, "  "
		}
		switch {
		case s.Kind == Secret && s.Value != "", s.Origin == "GOGC", s.Origin == "GOMEMLIMIT":
			fmt.Fprintf(&text, "%s# %s: %s, from %s\n", indent, name, s.Shown(), s.Origin)
		case s.Kind == Secret, s.Kind == Address, s.Kind == Text:
			fmt.Fprintf(&text, "%s%s: %s\n", indent, name, strconv.Quote(s.Value)) // YAML has Go's escapes
		default:
			fmt.Fprintf(&text, "%s%s: %s\n", indent, name, s.Value)
		}
	}
	_, err := io.WriteString(w, text.String())
	return err
}
