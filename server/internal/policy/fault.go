package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Fault is one thing that is wrong with a file.
type Fault struct {
	// Line is where it stands, from 1; 0 for the file as a whole.
	Line int
	// Problem says what is wrong and what is allowed.
	Problem string
}

// Error is everything that is wrong with a file.
type Error struct {
	// Faults has at least one element, in the order of the lines.
	Faults []Fault
}

// mostShown bounds an error's text, which goes into a log. All faults are in Faults.
const mostShown = 20

func (e *Error) Error() string {
	var b strings.Builder
	for i, fault := range e.Faults {
		if i == mostShown {
			fmt.Fprintf(&b, "; and %d more", len(e.Faults)-i)
			break
		}
		if i > 0 {
			b.WriteString("; ")
		}
		if fault.Line > 0 {
			fmt.Fprintf(&b, "line %d: ", fault.Line)
		}
		b.WriteString(fault.Problem)
	}
	return b.String()
}

// faults gathers what is wrong.
type faults []Fault

func (f *faults) add(line int, problem string, args ...any) {
	*f = append(*f, Fault{line, fmt.Sprintf(problem, args...)})
}

// err returns the faults as an *Error, or nil if there are none.
func (f *faults) err() error {
	if len(*f) == 0 {
		return nil
	}
	slices.SortStableFunc(*f, func(a, b Fault) int { return cmp.Compare(a.Line, b.Line) })
	return &Error{Faults: *f}
}
