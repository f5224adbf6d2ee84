package settings

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/lopen-dev/lopen/writer/strictjson"
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

// Load lays the sources over each other. project and user are the contents of
// the two config.json, nil where there is none; flags holds those that were given,
// by the setting's name. An error names the setting, its value, where it comes
// from and what would be right. LOPEN_* variables that are no settings are ignored.
func Load(project, user []byte, environ []string, flags map[string]string) (*Values, error) {
	v := &Values{source: map[string]Source{}}
	for _, k := range keys {
		if k.initial == "" {
			v.source[k.Name] = SourceDefault
		} else if err := v.set(k, k.initial, SourceDefault, "default"); err != nil {
			return nil, err
		}
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
	v.put(k, parsed, from)
	return nil
}

// of is the field of a setting.
func (v *Values) of(k Key) reflect.Value { return reflect.ValueOf(v).Elem().Field(k.field) }

func (v *Values) put(k Key, value any, from Source) {
	v.of(k).Set(reflect.ValueOf(value))
	v.source[k.Name] = from
}

func (v *Values) file(data []byte, from Source, where string) error {
	members, err := decode(data)
	if err != nil {
		return fmt.Errorf("%s: %w", where, err)
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		k, err := find(name)
		if err != nil {
			return fmt.Errorf("%s: %w", where, err)
		}
		if k.rule == ofUser && from == SourceProject {
			v.ignored = append(v.ignored, fmt.Sprintf("%s: %s is ignored: %s", where, name, k.whose()))
			continue
		}
		parsed, err := k.parseJSON(members[name])
		if err != nil {
			return fmt.Errorf("%s: %w", where, err)
		}
		if list, ok := parsed.([]string); ok && k.rule == adds {
			parsed = append(slices.Clip(v.of(k).Interface().([]string)), list...)
		}
		v.put(k, parsed, from)
	}
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
	if err := strictjson.Unmarshal(data, &members); err != nil {
		return nil, fmt.Errorf("it cannot be read as a JSON object: %w", err)
	}
	if members == nil {
		return nil, errors.New("it cannot be read as a JSON object: it is null")
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
	if k.rule == ofUser {
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
	out, err := strictjson.MarshalLines(members)
	if err != nil {
		return nil, err
	}
	return append(out, '\n'), nil
}

// All returns every setting with its value and source.
func (v *Values) All() []Entry {
	all := make([]Entry, len(keys))
	for i, k := range keys {
		all[i] = Entry{Key: k.Name, Value: shown(v.of(k).Interface()), Source: v.source[k.Name], Help: k.Help}
	}
	return all
}

// Source says where a setting comes from.
func (v *Values) Source(name string) Source { return v.source[name] }
