package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/loop"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/owner"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/settings"
	"github.com/lopen-dev/lopen/lifecycle"
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

// settings loads the layers of settings that are no project's. flags is what was set on the command line.
func (a *app) settings(flags map[string]string) (*settings.Values, error) {
	return a.layered(settings.Sources{Flags: flags})
}

// layered loads the layers of settings, and warns once of what a project's config.json may not say.
func (a *app) layered(from settings.Sources) (*settings.Values, error) {
	var err error
	if from.User, err = a.userConfig(); err != nil {
		return nil, err
	}
	from.Environ, from.Agent = a.environ, a.byAgent
	v, err := settings.Load(from)
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
	data, err := owner.ReadFile(path, maxConfig)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err == nil {
		err = owner.Private(filepath.Dir(path), a.getenv("HOME"))
	}
	var foreign *owner.Error
	if errors.As(err, &foreign) {
		return nil, &loop.Exit{Code: loop.ExitUser, Reason: "your own settings: " + err.Error()}
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
		return a.settings(flags)
	}
	if err != nil {
		return nil, err
	}
	defer release(store)
	return a.storeSettings(store, flags)
}

// storeSettings are the settings of a project that has a store.
func (a *app) storeSettings(store *lifecycle.Store, flags map[string]string) (*settings.Values, error) {
	return a.sessionSettings(store, nil, flags)
}

// sessionSettings are those with what a session was run with.
func (a *app) sessionSettings(store *lifecycle.Store, session, flags map[string]string) (*settings.Values, error) {
	config, unread := store.Config()
	v, err := a.layered(settings.Sources{Project: config, Unread: unread, Here: a.setHere(store), Session: session, Flags: flags})
	if err != nil {
		return nil, err
	}
	return v, outOfGit(store.Project().Name(), v.RequirementsDir)
}

// setHere is what the user set in a project with config set. What of it cannot be read is nothing.
func (a *app) setHere(store *lifecycle.Store) map[string]settings.Noted {
	approvals, err := a.approvals()
	if err != nil {
		return nil
	}
	here, err := approvals.Here(store.Project().Name())
	if err != nil {
		fmt.Fprintf(a.stderr, "warning: %v\n", err)
	}
	all := map[string]settings.Noted{}
	for name, n := range here.Settings {
		all[name] = settings.Noted{Value: n.Value, Same: here.Same(n.Store)}
	}
	return all
}

// outOfGit refuses a folder of specifications that a symlink leads into a repository's own files.
func outOfGit(project, dir string) error {
	target, err := filepath.EvalSymlinks(filepath.Join(project, dir))
	if err != nil {
		return nil //nolint:nilerr // who opens it says so
	}
	if top, err := filepath.EvalSymlinks(project); err == nil {
		if within, err := filepath.Rel(top, target); err == nil && settings.InGit(within) {
			return usagef("requirements_dir: %s leads to %s: give a folder that is not in .git", dir, target)
		}
	}
	return nil
}
