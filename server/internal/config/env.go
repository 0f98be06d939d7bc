package config

import (
	"regexp"
	"slices"
	"strings"
)

const envPrefix = "PROMPTD_"

// serviceLink matches the variables that Kubernetes makes in every container of a namespace for each
// of its services, here one whose name begins with promptd. The ambiguous one counts with the value
// that Kubernetes gives it.
var serviceLink = regexp.MustCompile(`^PROMPTD_([A-Z0-9_]+_)?` +
	`(SERVICE_(HOST|PORT(_[A-Z0-9_]+)?)=|PORT_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?=|PORT=(tcp|udp|sctp)://)`)

// environment adds the layer of PROMPTD_* variables.
func (l *loader) environment(environ []string) {
	layer := layer{values: make(map[string]any), origin: func(k Key) string { return k.Env() }}
	for _, variable := range slices.Sorted(slices.Values(environ)) {
		name, value, _ := strings.Cut(variable, "=")
		if !strings.HasPrefix(name, envPrefix) || name == fileEnv {
			continue
		}
		if key, ok := l.byEnv[name]; ok {
			l.set(layer, key, value, name)
		} else if !serviceLink.MatchString(variable) {
			names := []string{fileEnv}
			for _, key := range l.keys {
				names = append(names, key.Env())
			}
			l.fault(name, "environment", "there is no such variable; the nearest is "+nearest(name, names))
		}
	}
	l.layers = append(l.layers, layer)
}

// lookup returns the value of a variable in the form of os.Environ.
func lookup(environ []string, name string) (value string, found bool) {
	for _, variable := range environ {
		if value, ok := strings.CutPrefix(variable, name+"="); ok {
			return value, true
		}
	}
	return "", false
}
