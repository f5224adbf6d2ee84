package main

import "github.com/spf13/cobra"

func newConfig(a *app) *cobra.Command {
	return group("config", "Show and set the settings", newConfigShow(a), newConfigSet(a))
}
