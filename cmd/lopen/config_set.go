package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/agent"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/settings"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/trust"
	"github.com/lopen-dev/lopen/lifecycle"
)

func newConfigSet(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "set KEY VALUE",
		Short: "Set a setting of this project, or one of yours for all projects",
		Long: `Set a setting of this project, in .lopen/config.json, or one that is yours alone, in your own
config.json, for all projects: lopen config show says which is which.

That it was you who set it is noted in your own state. What else is written into a project's
config.json, by a clone, a checkout or an agent, counts where it is stricter than yours only.`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if settings.OfUser(args[0]) {
				return a.setOwn(args[0], args[1])
			}
			return a.initStore(func(project string, store *lifecycle.Store) error {
				old, err := store.Config()
				if err != nil {
					return err
				}
				config, value, err := settings.Set(old, args[0], args[1])
				if err != nil {
					return &usageError{err}
				}
				commands, err := a.commandsOf(config, args[0])
				if err != nil {
					return err
				}
				if err := store.SetConfig(config); err != nil {
					return err
				}
				approvals, err := a.approvals()
				if err != nil {
					return err
				}
				for _, c := range commands {
					a.approve(approvals, a.known(cmd.Context(), project), c)
				}
				if !settings.Guards(args[0]) {
					return nil
				}
				if err := approvals.SetHere(project, func(h *trust.Here) { h.Set(args[0], value) }); err != nil {
					return fmt.Errorf("note that you set %s: %w", args[0], err)
				}
				return nil
			})
		},
	}
}

// setOwn sets a setting in the user's own config.json.
func (a *app) setOwn(key, value string) error {
	path, err := a.userConfigPath()
	if err != nil {
		return err
	}
	old, err := a.userConfig()
	if err != nil {
		return err
	}
	config, _, err := settings.Set(old, key, value)
	if err != nil {
		return &usageError{err}
	}
	if target, err := filepath.EvalSymlinks(path); err == nil { // kept elsewhere, as with other dotfiles
		path = target
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	if err := trust.Replace(path, config); err != nil {
		return err
	}
	fmt.Fprintf(a.stderr, "set for all your projects, in %s\n", path)
	return nil
}

// commandsOf are the commands that a setting of the project's config has a run start:
// whoever sets it has approved them.
func (a *app) commandsOf(config []byte, key string) (all []trust.Command, err error) {
	v, err := settings.Load(settings.Sources{User: config})
	if err != nil {
		return nil, &usageError{err}
	}
	var names []string
	shell, argv := "", []string(nil)
	switch key {
	case "check":
		shell = v.Check
	case "command":
		argv = v.Command
	case "agent":
		names = []string{v.Agent}
	case "fallback":
		names = v.Fallback
	}
	if shell != "" || len(argv) > 0 {
		all = append(all, trust.Command{Argv: argv, Shell: shell})
	}
	recipes, err := a.recipes()
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if name == "" || name == agent.None {
			continue
		}
		argv, err := agent.Start(name, recipes)
		if err != nil {
			return nil, &usageError{err}
		}
		all = append(all, trust.Command{Argv: argv})
	}
	return all, nil
}
