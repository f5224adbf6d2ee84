package main

import "github.com/spf13/cobra"

func newPluginClaudeRemove(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "remove",
		Short: "Take the plugin away, and nothing else",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			set, err := a.claudeSet()
			if err != nil {
				return err
			}
			return a.remove(set)
		},
	}
}
