package prompt_test

import (
	"math"
	"strings"

	"pgregory.net/rapid"

	"github.com/promptassembly/promptassembly/server/budget"
	"github.com/promptassembly/promptassembly/server/internal/testcounter"
	"github.com/promptassembly/promptassembly/server/prompt"
)

var hostileText = rapid.Map(rapid.SliceOfN(rapid.OneOf(
	rapid.SampledFrom([]string{
		"a", "Use Go.", "x_1", "界", "é", "👩‍👩‍👧‍👦", " ", "\u3000", "\x00", "\uFFFE", "&", ">", "/",
		"-", "--", "---", "\n", "\r", "\v", "\f", "\u0085", "\u2028", "\u2029", "\x1E", "\n---\n", "\n\n---\n\n",
		"<", "</", "memory_hit", "Memory_Hit>", "recalled_memory", "RECALLED_MEMORY", "<memory_hit", "</recalled_memory>",
		"memory_h", "it", "<<memory_hit", "\u017F", "\u0131", strings.Repeat("long ", 20),
	}),
	rapid.String(),
), 0, 7), func(pieces []string) string { return strings.Join(pieces, "") })

// drawRequest draws a request as the service makes them: at most one segment of recalled memory,
// and no required one of it.
func drawRequest(t *rapid.T) prompt.Request {
	names := rapid.Permutation([]string{"a", "b", "B", "base", "é", "memory", "z z", "a-b", "\U00010000"}).Draw(t, "names")
	kinds := rapid.IntRange(int(prompt.BaseInstructions), int(prompt.Custom))
	segments := make([]prompt.Segment, rapid.IntRange(0, len(names)).Draw(t, "segments"))
	remembered := false
	for i := range segments {
		s := &segments[i]
		*s = prompt.Segment{
			Name:           names[i],
			Kind:           prompt.Kind(kinds.Draw(t, "kind")),
			Text:           hostileText.Draw(t, "text"),
			Priority:       rapid.SampledFrom([]int32{10, 10, 20, 50, -1, math.MinInt32, math.MaxInt32}).Draw(t, "priority"),
			BudgetPriority: rapid.SampledFrom([]int32{50, 50, 90, 0, -1, math.MinInt32, math.MaxInt32}).Draw(t, "budget priority"),
			Required:       rapid.IntRange(0, 3).Draw(t, "required") == 0,
		}
		if s.Kind == prompt.RecalledMemory {
			if remembered {
				s.Kind = prompt.Custom
			} else {
				remembered, s.Required = true, false
			}
		}
	}
	limit := func(most uint32) *rapid.Generator[budget.Budget] {
		return rapid.OneOf(rapid.Just(budget.Unlimited()), rapid.Map(rapid.Uint32Range(0, most), budget.Of))
	}
	return prompt.Request{
		Segments:  segments,
		MaxChars:  limit(600).Draw(t, "max chars"),
		MaxTokens: limit(200).Draw(t, "max tokens"),
		Counter:   rapid.SampledFrom(counters).Draw(t, "counter"),
	}
}

// counters are of every kind, some of them additive.
var counters = testcounter.All("../tokens/bpe/testdata/small")
