package main

import (
	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/agent"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/settings"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/trust"
	"github.com/lopen-dev/lopen/lifecycle"
)

func newConfigSet(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "set KEY VALUE",
		Short: "Set a setting of this project, in .lopen/config.json",
		Args:  cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.initStore(func(project string, store *lifecycle.Store) error {
				old, err := store.Config()
				if err != nil {
					return err
				}
				config, err := settings.Set(old, args[0], args[1])
				if err != nil {
					return &usageError{err}
				}
				commands, err := a.commandsOf(config, args[0])
				if err != nil {
					return err
				}
				if err := store.SetConfig(config); err != nil || len(commands) == 0 {
					return err
				}
				approvals, err := a.approvals()
				if err != nil {
					return err
				}
				for _, c := range commands {
					a.approve(approvals, a.known(cmd.Context(), project), c)
				}
				return nil
			})
		},
	}
}

// commandsOf are the commands that a setting of the project's config has a run start:
// whoever sets it has approved them.
func (a *app) commandsOf(config []byte, key string) (all []trust.Command, err error) {
	v, err := settings.Load(config, nil, nil, nil)
	if err != nil {
		return nil, &usageError{err}
	}
	var names []string
	shell, argv := "", []string(nil)
	switch key {
	case "check":
		shell = v.Check
	case "on_event":
		shell = v.OnEvent
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
