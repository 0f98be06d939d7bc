package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Kind is what the values of a key look like.
type Kind uint8

// The kinds, and the Go type of their values.
const (
	Address  Kind = iota // string: host:port or unix:/path
	Choice               // string: one of a few words
	Secret               // string: shown to nobody
	Bool                 // bool: true or false
	Duration             // time.Duration: 1m30s
	Size                 // int64: bytes, such as 16MiB
	Count                // int64: a whole number
	Fraction             // float64: above 0 and at most 1
	Text                 // string: as its check says; empty: none
)

// Placeholder says in a word, for help, what a value is.
func (k Key) Placeholder() string {
	if k.Kind == Choice {
		return strings.Join(k.Choices, "|")
	}
	return [...]string{
		Address: "address", Secret: "secret", Bool: "bool", Duration: "duration", Size: "size", Count: "count", Fraction: "fraction", Text: "text",
	}[k.Kind]
}

// Range says in short, for help, what values the key takes.
func (k Key) Range() string {
	switch k.Kind {
	case Address, Text:
		return k.allowed
	case Choice:
		return strings.Join(k.Choices[:len(k.Choices)-1], ", ") + " or " + k.Choices[len(k.Choices)-1]
	case Secret:
		return fmt.Sprintf("text of at most %d bytes", maxSecretBytes)
	case Bool:
		return "true or false"
	case Fraction:
		return "above 0, at most 1"
	default:
		return k.format(k.typed(k.Min)) + " to " + k.format(k.typed(k.Max))
	}
}

// Allowed says what values the key takes, with their unit.
func (k Key) Allowed() string {
	switch k.Kind {
	case Duration:
		return "a duration of " + k.Range() + ", such as 1m30s"
	case Size:
		return "bytes, " + k.Range() + ", such as 8MiB"
	case Count:
		return "a whole number, " + k.Range()
	case Fraction:
		return "a number " + k.Range()
	default:
		return k.Range()
	}
}

// typed returns a bound as a value of the kind's Go type.
func (k Key) typed(bound int64) any {
	if k.Kind == Duration {
		return time.Duration(bound)
	}
	return bound
}

// maxSecretBytes bounds a secret: whoever names a file by mistake should hear of it.
const maxSecretBytes = 4096

// parse returns the value that text stands for, of the kind's Go type. The error says what is wrong
// and what is allowed; it names no secret.
func (k Key) parse(text string) (any, error) {
	var value any
	ok := true
	switch k.Kind {
	case Address:
		if err := k.check(text); err != nil {
			return nil, fmt.Errorf("%w; must be %s", err, k.Allowed())
		}
		if value = text; text == "" {
			value = off
		}
	case Text:
		if err := k.check(text); text != "" && err != nil {
			return nil, fmt.Errorf("%w; must be %s", err, k.Allowed())
		}
		value = text
	case Choice:
		value, ok = text, slices.Contains(k.Choices, text)
	case Secret:
		if len(text) > maxSecretBytes || !utf8.ValidString(text) {
			return nil, fmt.Errorf("must be %s", k.Allowed())
		}
		value = text
	case Bool:
		value, ok = text == "true", text == "true" || text == "false"
	case Duration:
		d, err := time.ParseDuration(text)
		value, ok = d, err == nil && int64(d) >= k.Min && int64(d) <= k.Max
	case Size:
		n, err := parseSize(text)
		value, ok = n, err == nil && n >= k.Min && n <= k.Max
	case Count:
		n, err := strconv.ParseInt(text, 10, 64)
		value, ok = n, err == nil && n >= k.Min && n <= k.Max
	case Fraction:
		f, err := strconv.ParseFloat(text, 64)
		value, ok = f, err == nil && f > 0 && f <= 1
	}
	if !ok {
		return nil, fmt.Errorf("%s: must be %s", quoted(text), k.Allowed())
	}
	return value, nil
}

// quoted returns text in quotes, cut where it would fill the screen.
func quoted(text string) string {
	const most = 100
	if len(text) > most {
		return strconv.Quote(text[:most]) + "…"
	}
	return strconv.Quote(text)
}

// format writes a value so that parse returns it.
func (k Key) format(value any) string {
	switch value := value.(type) {
	case string:
		return value
	case bool:
		return strconv.FormatBool(value)
	case time.Duration:
		return formatDuration(value)
	case float64:
		return formatFraction(value)
	case int64:
		if k.Kind == Size {
			return formatSize(value)
		}
		return formatCount(value)
	default:
		panic(fmt.Sprintf("%s is a %T", k.Name, value))
	}
}

func formatCount(n int64) string { return strconv.FormatInt(n, 10) }

func formatFraction(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }

// formatDuration leaves out the zeros that Go writes: 30m, not 30m0s.
func formatDuration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
