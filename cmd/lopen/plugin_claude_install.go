package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/plugin"
)

func newPluginClaudeInstall(a *app) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "install",
		Short: "Put the plugin where Claude Code looks for it",
		Long: `Put the plugin where Claude Code looks for it: $CLAUDE_CONFIG_DIR/skills/lopen, or
~/.claude/skills/lopen. It shows the files first. No settings are changed. Installing again updates
the files, as is needed when lopen was moved.

From then on each session of Claude Code in a project in which you typed lopen init or run is kept: see
lopen hook --help.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			set, err := a.claudeSet()
			if err != nil {
				return err
			}
			written, err := a.install(cmd.Context(), set, yes)
			if err == nil && written {
				fmt.Fprint(a.stderr, `installed, for sessions that begin from now on; Claude Code looks there since version 2.1.157
in each project that is to be kept: lopen init
`)
			}
			return err
		},
	}
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return cmd
}

func (a *app) claudeSet() (*plugin.Set, error) {
	base, err := a.agentFolder("CLAUDE_CONFIG_DIR", ".claude")
	if err != nil {
		return nil, err
	}
	exe, err := ownPath()
	if err != nil {
		return nil, err
	}
	return plugin.Claude(base, exe, pluginVersion()), nil
}
