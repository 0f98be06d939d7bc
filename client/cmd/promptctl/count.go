package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/promptassembly/promptassembly/server/tokens"
)

// countCommand is `promptctl count`.
type countCommand struct {
	counters counterFlags
	output   *choice
}

// counts is what a text takes. Its JSON is the output of `promptctl count -o json`.
type counts struct {
	Bytes int `json:"bytes"`
	// Chars are code points.
	Chars  int          `json:"chars"`
	Tokens []tokenCount `json:"tokens"`
}

type tokenCount struct {
	Tokenizer string `json:"tokenizer"`
	Exact     bool   `json:"exact"`
	Count     int    `json:"count"`
}

func newCount() *cobra.Command {
	c := &countCommand{}
	cmd := &cobra.Command{
		Use:   "count [FILE|-]",
		Short: "Count the tokens, characters and bytes of a text",
		Long: `Counts a text out of FILE, or out of standard input, in this program, as a server
of this version would: its bytes, its characters (Unicode code points), and its
tokens by each tokenizer. What looks like a special token counts as text.`,
		Example: `  promptctl count --tokenizer o200k_base prompt.txt
  promptctl plan request.json | jq -j .plan.prompt | promptctl count --tokenizer estimate,cl100k_base,o200k_base
  promptctl count --tokenizer-file qwen3=tokenizer.json prompt.txt`,
		Args: cobra.MaximumNArgs(1),
		RunE: c.run,
	}
	c.counters.flags(cmd)
	c.output = outputFlag(cmd, "table")
	return cmd
}

func (c *countCommand) run(cmd *cobra.Command, args []string) error {
	chosen, err := c.counters.chosen()
	if err != nil {
		return usageError{err}
	}
	in, err := openInput(cmd, args)
	if err != nil {
		return err
	}
	defer in.Close()
	text, err := in.readAll(cmd.Context())
	if err == nil && !utf8.Valid(text) {
		err = errors.New("the text is no UTF-8")
	}
	if errors.Is(err, errTooLong) {
		err = fmt.Errorf("the text is %w", err)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", in.name, err)
	}
	return c.write(cmd.OutOrStdout(), count(text, chosen))
}

func count(text []byte, counters []tokens.Counter) counts {
	n := counts{Bytes: len(text), Chars: utf8.RuneCount(text)}
	for _, counter := range counters {
		n.Tokens = append(n.Tokens, tokenCount{counter.Name(), counter.Exact(), counter.Count(text)})
	}
	return n
}

func (c *countCommand) write(w io.Writer, n counts) error {
	if c.output.value == "json" {
		text, err := encodeJSON(n)
		if err != nil {
			return err
		}
		return writeIndented(w, text)
	}
	t := table{columns: []column{{title: "tokenizer", least: 20}, {title: "tokens", right: true}, {title: "exact"}}}
	for _, of := range n.Tokens {
		exact := "no"
		if of.Exact {
			exact = "yes"
		}
		t.rows = append(t.rows, row{cells: []string{of.Tokenizer, strconv.Itoa(of.Count), exact}})
	}
	out := bufio.NewWriter(w)
	t.write(out, painter{})
	fmt.Fprintf(out, "chars %d, bytes %d\n", n.Chars, n.Bytes)
	return out.Flush()
}
