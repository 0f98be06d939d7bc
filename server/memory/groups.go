package memory

// none is the group of what is in no group, and the winner of a group without one.
const none = int32(-1)

// groups sorts the numbers from 0 to n-1 into groups of equals. It is a hash table with open
// addressing that leaves equality to its user and is used again without allocating.
type groups struct {
	of      []int32 // the group of each number, or none
	count   int
	buckets []bucket // a power of two, at least twice n
}

type bucket struct {
	hash  uint64
	first int32 // the first of its group; free buckets have none
	group int32
}

// reset puts the numbers from 0 to n-1 into no group.
func (g *groups) reset(n int) {
	g.count = 0
	g.of = resize(g.of, n)
	for i := range g.of {
		g.of[i] = none
	}
	size := 1
	for size < 2*n {
		size *= 2
	}
	g.buckets = resize(g.buckets, size)
	for i := range g.buckets {
		g.buckets[i].first = none
	}
}

// join puts i into the group whose first number it equals, or else into a new one, and returns the
// group. Equals have the same hash.
func (g *groups) join(i int, hash uint64, equal func(first int) bool) int32 {
	mask := uint64(len(g.buckets) - 1)
	for at := hash & mask; ; at = (at + 1) & mask {
		b := &g.buckets[at]
		if b.first == none {
			*b = bucket{hash: hash, first: int32(i), group: int32(g.count)}
			g.count++
			g.of[i] = b.group
			return b.group
		}
		if b.hash == hash && equal(int(b.first)) {
			g.of[i] = b.group
			return b.group
		}
	}
}
