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
	SourceHere     Source = "set here" // by this user, with config set
	SourceVariable Source = "variable"
	SourceSession  Source = "session"
	SourceFlag     Source = "flag"
)

// Sources are what [Load] lays over each other. Project and User are the contents of the two
// config.json, nil where there is none; Flags holds those that were given, by the setting's name.
type Sources struct {
	Project, User []byte
	Unread        error            // why there is no Project, nil where there simply is none
	Here          map[string]Noted // what this user set in the project, by the setting's name
	Environ       []string
	Agent         func() bool       // reports whether an agent typed the flags and set the variables, which tighten only then; nil for no
	Session       map[string]string // what a session was run with, which counts over variables
	Flags         map[string]string
}

// A Noted is a setting of the project's config.json as this user set it, with its value as it is there.
// It is noted where the project cannot write.
type Noted struct {
	Value strictjson.Value
	Same  bool // whether it was set in this very .lopen, and not in one that lay in its place
}

// An Entry is a setting with its value, for showing.
type Entry struct {
	Key    string `json:"key"`
	Value  any    `json:"value"`
	Source Source `json:"source"`
	Whose  string `json:"whose"` // see [Key.Whose]
	Help   string `json:"help"`
}

// Load lays the sources over each other. An error names the setting, its value, where it comes
// from and what would be right. LOPEN_* variables that are no settings are ignored.
func Load(from Sources) (*Values, error) {
	v := &Values{source: map[string]Source{}}
	for _, k := range keys {
		if k.initial == "" {
			v.source[k.Name] = SourceDefault
		} else if err := v.set(k, k.initial, SourceDefault, "default"); err != nil {
			return nil, err
		}
	}
	const own = "the user's config.json"
	if err := v.file(from.User, func(k Key, value any) { v.put(k, value, SourceUser) }, func(err error) error { return fmt.Errorf("%s: %w", own, err) }); err != nil {
		return nil, err
	}
	v.project(&from)
	for _, k := range keys {
		if s := k.variable(from.Environ); s != "" {
			if err := v.typed(k, s, SourceVariable, k.Variable(), &from); err != nil {
				return nil, err
			}
		}
		if s, ok := from.Session[k.Name]; ok {
			if err := v.set(k, s, SourceSession, "session"); err != nil {
				return nil, err
			}
		}
		if s, ok := from.Flags[k.Name]; ok {
			if err := v.typed(k, s, SourceFlag, "--"+k.Flag(), &from); err != nil {
				return nil, err
			}
		}
	}
	return v, nil
}

// variable is the value of the setting's environment variable, "" for none.
func (k Key) variable(environ []string) (value string) {
	for _, kv := range environ {
		if s, ok := strings.CutPrefix(kv, k.Variable()+"="); ok && s != "" {
			value = s
		}
	}
	return value
}

// typed is set for what was typed: by an agent it tightens only.
func (v *Values) typed(k Key, s string, source Source, where string, from *Sources) error {
	value, err := k.parse(s)
	if err == nil && k.stricter != "" && from.Agent != nil && !v.is(k, value) && !k.isStricter(value, v.value(k)) && from.Agent() {
		v.ignored = append(v.ignored, fmt.Sprintf("%s is ignored: %s is less strict than %s, and an agent does not loosen that", where, word(value), word(v.value(k))))
		return nil
	}
	return v.set(k, s, source, where)
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

// file calls put with each setting of a config.json, and wrong with what is wrong there until that returns an error.
func (v *Values) file(data []byte, put func(Key, any), wrong func(error) error) error {
	members, err := decode(data)
	if err != nil {
		return wrong(err)
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		var parsed any
		k, err := find(name)
		if err == nil {
			parsed, err = k.parseJSON(members[name])
		}
		if err == nil {
			put(k, parsed)
		} else if err = wrong(err); err != nil {
			return err
		}
	}
	return nil
}

// whose says where a setting that is the user's alone is set.
func (k Key) whose() string {
	return fmt.Sprintf("a project cannot set it; set it for all with lopen config set, or for one run with %s", k.Variable())
}

// Ignored says what the project's config.json tried to set and may not, and behind that [Values.Wrong], a sentence each.
func (v *Values) Ignored() []string { return slices.Concat(v.ignored, v.wrong) }

// Wrong says what in the project's config.json is no setting, or cannot be read, a sentence each.
func (v *Values) Wrong() []string { return slices.Clone(v.wrong) }

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

// Set returns the content of a config.json with one setting changed; data is the old content, or
// nil. noted is the value as it is there then.
func Set(data []byte, name, value string) (config []byte, noted strictjson.Value, err error) {
	k, err := find(name)
	if err != nil {
		return nil, nil, err
	}
	parsed, err := k.parse(value)
	if err != nil {
		return nil, nil, err
	}
	members, err := decode(data)
	if err != nil {
		return nil, nil, fmt.Errorf("config.json: %w", err)
	}
	members["schemaVersion"] = schemaVersion
	members[name] = shown(parsed)
	if noted, err = strictjson.Marshal(members[name]); err != nil {
		return nil, nil, err
	}
	out, err := strictjson.MarshalLines(members)
	if err != nil {
		return nil, nil, err
	}
	return append(out, '\n'), noted, nil
}

// All returns every setting with its value and source.
func (v *Values) All() []Entry {
	all := make([]Entry, len(keys))
	for i, k := range keys {
		all[i] = Entry{Key: k.Name, Value: shown(v.of(k).Interface()), Source: v.source[k.Name], Whose: k.Whose(), Help: k.Help}
	}
	return all
}

// Source says where a setting comes from.
func (v *Values) Source(name string) Source { return v.source[name] }
