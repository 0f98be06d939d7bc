package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

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
