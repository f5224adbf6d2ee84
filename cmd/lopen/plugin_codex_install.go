package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/loop"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/plugin"
	"github.com/lopen-dev/lopen/writer/documents"
	"github.com/lopen-dev/lopen/writer/plain"
)

// maxHooks bounds a person's file of hooks, in bytes.
const maxHooks = 1 << 20

func newPluginCodexInstall(a *app) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "install",
		Short: "Put hooks.json where Codex looks for it",
		Long: `Put hooks.json where Codex looks for it: $CODEX_HOME, or ~/.codex. It shows the file first. A
hooks.json of your own is not changed: what to add to it is printed, and the exit code is 2.

Codex runs a hook only after you trusted it: it asks when it starts, once. What its hooks do not tell
is in docs/HOOKS.md.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			set, exe, err := a.codexSet()
			if err != nil {
				return err
			}
			var others *plugin.ForeignError
			if _, err := set.Due(); errors.As(err, &others) {
				return a.toAdd(set.Path(plugin.CodexHooks), exe)
			}
			written, err := a.install(cmd.Context(), set, yes)
			if err == nil && written {
				fmt.Fprint(a.stderr, `installed; when codex starts next, it says "Hooks need review": choose "Trust all and continue"
in each project that is to be kept: lopen init
`)
			}
			return err
		},
	}
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return cmd
}

func (a *app) codexSet() (set *plugin.Set, exe string, err error) {
	base, err := a.agentFolder("CODEX_HOME", ".codex")
	if err != nil {
		return nil, "", err
	}
	if exe, err = ownPath(); err != nil {
		return nil, "", err
	}
	return plugin.Codex(base, exe), exe, nil
}

// toAdd prints what a person's own hooks.json lacks.
func (a *app) toAdd(path, exe string) error {
	data, err := documents.ReadFile(path, maxHooks)
	if err != nil {
		return err
	}
	lacks := plugin.CodexLacks(data, exe)
	if lacks == nil {
		fmt.Fprintf(a.stderr, "nothing changes: %s has the hooks\n", plain.Line(path))
		return nil
	}
	for line := range strings.Lines(string(lacks)) {
		fmt.Fprintf(a.stdout, "%s\n", plain.Line(strings.TrimSuffix(line, "\n")))
	}
	return &loop.Exit{Code: loop.ExitUser, Reason: fmt.Sprintf("%s is your own, and was not changed: add the above to it, each list to the one of its event", plain.Line(path))}
}
