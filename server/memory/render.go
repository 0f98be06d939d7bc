package memory

import (
	"math"
	"strconv"
	"strings"

	"github.com/promptassembly/promptassembly/server/internal/text"
)

// The context is an opening tag, one line for each memory and a closing tag. Every length below is
// computed, not measured, and a test holds it equal to what is rendered.

const closingTag = "</recalled_memory>"

// appendOpening appends the opening tag of a context with that many memories, and its newline.
func appendOpening(dst []byte, scope string, selected int) []byte {
	dst = append(dst, `<recalled_memory user_scope="`...)
	dst = appendAttribute(dst, scope)
	dst = append(dst, `" selected="`...)
	dst = strconv.AppendInt(dst, int64(selected), 10)
	return append(dst, "\">\n"...)
}

// openingChars returns the code points of the opening tag and its newline, but for the digits of the
// number of memories.
func openingChars(scope string) int {
	return len("<recalled_memory user_scope=\"\" selected=\"\">\n") + attributeChars(scope)
}

// appendLine appends the line of a memory at that place of the context, and its newline.
func appendLine(dst []byte, c *Candidate, rendering Rendering, place int) []byte {
	if rendering == Compact {
		dst = appendCompactTag(dst, c, place)
	} else {
		dst = appendFullTag(dst, c)
	}
	dst = appendText(dst, c.Text)
	return append(dst, "</memory_hit>\n"...)
}

func appendFullTag(dst []byte, c *Candidate) []byte {
	p := &c.Provenance
	dst = append(dst, `<memory_hit memory_id="`...)
	dst = appendAttribute(dst, c.ID)
	dst = append(dst, `" authority="`...)
	dst = append(dst, c.Authority.String()...)
	dst = append(dst, `" score="`...)
	dst = appendScore(dst, c.Score)
	dst = append(dst, `" source_rank="`...)
	dst = strconv.AppendUint(dst, uint64(c.SourceRank), 10)
	dst = append(dst, `" source_id="`...)
	dst = appendAttribute(dst, p.SourceID)
	dst = append(dst, `" source_type="`...)
	dst = appendAttribute(dst, p.SourceType)
	if p.Title != "" {
		dst = append(dst, `" title="`...)
		dst = appendAttribute(dst, p.Title)
	}
	if p.CapturedAt.Set {
		dst = append(dst, `" captured_at="`...)
		dst = appendInstant(dst, p.CapturedAt)
	}
	if c.ConflictKey != "" {
		dst = append(dst, `" conflict_key="`...)
		dst = appendAttribute(dst, c.ConflictKey)
	}
	return append(dst, `">`...)
}

func appendCompactTag(dst []byte, c *Candidate, place int) []byte {
	dst = append(dst, `<memory_hit n="`...)
	dst = strconv.AppendInt(dst, int64(place), 10)
	if c.Provenance.CapturedAt.Set {
		dst = append(dst, `" captured="`...)
		dst = c.Provenance.CapturedAt.utc().AppendFormat(dst, "2006-01-02")
	}
	if c.Authority > UserDefault {
		dst = append(dst, `" authority="`...)
		dst = append(dst, c.Authority.String()...)
	}
	return append(dst, `">`...)
}

// lineChars returns the code points of a memory's line as the only one of the context, without its
// newline.
func lineChars(c *Candidate, rendering Rendering) int {
	p := &c.Provenance
	n := textChars(c.Text)
	if rendering == Compact {
		n += len(`<memory_hit n="1"></memory_hit>`)
		if p.CapturedAt.Set {
			n += len(` captured="2006-01-02"`)
		}
		if c.Authority > UserDefault {
			n += len(` authority=""`) + len(c.Authority.String())
		}
		return n
	}

	n += len(`<memory_hit memory_id="" authority="" score="" source_rank="" source_id="" source_type=""></memory_hit>`)
	n += attributeChars(c.ID) + len(c.Authority.String()) + scoreChars(c.Score) + digits(int(c.SourceRank))
	n += attributeChars(p.SourceID) + attributeChars(p.SourceType)
	if p.Title != "" {
		n += len(` title=""`) + attributeChars(p.Title)
	}
	if p.CapturedAt.Set {
		n += len(` captured_at=""`) + instantChars(p.CapturedAt)
	}
	if c.ConflictKey != "" {
		n += len(` conflict_key=""`) + attributeChars(c.ConflictKey)
	}
	return n
}

// appendAttribute appends an identifier as the value of an XML attribute.
func appendAttribute(dst []byte, s string) []byte {
	for i := range len(s) {
		switch c := s[i]; c {
		case '&':
			dst = append(dst, "&amp;"...)
		case '<':
			dst = append(dst, "&lt;"...)
		case '>':
			dst = append(dst, "&gt;"...)
		case '"':
			dst = append(dst, "&quot;"...)
		default:
			dst = append(dst, c)
		}
	}
	return dst
}

