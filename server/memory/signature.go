package memory

import "unicode/utf8"

// signature is the first and the last bytes, spaces aside, of a text's normalised form: the same for
// all texts of one form, and different for most others. It is found from the ends of the text.
type signature [16]byte

// signedEnd is how many bytes of an end are normalised at first. Most ends have enough bytes then.
const signedEnd = 64

// sign returns the signature of s.
func (n *normalizer) sign(s string) signature {
	var sig signature
	first, last := sig[:len(sig)/2], sig[len(sig)/2:]
	if signPlainEnds(s, first, last) {
		return sig
	}
	clear(sig[:])
	// What ends where a plain code point starts is normalised by itself as it is within the whole,
	// and so is what starts there.
	for size := signedEnd; ; size *= 2 {
		end := n.normalize(s[:plainFrom(s, size)])
		if copyFirst(first, end) == len(first) || size >= len(s) {
			break
		}
	}
	for size := signedEnd; ; size *= 2 {
		end := n.normalize(s[plainUpTo(s, len(s)-size):])
		if copyLast(last, end) == len(last) || size >= len(s) {
			break
		}
	}
	return sig
}

// normalize returns the normalised form of s, valid until the next call.
func (n *normalizer) normalize(s string) []byte {
	n.signed = n.append(n.signed[:0], s)
	return n.signed
}

// copyFirst copies the first bytes of a normalised text, spaces aside, and returns how many.
func copyFirst(dst, normalized []byte) int {
	at := 0
	for i := 0; i < len(normalized) && at < len(dst); i++ {
		if normalized[i] != ' ' {
			dst[at] = normalized[i]
			at++
		}
	}
	return at
}

// copyLast copies the last bytes of a normalised text, the last first, and returns how many.
func copyLast(dst, normalized []byte) int {
	at := 0
	for i := len(normalized) - 1; i >= 0 && at < len(dst); i-- {
		if normalized[i] != ' ' {
			dst[at] = normalized[i]
			at++
		}
	}
	return at
}

// plainFrom returns the first index from i at which a plain code point starts, or the end of s.
func plainFrom(s string, i int) int {
	for ; i < len(s); i++ {
		if startsPlain(s, i) {
			return i
		}
	}
	return len(s)
}

// signPlainEnds fills both ends of the signature of s if the code points there are plain and their
// forms are single code points; it reports whether they are.
func signPlainEnds(s string, first, last []byte) bool {
	i := 0
	for at := 0; i < len(s) && at < len(first); {
		if c := s[i]; c < utf8.RuneSelf {
			i++
			if folded := asciiFolds[c]; folded != ' ' {
				first[at] = folded
				at++
			}
			continue
		}
		form, size, ok := plainForm(s[i:])
		if !ok {
			return false
		}
		i += size
		if form != ' ' {
			at += copy(first[at:], string(form))
		}
	}
	if i < len(s) && !startsPlain(s, i) { // it may combine with what is before it
		return false
	}

	i = len(s)
	for at := 0; i > 0 && at < len(last); {
		if c := s[i-1]; c < utf8.RuneSelf {
			i--
			if folded := asciiFolds[c]; folded != ' ' {
				last[at] = folded
				at++
			}
			continue
		}
		_, size := utf8.DecodeLastRuneInString(s[:i])
		i -= size
		form, _, ok := plainForm(s[i:])
		if !ok {
			return false
		}
		if form != ' ' {
			encoded := string(form)
			for j := len(encoded) - 1; j >= 0 && at < len(last); j-- {
				last[at] = encoded[j]
				at++
			}
		}
	}
	return true
}

// plainForm returns the normalised form of the first code point of s, which is beyond ASCII, and its
// bytes in s, if it is plain and the form a single code point.
func plainForm(s string) (form rune, size int, ok bool) {
	r, size := utf8.DecodeRuneInString(s)
	page, i := formPageOf(r), r%formPageSize
	return page.forms[i], size, page.plain[i] && page.forms[i] >= 0
}
