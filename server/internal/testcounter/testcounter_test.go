package testcounter_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/promptassembly/promptassembly/server/internal/testcounter"
	"github.com/promptassembly/promptassembly/server/tokens"
)

var text = rapid.OneOf(rapid.String(), rapid.StringMatching(`[a-z0-9_ <>/"=\r\n\-.界]*`))

func TestPiecesIsAdditive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		if err := testcounter.CheckSeams(testcounter.Pieces{}, text.Draw(t, "a"), text.Draw(t, "b")); err != nil {
			t.Fatal(err)
		}
	})
}

func TestTheOthersAreNot(t *testing.T) {
	for _, c := range []tokens.Counter{testcounter.Merges{}, testcounter.Blocks{}} {
		if testcounter.CheckSeams(c, "a", "b") == nil {
			t.Errorf("%T breaks no promise", c)
		}
	}
}