func attributeChars(s string) int {
	n := 0
	for i := range len(s) {
		n += int(attributeWidths[s[i]])
	}
	return n
}

// attributeWidths gives the code points that a byte of UTF-8 adds to an attribute: none for a
// continuation byte, and those of the entity for what is escaped.
var attributeWidths = func() (widths [256]uint8) {
	for b := range widths {
		if b&0xC0 != 0x80 {
			widths[b] = 1
		}
	}
	widths['&'] = uint8(len("&amp;"))
	widths['<'] = uint8(len("&lt;"))
	widths['>'] = uint8(len("&gt;"))
	widths['"'] = uint8(len("&quot;"))
	return widths
}()

// appendText appends a memory's text as XML character data that cannot draw a segment boundary.
func appendText(dst []byte, s string) []byte {
	done := 0
	for i := 0; i < len(s); i++ {
		replacement, size := "", 1
		switch c := s[i]; {
		case c == '&':
			replacement = "&amp;"
		case c == '<':
			replacement = "&lt;"
		case c == '>':
			replacement = "&gt;"
		case c == '-' && strings.HasPrefix(s[i:], "---") && text.AfterLineBreak(s, i):
			replacement = "&#45;"
		case c < ' ' && c != '\t' && c != '\n' && c != '\r':
			replacement = "\uFFFD"
		case c == 0xEF && (strings.HasPrefix(s[i:], "\uFFFE") || strings.HasPrefix(s[i:], "\uFFFF")):
			replacement, size = "\uFFFD", len("\uFFFE")
		default:
			continue
		}
		dst = append(dst, s[done:i]...)
		dst = append(dst, replacement...)
		done = i + size
	}
	return append(dst, s[done:]...)
}

func textChars(s string) int {
	n := text.Chars(s) + strings.Count(s, "&")*(len("&amp;")-1) +
		strings.Count(s, "<")*(len("&lt;")-1) + strings.Count(s, ">")*(len("&gt;")-1)
	for i := strings.Index(s, "---"); i >= 0; {
		if text.AfterLineBreak(s, i) {
			n += len("&#45;") - 1
		}
		for i < len(s) && s[i] == '-' { // the rest of this row follows no line break
			i++
		}
		next := strings.Index(s[i:], "---")
		if next < 0 {
			break
		}
		i += next
	}
	return n
}

// appendScore appends a score from 0 to 1, rounded to four decimals, without trailing zeros.
func appendScore(dst []byte, score float64) []byte {
	n := tenThousandths(score)
	if n == 10000 {
		return append(dst, '1')
	}
	dst = append(dst, '0')
	if n == 0 {
		return dst
	}
	dst = append(dst, '.')
	for unit := uint32(1000); n > 0; unit /= 10 {
		dst = append(dst, byte('0'+n/unit))
		n %= unit
	}
	return dst
}

func scoreChars(score float64) int {
	n := tenThousandths(score)
	switch {
	case n%10000 == 0:
		return len("0")
	case n%1000 == 0:
		return len("0.1")
	case n%100 == 0:
		return len("0.01")
	case n%10 == 0:
		return len("0.001")
	default:
		return len("0.0001")
	}
}

// tenThousandths returns the exact value of 10,000 times a score from 0 to 1, rounded to the
// nearest integer, ties to even.
func tenThousandths(score float64) uint32 {
	product := float64(score * 10000)
	rounded := math.RoundToEven(product)
	if floor := math.Floor(product); product-floor == 0.5 {
		// Perhaps a tie only because the product was rounded: what it lacks decides.
		switch missing := math.FMA(score, 10000, -product); {
		case missing < 0:
			rounded = floor
		case missing > 0:
			rounded = floor + 1
		}
	}
	return uint32(rounded)
}

// appendInstant appends RFC 3339 in UTC, with a fraction only where it is not zero.
func appendInstant(dst []byte, i Instant) []byte {
	return i.utc().AppendFormat(dst, "2006-01-02T15:04:05.999999999Z")
}

func instantChars(i Instant) int {
	n := len("2006-01-02T15:04:05Z")
	if i.Nanos == 0 {
		return n
	}
	n += len(".999999999")
	for nanos := i.Nanos; nanos%10 == 0; nanos /= 10 {
		n--
	}
	return n
}

// digits returns the decimal digits of n, which is not negative.
func digits(n int) int {
	d := 1
	for ; n >= 10; n /= 10 {
		d++
	}
	return d
}
