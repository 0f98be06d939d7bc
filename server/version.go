package server

import (
	"runtime/debug"
	"strings"

	"golang.org/x/text/unicode/norm"
)

// Version says what is running: the module's version, its commit where the build recorded one, the
// Go release and the version of the Unicode tables.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown, Unicode " + norm.Version
	}
	parts := []string{info.Main.Version}
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" {
			parts = append(parts, "commit "+setting.Value)
		}
	}
	parts = append(parts, info.GoVersion, "Unicode "+norm.Version)
	return strings.Join(parts, ", ")
}
