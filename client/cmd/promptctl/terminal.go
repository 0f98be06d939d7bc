package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// printable makes s safe for a terminal: what is no printable character or plain space becomes
// U+FFFD, so no escape sequence gets through.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return utf8.RuneError
	}, s)
}

// isTerminal reports whether stream, one of the process's own or any other, is a terminal.
func isTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// colour is the escape sequence that starts a colour; empty is none.
type colour string

const (
	plain  colour = ""
	bold   colour = "\x1b[1m"
	dim    colour = "\x1b[2m"
	red    colour = "\x1b[31m"
	green  colour = "\x1b[32m"
	yellow colour = "\x1b[33m"
)

// painter colours text, or leaves it plain.
type painter struct{ on bool }

func (p painter) paint(c colour, text string) string {
	if !p.on || c == plain {
		return text
	}
	return string(c) + text + "\x1b[0m"
}

// painterFor decides for an output: --color always and never are obeyed; auto means colour on a
// terminal, unless NO_COLOR is set (https://no-color.org) or the terminal is a dumb one.
func painterFor(when string, output any) painter {
	switch when {
	case "always":
		return painter{on: true}
	case "never":
		return painter{on: false}
	default:
		return painter{on: isTerminal(output) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
	}
}

// choice is a flag whose value is one of a few words.
type choice struct {
	value   string
	allowed []string
}

func (c *choice) String() string { return c.value }
func (c *choice) Type() string   { return strings.Join(c.allowed, "|") }

func (c *choice) Set(value string) error {
	if !slices.Contains(c.allowed, value) {
		return fmt.Errorf("must be one of %s", strings.Join(c.allowed, ", "))
	}
	c.value = value
	return nil
}

// flag adds c to cmd as a flag and to its shell completion.
func (c *choice) flag(cmd *cobra.Command, name, shorthand, usage string) {
	cmd.Flags().VarP(c, name, shorthand, usage)
	err := cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(c.allowed, cobra.ShellCompDirectiveNoFileComp))
	if err != nil {
		panic(err) // the flag was added above
	}
}

func outputFlag(cmd *cobra.Command, byDefault string) *choice {
	c := &choice{value: byDefault, allowed: []string{"json", "table"}}
	c.flag(cmd, "output", "o", "format of the answer")
	return c
}

func colorFlag(cmd *cobra.Command) *choice {
	c := &choice{value: "auto", allowed: []string{"auto", "always", "never"}}
	c.flag(cmd, "color", "", "whether to colour tables; auto means on a terminal, unless NO_COLOR is set")
	return c
}
