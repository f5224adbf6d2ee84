package main

import (
	"cmp"
	"os"
	"slices"
	"strings"

	"github.com/lopen-dev/lopen/lifecycle/fleet"
)

// Variables that hold secrets. Nothing that lopen starts is told of its own. PGPASSWORD and PGSSLPASSWORD are
// the fleet's in a project that has joined one, unless something else has the fleet's.
const (
	keyVariable      = "LOPEN_KEY"
	fleetVariable    = "LOPEN_FLEET_PASSWORD"
	passwordVariable = "PGPASSWORD"
	sslVariable      = "PGSSLPASSWORD"
)

// takeSecrets takes lopen's own secrets out of the environment. The driver of the database is given its passwords,
// and finds none by itself.
func (a *app) takeSecrets(environ []string) {
	a.environ, a.secrets = environ, map[string]string{}
	a.hide(keyVariable)
	a.hide(fleetVariable)
	for _, name := range []string{keyVariable, fleetVariable, passwordVariable, sslVariable} {
		_ = os.Unsetenv(name) // of a valid name
	}
}

// hide keeps a variable from all that lopen starts from now on, and remembers its value.
func (a *app) hide(name string) {
	is := func(kv string) bool { return strings.HasPrefix(kv, name+"=") }
	if slices.ContainsFunc(a.environ, is) {
		a.secrets[name] = a.getenv(name)
		a.environ = slices.DeleteFunc(slices.Clone(a.environ), is)
	}
}

// hideFleet keeps the password of the fleet that a project has joined from all that is started in it.
func (a *app) hideFleet(project string) {
	j, err := a.joined(project)
	homeless := a.getenv("HOME") == "" && a.getenv("XDG_STATE_HOME") == "" // who has joined none
	if j == nil && (err == nil || homeless) {
		return
	}
	a.hide(sslVariable)
	if j == nil || a.usesPassword(j.URL) {
		a.hide(passwordVariable)
	}
}

// usesPassword reports whether PGPASSWORD has the password of a fleet.
func (a *app) usesPassword(url string) bool {
	return a.secrets[fleetVariable] == "" && !fleet.HasPassword(url)
}

// fleetOptions adds to the options of a fleet what all commands have.
func (a *app) fleetOptions(o fleet.Options) fleet.Options {
	o.Logger, o.KeyPassword = a.logger, a.secret(sslVariable)
	o.Password = cmp.Or(a.secrets[fleetVariable], a.secret(passwordVariable))
	return o
}

// secret returns the value of a variable, hidden or not.
func (a *app) secret(name string) string {
	if value, ok := a.secrets[name]; ok {
		return value
	}
	return a.getenv(name)
}
