package main

import "github.com/spf13/cobra"

func newPluginCodexRemove(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "remove",
		Short: "Take hooks.json away, if it is as lopen wrote it",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			set, _, err := a.codexSet()
			if err != nil {
				return err
			}
			return a.remove(set)
		},
	}
}
