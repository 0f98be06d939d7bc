package memory

import "strconv"

// The context is an opening tag, one line for each memory and a closing tag. Every length below is
// computed, not measured, and a test holds it equal to what is rendered.

const closingTag = "</recalled_memory>"

// appendOpening appends the opening tag of a context with that many memories, and its newline.
func appendOpening(dst []byte, scope string, selected int) []byte {
	return appendSelected(appendScope(dst, scope), selected)
}

// appendScope appends the opening tag as far as it is the same for any number of memories, up to a
// seam.
func appendScope(dst []byte, scope string) []byte {
	dst = append(dst, `<recalled_memory user_scope="`...)
	dst = appendAttribute(dst, scope)
	return append(dst, '"')
}

// appendSelected appends the rest of the opening tag, and its newline.
func appendSelected(dst []byte, selected int) []byte {
	dst = append(dst, ` selected="`...)
	dst = strconv.AppendInt(dst, int64(selected), 10)
	return append(dst, "\">\n"...)
}

// openingChars returns the code points of the opening tag and its newline, but for the digits of the
// number of memories.
func openingChars(scope string) int {
	return len("<recalled_memory user_scope=\"\" selected=\"\">\n") + attributeChars(scope)
}

// appendLine appends the line of a memory at that place of the context, and its newline. What stands
// before the seam may change from query to query, what follows not; the seam is an offset into line,
// and its start where the place is not apart from the text.
func appendLine(dst []byte, c *Candidate, rendering Rendering, place int) (line []byte, seam int) {
	if rendering == Compact {
		dst, seam = appendCompactTag(dst, c, place)
	} else {
		dst, seam = appendFullTag(dst, c)
	}
	dst = appendText(dst, c.Text)
	return append(dst, "</memory_hit>\n"...), seam
}

func appendFullTag(dst []byte, c *Candidate) (tag []byte, seam int) {
	p := &c.Provenance
	dst = append(dst, `<memory_hit memory_id="`...)
	dst = appendAttribute(dst, c.ID)
	dst = append(dst, `" authority="`...)
	dst = append(dst, c.Authority.String()...)
	dst = append(dst, `" score="`...)
	dst = appendScore(dst, c.Score)
	dst = append(dst, `" source_rank="`...)
	dst = strconv.AppendUint(dst, uint64(c.SourceRank), 10)
	dst = append(dst, '"')
	seam = len(dst)
	dst = append(dst, ` source_id="`...)
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
	return append(dst, `">`...), seam
}

func appendCompactTag(dst []byte, c *Candidate, place int) (tag []byte, seam int) {
	start := len(dst)
	dst = append(dst, `<memory_hit n="`...)
	dst = strconv.AppendInt(dst, int64(place), 10)
	dst = append(dst, '"')
	seam = len(dst)
	if c.Provenance.CapturedAt.Set {
		dst = append(dst, ` captured="`...)
		dst = c.Provenance.CapturedAt.utc().AppendFormat(dst, "2006-01-02")
		dst = append(dst, '"')
	}
	if c.Authority > UserDefault {
		dst = append(dst, ` authority="`...)
		dst = append(dst, c.Authority.String()...)
		dst = append(dst, '"')
	}
	if len(dst) == seam {
		seam = start
	}
	return append(dst, '>'), seam
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
	n += attributeChars(c.ID) + len(c.Authority.String()) + scoreChars(c.Score) + digits(uint64(c.SourceRank))
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
	done := 0
	for i := range len(s) {
		replacement := ""
		switch s[i] {
		case '&':
			replacement = "&amp;"
		case '<':
			replacement = "&lt;"
		case '>':
			replacement = "&gt;"
		case '"':
			replacement = "&quot;"
		default:
			continue
		}
		dst = append(dst, s[done:i]...)
		dst = append(dst, replacement...)
		done = i + 1
	}
	return append(dst, s[done:]...)
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
