package settings

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Source is where a value comes from.
type Source string

// The sources, the weakest first.
const (
	SourceDefault  Source = "default"
	SourceUser     Source = "user"
	SourceProject  Source = "project"
	SourceVariable Source = "variable"
	SourceFlag     Source = "flag"
)

// An Entry is a setting with its value, for showing.
type Entry struct {
	Key    string `json:"key"`
	Value  any    `json:"value"`
	Source Source `json:"source"`
	Help   string `json:"help"`
}

// Values are the settings in force.
type Values struct {
	value   map[string]any
	source  map[string]Source
	ignored []string
}

// Load lays the sources over each other. project and user are the contents of
// the two config.json, nil where there is none; flags holds those that were given,
// by the setting's name. An error names the setting, its value, where it comes
// from and what would be right. LOPEN_* variables that are no settings are ignored.
func Load(project, user []byte, environ []string, flags map[string]string) (*Values, error) {
	v := &Values{value: map[string]any{}, source: map[string]Source{}}
	for _, k := range keys {
		v.value[k.Name], v.source[k.Name] = k.Default, SourceDefault
	}
	if err := v.file(user, SourceUser, "the user's config.json"); err != nil {
		return nil, err
	}
	if err := v.file(project, SourceProject, ".lopen/config.json"); err != nil {
		return nil, err
	}
	for _, k := range keys {
		for _, kv := range environ {
			s, ok := strings.CutPrefix(kv, k.Variable()+"=")
			if !ok || s == "" {
				continue
			}
			if err := v.set(k, s, SourceVariable, k.Variable()); err != nil {
				return nil, err
			}
		}
		if s, ok := flags[k.Name]; ok {
			if err := v.set(k, s, SourceFlag, "--"+k.Flag()); err != nil {
				return nil, err
			}
		}
	}
	return v, nil
}

func (v *Values) set(k Key, s string, from Source, where string) error {
	parsed, err := k.parse(s)
	if err != nil {
		return fmt.Errorf("%s: %w", where, err)
	}
	v.value[k.Name], v.source[k.Name] = parsed, from
	return nil
}

func (v *Values) file(data []byte, from Source, where string) error {
	members, err := decode(data)
	if err != nil {
		return fmt.Errorf("%s: %w", where, err)
	}
	for name, raw := range members {
		k, err := find(name)
		if err != nil {
			return fmt.Errorf("%s: %w", where, err)
		}
		if k.userOnly && from == SourceProject {
			v.ignored = append(v.ignored, fmt.Sprintf("%s: %s is ignored: %s", where, name, k.whose()))
			continue
		}
		parsed, err := k.parseJSON(raw)
		if err != nil {
			return fmt.Errorf("%s: %w", where, err)
		}
		if list, ok := parsed.([]string); ok && k.adds {
			parsed = append(slices.Clip(v.value[name].([]string)), list...)
		}
		v.value[name], v.source[name] = parsed, from
	}
	slices.Sort(v.ignored)
	return nil
}

// whose says where a setting that is the user's alone is set.
func (k Key) whose() string {
	return fmt.Sprintf("a project cannot set it; set it in lopen/config.json in the folder of your own settings, or for one run with %s", k.Variable())
}

// Ignored says what the project's config.json tried to set and may not, a sentence each.
func (v *Values) Ignored() []string { return slices.Clone(v.ignored) }

const schemaVersion = 1

// decode reads a config.json without its schemaVersion.
func decode(data []byte) (map[string]any, error) {
	if len(bytes.TrimSpace(data)) == 0 {
		return map[string]any{}, nil
	}
	var members map[string]any
	if err := json.Unmarshal(data, &members); err != nil {
		return nil, fmt.Errorf("it is not a JSON object: %w", err)
	}
	if version, ok := members["schemaVersion"]; ok {
		if n, ok := version.(float64); !ok || n > schemaVersion {
			return nil, fmt.Errorf("schema version %v was written by a newer lopen: update this one", version)
		}
		delete(members, "schemaVersion")
	}
	return members, nil
}

// Set returns the content of a project's config.json with one setting changed; data is
// the old content, or nil. A setting that is the user's alone is an error.
func Set(data []byte, name, value string) ([]byte, error) {
	k, err := find(name)
	if err != nil {
		return nil, err
	}
	if k.userOnly {
		return nil, fmt.Errorf("%s: %s", name, k.whose())
	}
	parsed, err := k.parse(value)
	if err != nil {
		return nil, err
	}
	members, err := decode(data)
	if err != nil {
		return nil, fmt.Errorf("config.json: %w", err)
	}
	members["schemaVersion"] = schemaVersion
	members[name] = shown(parsed)
	out, err := json.MarshalIndent(members, "", "  ")
	if err != nil {
		return nil, err
	}
	return append(out, '\n'), nil
}

// All returns every setting with its value and source.
func (v *Values) All() []Entry {
	all := make([]Entry, len(keys))
	for i, k := range keys {
		all[i] = Entry{Key: k.Name, Value: shown(v.value[k.Name]), Source: v.source[k.Name], Help: k.Help}
	}
	return all
}

// Bool returns a setting that is true or false. Asking for a setting that there
// is not, or as another type, is a mistake in this program and panics.
func (v *Values) Bool(name string) bool { return v.value[name].(bool) }

// Int returns a setting that is a number; see Bool.
func (v *Values) Int(name string) int { return v.value[name].(int) }

// Duration returns a setting that is a time; see Bool.
func (v *Values) Duration(name string) time.Duration { return v.value[name].(time.Duration) }

// Number returns a setting that is a number with a fraction; see Bool.
func (v *Values) Number(name string) float64 { return v.value[name].(float64) }

// Object returns a setting that is an object, nil where none is set; see Bool.
func (v *Values) Object(name string) json.RawMessage { return v.value[name].(json.RawMessage) }

// String returns a setting that is text; see Bool.
func (v *Values) String(name string) string { return v.value[name].(string) }

// Strings returns a setting that is a list; see Bool.
func (v *Values) Strings(name string) []string { return v.value[name].([]string) }

// Source says where a setting comes from.
func (v *Values) Source(name string) Source { return v.source[name] }
