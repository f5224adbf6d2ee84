package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/plugin"
)

func newPluginClaudeRemove(a *app) *cobra.Command {
	return a.removePlugin("Take the plugin away, and nothing else", a.claudeSet, func(*plugin.Set) error { return nil })
}

// removePlugin is the command that removes a set. It asks nothing, so that --yes, which install has,
// changes nothing. left says what still calls lopen.
func (a *app) removePlugin(short string, find func() (*plugin.Set, error), left func(*plugin.Set) error) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "remove",
		Short: short,
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			set, err := find()
			if err != nil {
				return err
			}
			return errors.Join(a.remove(set), left(set))
		},
	}
	cmd.Flags().BoolP("yes", "y", false, "as with install; it asks nothing")
	return cmd
}
