package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/settings"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/writer/documents"
	"github.com/lopen-dev/lopen/writer/strictjson"
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

// textValue is a flag whose value stays as it was typed.
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
	text, _ := strictjson.Marshal(v.all) // strings
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

// settings loads the layers of settings for a project. config is the content of
// .lopen/config.json, flags what was set on the command line.
func (a *app) settings(config []byte, flags map[string]string) (*settings.Values, error) {
	user, err := a.userConfig()
	if err != nil {
		return nil, err
	}
	v, err := settings.Load(config, user, a.environ, flags)
	if err != nil {
		return nil, &usageError{err}
	}
	if !a.warnedIgnored {
		for _, text := range v.Ignored() {
			a.warnedIgnored = true
			fmt.Fprintf(a.stderr, "warning: %s\n", text)
		}
	}
	return v, nil
}

// maxConfig bounds the user's config.json, in bytes, as it bounds the project's.
const maxConfig = 1 << 20

func (a *app) userConfig() ([]byte, error) {
	path, err := a.userConfigPath()
	if err != nil {
		return nil, nil //nolint:nilerr // a user without a home has no config
	}
	data, err := documents.ReadFile(path, maxConfig)
	if os.IsNotExist(err) {
		return nil, nil
	}
	return data, err
}

func (a *app) userConfigPath() (string, error) {
	dir := a.getenv("XDG_CONFIG_HOME")
	if dir == "" {
		var err error
		if dir, err = os.UserConfigDir(); err != nil {
			return "", err
		}
	}
	return filepath.Join(dir, "lopen", "config.json"), nil
}

// projectSettings are the settings of a project, with or without a store. flags are
// those that were typed; nil for none.
func (a *app) projectSettings(project string, flags map[string]string) (*settings.Values, error) {
	store, err := lifecycle.Open(project, a.storeOptions(project))
	if errors.Is(err, lifecycle.ErrNoStore) {
		return a.settings(nil, flags)
	}
	if err != nil {
		return nil, err
	}
	defer release(store)
	return a.storeSettings(store, flags)
}

// storeSettings are the settings of a project that has a store.
func (a *app) storeSettings(store *lifecycle.Store, flags map[string]string) (*settings.Values, error) {
	config, err := store.Config()
	if err != nil {
		return nil, err
	}
	return a.settings(config, flags)
}
