package memory

import "unicode/utf8"

// signature is the first and the last bytes, spaces aside, of a text's normalised form: the same for
// all texts of one form, and different for most others. It is found without normalising the text.
type signature [16]byte

// sign returns the signature of s.
func (n *normalizer) sign(s string) signature {
	var sig signature
	if sig.signPlain(s) {
		return sig
	}
	n.signed = n.append(n.signed[:0], s)
	return signNormalized(n.signed)
}

// signNormalized returns the signature of a text in normalised form.
func signNormalized(s []byte) signature {
	var sig signature
	first, last := sig.halves()
	for i, at := 0, 0; i < len(s) && at < len(first); i++ {
		if s[i] != ' ' {
			first[at] = s[i]
			at++
		}
	}
	for i, at := len(s)-1, 0; i >= 0 && at < len(last); i-- {
		if s[i] != ' ' {
			last[at] = s[i]
			at++
		}
	}
	return sig
}

// signPlain is signNormalized for the normalised form of s, if the code points at its ends are plain;
// it reports whether they are.
func (sig *signature) signPlain(s string) bool {
	first, last := sig.halves()
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
		folded, size := foldWide(s[i:])
		if folded == notPlain {
			return false
		}
		i += size
		if folded != ' ' {
			at += copy(first[at:], string(folded))
		}
	}
	if i < len(s) && s[i] >= utf8.RuneSelf {
		if next, _ := foldWide(s[i:]); next == notPlain { // it may combine with what is before it
			return false
		}
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
		folded, _ := foldWide(s[i:])
		if folded == notPlain {
			return false
		}
		if folded != ' ' {
			encoded := string(folded)
			for j := len(encoded) - 1; j >= 0 && at < len(last); j-- {
				last[at] = encoded[j]
				at++
			}
		}
	}
	return true
}

func (sig *signature) halves() (first, last []byte) { return sig[:len(sig)/2], sig[len(sig)/2:] }

// foldWide returns the normalised form of the first code point of s, which is beyond ASCII: ' ' for
// white space, notPlain if it is not plain or not one code point. It returns its bytes in s, too.
func foldWide(s string) (folded rune, size int) {
	r, size := utf8.DecodeRuneInString(s)
	return max(foldPageOf(r).folds[r%foldPageSize], notPlain), size
}
