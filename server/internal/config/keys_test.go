package config_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/promptassembly/promptassembly/server/internal/config"
)

// The README's table of keys is this one.
func TestReadme(t *testing.T) {
	var table strings.Builder
	table.WriteString("| key | default | values | |\n|---|---|---|---|\n")
	for _, key := range config.Keys() {
		byDefault := "`" + key.Default + "`"
		switch {
		case key.Computed != "":
			byDefault = key.Computed
		case key.Default == "":
			byDefault = "none"
		}
		fmt.Fprintf(&table, "| `%s` | %s | %s | %s |\n", key.Name, byDefault, key.Range(), key.Help)
	}
	readme, err := os.ReadFile("../../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(readme), "\n\n"+table.String()+"\n") {
		t.Errorf("README.md does not hold this table:\n%s", table.String())
	}
}

// The sample file of the README is a configuration.
func TestReadmeSample(t *testing.T) {
	readme, err := os.ReadFile("../../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(readme), "```yaml\n# promptd.yaml\n")
	sample, _, found := strings.Cut(rest, "```")
	if !found {
		t.Fatal("there is none")
	}
	_, settings, err := config.Load(config.Sources{Flags: map[string]string{config.FileKey: write(t, sample)}})
	if err != nil {
		t.Fatal(err)
	}
	if got := find(t, settings, "drain.wait"); got.Value != "5s" {
		t.Errorf("drain.wait is %s from %s, want 5s", got.Value, got.Origin)
	}
}

// The names of flags and variables are one-to-one with keys, and none is taken for what Kubernetes
// puts into the environment.
func TestNames(t *testing.T) {
	flags, variables := map[string]bool{config.FileKey: true}, map[string]bool{"PROMPTD_CONFIG": true}
	for _, key := range config.Keys() {
		if flags[key.Flag()] || variables[key.Env()] {
			t.Errorf("%s has the flag or the variable of another key", key.Name)
		}
		flags[key.Flag()], variables[key.Env()] = true, true
		if key.Help == "" || strings.ContainsAny(key.Help, "`|\n") {
			t.Errorf("%s: help %q", key.Name, key.Help)
		}
	}
	if !flags["limits-in-flight-bytes"] || !variables["PROMPTD_LIMITS_IN_FLIGHT_BYTES"] {
		t.Error("limits.in_flight_bytes has another flag or variable")
	}
}
