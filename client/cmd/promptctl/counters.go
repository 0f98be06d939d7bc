package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/promptassembly/promptassembly/server"
	"github.com/promptassembly/promptassembly/server/tokens"
)

// counterFlags are the flags that choose token counters of this program.
type counterFlags struct {
	names, files []string
}

func (f *counterFlags) flags(cmd *cobra.Command) {
	cmd.Flags().StringSliceVar(&f.names, "tokenizer", nil, "names of tokenizers, with commas between (default: those of --tokenizer-file, or else estimate)")
	cmd.Flags().StringArrayVar(&f.files, "tokenizer-file", nil, "NAME=FILE, a further tokenizer that a tokenizer.json describes; may stand several times")
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
	counters, names := server.Tokenizers(), f.names
	byDefault := []string{tokens.EstimateName}
	for i, text := range f.files {
		file, err := server.ParseTokenizerFile(text)
		if err == nil && i > 0 && slices.Contains(byDefault, file.Name) {
			err = errors.New("has the name of another")
		}
		if err != nil {
			return nil, fmt.Errorf("--tokenizer-file %s: %w", text, err)
		}
		counter, err := file.Load()
		if err != nil {
			return nil, fmt.Errorf("--tokenizer-file %s: %w", file.Name, err)
		}
		counters, byDefault = append(counters, counter), append(byDefault[:i], file.Name)
	}
	if len(names) == 0 {
		names = byDefault
	}
	set := tokens.NewSet(counters...)
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
