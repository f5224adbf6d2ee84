package main

import (
	"encoding/json"

	"github.com/spf13/pflag"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/settings"
)

// settingFlag makes a flag for a setting; its value is parsed where all layers
// of settings are.
func settingFlag(f *pflag.FlagSet, name, usage string) {
	f.Var(&textValue{kind: "string"}, name, usage)
}

func settingBool(f *pflag.FlagSet, name, usage string) {
	f.Var(&textValue{kind: "bool"}, name, usage)
	f.Lookup(name).NoOptDefVal = "true"
}

// textValue is a flag that is kept as it was typed.
type textValue struct{ text, kind string }

func (v *textValue) String() string     { return v.text }
func (v *textValue) Set(s string) error { v.text = s; return nil }
func (v *textValue) Type() string       { return v.kind }

// listValue is a flag that is given once for each element of a setting that is a list.
type listValue struct{ all []string }

func (v *listValue) String() string {
	if len(v.all) == 0 {
		return ""
	}
	text, _ := json.Marshal(v.all) // strings
	return string(text)
}
func (v *listValue) Set(s string) error { v.all = append(v.all, s); return nil }
func (v *listValue) Type() string       { return "strings" }

// changedSettings returns the settings that were given as flags, by key.
func changedSettings(f *pflag.FlagSet) map[string]string {
	given := map[string]string{}
	for _, k := range settings.Keys() {
		if fl := f.Lookup(k.Flag()); fl != nil && fl.Changed {
			given[k.Name] = fl.Value.String()
		}
	}
	return given
}
