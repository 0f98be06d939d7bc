package config

import (
	"strings"
)

// Fault is one thing that is wrong with a configuration.
type Fault struct {
	// Key is the key, or what stands where a key should; empty for a file as a whole.
	Key string
	// Origin is the flag, the environment variable, or the file and line.
	Origin string
	// Problem says what is wrong and what is allowed. It names no secret.
	Problem string
}

func (f Fault) String() string {
	if f.Key == "" {
		return f.Origin + ": " + f.Problem
	}
	return f.Key + " (" + f.Origin + "): " + f.Problem
}

// Error is everything that is wrong with a configuration.
type Error struct {
	// Faults has at least one element: those of the file, of the environment, of the flags.
	Faults []Fault
}

func (e *Error) Error() string {
	lines := []string{"the configuration is wrong:"}
	for _, fault := range e.Faults {
		lines = append(lines, "  "+fault.String())
	}
	return strings.Join(lines, "\n")
}

// nearest returns the name that takes the fewest edits to get to.
func nearest(name string, names []string) string {
	best, least := "", -1
	for _, candidate := range names {
		if n := edits(name, candidate); least < 0 || n < least {
			best, least = candidate, n
		}
	}
	return best
}

// edits counts the bytes to insert, delete or replace between a and b.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
