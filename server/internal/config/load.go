package config

import (
	"github.com/knadh/koanf/providers/confmap"
	"github.com/knadh/koanf/v2"
)

// fileEnv is the environment variable that names the file.
const fileEnv = envPrefix + "CONFIG"

// Sources is where a configuration comes from, besides the file and the defaults.
type Sources struct {
	// Flags is what the command line gives, by the name of the key.
	Flags map[string]string
	// Environ is the environment, as os.Environ gives it.
	Environ []string
}

// Setting is the value of a key that is in force, and where it comes from.
type Setting struct {
	Key
	// Value is as it could be written; of a Secret, it is the secret.
	Value string
	// Origin is the flag, the environment variable, the path of the file, or "default".
	Origin string
}

// ByDefault is the origin of what nobody set.
const ByDefault = "default"

// Load reads the configuration: flags win over the environment, that over the file, and that over the
// defaults. It returns it with a setting for each of Keys, in that order. The error is an *Error with
// everything that is wrong.
func Load(from Sources) (Config, []Setting, error) {
	l := &loader{keys: Keys(), byName: make(map[string]Key), byEnv: make(map[string]Key)}
	for _, key := range l.keys {
		l.byName[key.Name], l.byEnv[key.Env()] = key, key
	}
	l.defaults()
	if path, ok := from.Flags[FileKey]; ok {
		l.file(path, "--"+FileKey)
	} else if path, ok := lookup(from.Environ, fileEnv); ok {
		l.file(path, fileEnv)
	}
	l.environment(from.Environ)
	l.flags(from.Flags)
	if len(l.faults) > 0 {
		return Config{}, nil, &Error{Faults: l.faults}
	}
	merged, origins := l.merge()
	cfg := newConfig(merged)
	l.relations(cfg, origins)
	if len(l.faults) > 0 {
		return Config{}, nil, &Error{Faults: l.faults}
	}
	return l.result(merged, origins, from.Environ)
}

// loader gathers layers, the later of which win, and what is wrong with them.
type loader struct {
	keys   []Key
	byName map[string]Key
	byEnv  map[string]Key
	layers []layer
	faults []Fault
}

// layer is what one origin says.
type layer struct {
	values map[string]any // by key
	origin func(Key) string
}

func (l *loader) fault(key, origin, problem string) {
	l.faults = append(l.faults, Fault{key, origin, problem})
}

// set puts the value that text stands for into the layer. The origin is for a fault.
func (l *loader) set(layer layer, key Key, text, origin string) {
	value, err := key.parse(text)
	if err != nil {
		l.fault(key.Name, origin, err.Error())
		return
	}
	layer.values[key.Name] = value
}

func (l *loader) defaults() {
	layer := layer{values: make(map[string]any), origin: func(Key) string { return ByDefault }}
	for _, key := range l.keys {
		l.set(layer, key, key.Default, ByDefault)
	}
	l.layers = append(l.layers, layer)
}

func (l *loader) flags(given map[string]string) {
	layer := layer{values: make(map[string]any), origin: func(k Key) string { return "--" + k.Flag() }}
	for _, key := range l.keys {
		if text, ok := given[key.Name]; ok {
			l.set(layer, key, text, layer.origin(key))
		}
	}
	l.layers = append(l.layers, layer)
}

// merge returns the values that win and their origins.
func (l *loader) merge() (merged *koanf.Koanf, origins map[string]string) {
	merged, origins = koanf.New("."), make(map[string]string)
	for _, layer := range l.layers {
		l.load(merged, layer.values)
		for name := range layer.values {
			origins[name] = layer.origin(l.byName[name])
		}
	}
	if origins["memory.limit"] == ByDefault {
		l.load(merged, map[string]any{"memory.limit": memoryLimit(
			merged.Int64("limits.in_flight_bytes"), merged.Int64("limits.buffered_bytes"), merged.Int64("limits.token_cache_bytes"))})
	}
	return merged, origins
}

func (l *loader) load(into *koanf.Koanf, values map[string]any) {
	if err := into.Load(confmap.Provider(values, "."), nil); err != nil {
		panic(err) // a map in memory
	}
}

// result returns the configuration and its settings. What the Go runtime takes from the environment
// by itself is in force whatever the layers say.
func (l *loader) result(merged *koanf.Koanf, origins map[string]string, environ []string) (Config, []Setting, error) {
	cfg := newConfig(merged)
	settings := make([]Setting, 0, len(l.keys))
	for _, key := range l.keys {
		settings = append(settings, Setting{Key: key, Value: key.format(merged.Get(key.Name)), Origin: origins[key.Name]})
	}
	gogc, _ := lookup(environ, "GOGC")
	memlimit, _ := lookup(environ, "GOMEMLIMIT")
	for i := range settings {
		setting := &settings[i]
		switch {
		case setting.Name == "memory.gc_percent" && gogc != "":
			setting.Value, setting.Origin = gogc, "GOGC"
			cfg.Memory.GCPercent = 0
		case setting.Name == "memory.limit" && memlimit != "":
			setting.Value, setting.Origin = memlimit, "GOMEMLIMIT"
			cfg.Memory.Limit = 0
		}
	}
	return cfg, settings, nil
}
