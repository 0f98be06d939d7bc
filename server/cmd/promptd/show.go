package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/promptassembly/promptassembly/server/internal/config"
)

func newConfig(environ []string) *cobra.Command {
	cmd := &cobra.Command{Use: "config", Short: "Look at the configuration"}
	cmd.AddCommand(newShow(environ))
	return cmd
}

func newShow(environ []string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show",
		Short: "Print what is in force and where it comes from",
		Long: `Print what promptd would run with, given the same flags, environment and file: a
line for each key, with its value and whether that is the default or which flag,
variable or file it comes from. Secrets are not shown. The files of tokenizers are
read, too, and one that cannot be used is told.

With -o yaml it prints a file that can be used as the configuration. Secrets, and
what GOGC and GOMEMLIMIT say, stand in it as comments.`,
		Args:              noArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	given := addFlags(cmd)
	output := cmd.Flags().StringP("output", "o", "text", "form of the output: text or yaml")
	err := cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"text", "yaml"}, cobra.ShellCompDirectiveNoFileComp))
	if err != nil {
		panic(err) // the flag was added above
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		write := config.WriteText
		switch *output {
		case "text":
		case "yaml":
			write = config.WriteYAML
		default:
			return usageError{fmt.Errorf("--output %q: must be text or yaml", *output)}
		}
		cfg, settings, err := config.Load(config.Sources{Flags: given, Environ: environ})
		if err != nil {
			return err
		}
		if _, err := loadTokenizers(cfg, settings); err != nil {
			return err
		}
		return write(cmd.OutOrStdout(), settings)
	}
	return cmd
}
