package main

import (
	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/plugin"
)

func newPluginCodexRemove(a *app) *cobra.Command {
	return a.removePlugin("Take hooks.json away, if it is as lopen wrote it", func() (*plugin.Set, error) {
		set, _, err := a.codexSet()
		return set, err
	})
}
