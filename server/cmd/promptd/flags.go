package main

import (
	"github.com/spf13/cobra"

	"github.com/promptassembly/promptassembly/server/internal/config"
)

// addFlags gives cmd a flag for each key of the configuration, and one for its file. What the command
// line gives is in the map that it returns, by the name of the key, once the command runs.
func addFlags(cmd *cobra.Command) map[string]string {
	given := make(map[string]string)
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.Var(&flag{given: given, key: config.FileKey, kind: "file"}, config.FileKey, "YAML file to read, of at most 1 MiB")
	for _, key := range config.Keys() {
		name, usage := key.Flag(), key.Help
		var completions []string
		switch key.Kind {
		case config.Choice:
			completions = key.Choices
		case config.Bool:
			completions = []string{"true", "false"}
		case config.Secret:
		default:
			usage += " (" + key.Range() + ")"
		}
		flags.Var(&flag{given: given, key: key.Name, kind: key.Placeholder(), byDefault: key.DefaultText()}, name, usage)
		if key.Kind == config.Bool {
			flags.Lookup(name).NoOptDefVal = "true"
		}
		err := cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(completions, cobra.ShellCompDirectiveNoFileComp))
		if err != nil {
			panic(err) // the flag was added above
		}
	}
	return given
}

// flag is a flag whose value is checked when all of the configuration is.
type flag struct {
	given           map[string]string
	key             string
	kind, byDefault string // for help
}

func (f *flag) String() string { return f.byDefault }
func (f *flag) Type() string   { return f.kind }

func (f *flag) Set(value string) error {
	f.given[f.key] = value
	return nil
}
