package memory

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// A hash is a hint: whatever it is, as long as equals have the same, the groups are those of equals.
func TestGroupsAreThoseOfEquals(t *testing.T) {
	hashes := map[string]func(value int) uint64{
		"one for all":              func(int) uint64 { return 1<<64 - 1 },
		"alike in the low bits":    func(value int) uint64 { return uint64(value) << 32 },
		"different for all values": func(value int) uint64 { return uint64(value) },
	}
	for name, hash := range hashes {
		t.Run(name, func(t *testing.T) {
			var g groups // used again, as a pipeline does
			rapid.Check(t, func(t *rapid.T) {
				values := rapid.SliceOfN(rapid.IntRange(0, 9), 0, 40).Draw(t, "values")
				g.reset(len(values))
				var distinct []int
				want := make([]int32, len(values))
				for i, value := range values {
					if value == 0 { // is in no group
						want[i] = none
						continue
					}
					if !slices.Contains(distinct, value) {
						distinct = append(distinct, value)
					}
					want[i] = int32(slices.Index(distinct, value))
					if got := g.join(i, hash(value), func(first int) bool { return values[first] == value }); got != want[i] {
						t.Fatalf("%d of %v joined group %d, want %d", i, values, got, want[i])
					}
				}
				if !slices.Equal(g.of, want) || g.count != len(distinct) {
					t.Fatalf("%v are in groups %v of %d, want %v of %d", values, g.of, g.count, want, len(distinct))
				}
			})
		})
	}
}
