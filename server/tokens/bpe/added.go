package bpe

// addedTokens finds the tokens that are taken out of a text before it is split, the leftmost first and
// of those that start together the longest.
type addedTokens struct {
	first [256]bool
	next  map[step]int32 // the trie; its root is 0
	ends  map[int32]bool // where a token ends, and whether it counts as one
}

type step struct {
	node int32
	b    byte
}

// add adds a token, which is not empty. One that is special is found, and so hides others, but stays
// part of the text.
func (a *addedTokens) add(content string, special bool) {
	if a.next == nil {
		a.next, a.ends = map[step]int32{}, map[int32]bool{}
	}
	a.first[content[0]] = true
	node := int32(0)
	for i := range len(content) {
		s := step{node, content[i]}
		child, ok := a.next[s]
		if !ok {
			child = int32(len(a.next) + 1)
			a.next[s] = child
		}
		node = child
	}
	a.ends[node] = !special
}

// find returns where the first token that counts starts and ends, or false.
func (a *addedTokens) find(text []byte) (start, end int, ok bool) {
	for i := 0; i < len(text); {
		end, counts := a.longest(text, i)
		switch {
		case end == 0:
			i++
		case counts:
			return i, end, true
		default:
			i = end
		}
	}
	return 0, 0, false
}

// longest returns where the longest token that starts at text[i] ends, or 0.
func (a *addedTokens) longest(text []byte, i int) (end int, counts bool) {
	if !a.first[text[i]] {
		return 0, false
	}
	node := int32(0)
	for j := i; j < len(text); j++ {
		child, ok := a.next[step{node, text[j]}]
		if !ok {
			break
		}
		node = child
		if c, ok := a.ends[node]; ok {
			end, counts = j+1, c
		}
	}
	return end, counts
}
