package main

import (
	"runtime/debug"

	"github.com/promptassembly/promptassembly/server/internal/config"
	"github.com/promptassembly/promptassembly/server/tokens"
)

// loadTokenizers reads the files of the configured token counters. One that cannot be used is a fault of
// the configuration.
func loadTokenizers(cfg config.Config, settings []config.Setting) ([]tokens.Counter, error) {
	if len(cfg.Tokenizers) == 0 {
		return nil, nil
	}
	origin := ""
	for _, setting := range settings {
		if setting.Name == "tokenizers" {
			origin = setting.Origin
		}
	}
	var counters []tokens.Counter
	var faults []config.Fault
	for _, file := range cfg.Tokenizers {
		counter, err := file.Load()
		if err != nil {
			faults = append(faults, config.Fault{Key: "tokenizers", Origin: origin, Problem: file.Name + ": " + err.Error()})
			continue
		}
		counters = append(counters, counter)
	}
	debug.FreeOSMemory() // reading them took many times what stays
	if faults != nil {
		return nil, &config.Error{Faults: faults}
	}
	return counters, nil
}
