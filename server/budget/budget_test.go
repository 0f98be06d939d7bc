package budget_test

import (
	"math"
	"testing"

	"github.com/promptassembly/promptassembly/server/budget"
)

func TestFits(t *testing.T) {
	for _, tt := range []struct {
		budget budget.Budget
		n      int
		want   bool
	}{
		{budget.Of(10), 9, true},
		{budget.Of(10), 10, true},
		{budget.Of(10), 11, false},
		{budget.Of(0), 0, true},
		{budget.Of(0), 1, false},
		{budget.Budget{}, 1, false},
		{budget.Of(math.MaxUint32), math.MaxInt32, true},
		{budget.Unlimited(), math.MaxInt, true},
		{budget.Budget{Limit: 1, Unlimited: true}, 2, true},
	} {
		if got := tt.budget.Fits(tt.n); got != tt.want {
			t.Errorf("%+v lets %d in: %t, want %t", tt.budget, tt.n, got, tt.want)
		}
	}
}

func TestAppend(t *testing.T) {
	for _, tt := range []struct {
		budget budget.Budget
		want   string
	}{
		{budget.Of(0), "max 0"},
		{budget.Of(3000), "max 3000"},
		{budget.Of(math.MaxUint32), "max 4294967295"},
		{budget.Unlimited(), "max unlimited"},
		{budget.Budget{Limit: 1, Unlimited: true}, "max unlimited"},
	} {
		if got := string(tt.budget.Append([]byte("max "))); got != tt.want {
			t.Errorf("%+v: %q, want %q", tt.budget, got, tt.want)
		}
	}
}
