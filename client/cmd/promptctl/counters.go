package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/promptassembly/promptassembly/server"
	"github.com/promptassembly/promptassembly/server/tokens"
)

// counterFlags are the flags that choose token counters of this program.
type counterFlags struct {
	names []string
}

func (f *counterFlags) flags(cmd *cobra.Command) {
	cmd.Flags().StringSliceVar(&f.names, "tokenizer", nil, "names of tokenizers, with commas between (default estimate)")
	completeTokenizers(cmd)
}

// completeTokenizers completes the flag --tokenizer with the names that every server has.
func completeTokenizers(cmd *cobra.Command) {
	names := tokens.NewSet(server.Tokenizers()...).Names()
	err := cmd.RegisterFlagCompletionFunc("tokenizer", cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp))
	if err != nil {
		panic(err) // the flag was added before
	}
}

// chosen returns the counters of the names that were given.
func (f *counterFlags) chosen() ([]tokens.Counter, error) {
	set := tokens.NewSet(server.Tokenizers()...)
	names := f.names
	if len(names) == 0 {
		names = []string{tokens.EstimateName}
	}
	var chosen []tokens.Counter
	for _, name := range names {
		if name == "" {
			return nil, errors.New("--tokenizer: there is an empty name")
		}
		counter, ok := set.Find(name)
		if !ok {
			return nil, fmt.Errorf("--tokenizer: there is no tokenizer %q; 'promptctl tokenizers' lists them", name)
		}
		chosen = append(chosen, counter)
	}
	return chosen, nil
}
