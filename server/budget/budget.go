// Package budget holds the ceiling that selection and planning pack under.
package budget

import "strconv"

// Budget is an inclusive ceiling on characters or tokens. The zero value lets nothing in.
type Budget struct {
	// Limit is the most that fits; it does not count where Unlimited is set.
	Limit uint32
	// Unlimited lifts the ceiling.
	Unlimited bool
}

// Of returns the budget that lets up to limit in.
func Of(limit uint32) Budget { return Budget{Limit: limit} }

// Unlimited returns the budget that lets everything in.
func Unlimited() Budget { return Budget{Unlimited: true} }

// Fits reports whether n, which is not negative, is within the budget.
func (b Budget) Fits(n int) bool { return b.Unlimited || uint64(n) <= uint64(b.Limit) }

// Append appends the limit in decimal, or "unlimited".
func (b Budget) Append(dst []byte) []byte {
	if b.Unlimited {
		return append(dst, "unlimited"...)
	}
	return strconv.AppendUint(dst, uint64(b.Limit), 10)
}
