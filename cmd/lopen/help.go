package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/plugin"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/prompt"
)

// plumbing are the commands that scripts use more than people.
var plumbing = []string{"assess", "bundle", "cache", "files", "hook", "mcp", "research", "section", "transaction", "trust", "version", "worktree"}

// shortHelp makes the root's help fit on a screen of 80 by 24.
func shortHelp(root *cobra.Command) {
	usual := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		if cmd != root {
			usual(cmd, args)
			return
		}
		w := root.OutOrStdout()
		fmt.Fprintf(w, "%s\n\n  lopen             what runs here, what is next, what failed\n", root.Short)
		for _, c := range root.Commands() {
			if c.IsAvailableCommand() && !slices.Contains(plumbing, c.Name()) && c.Name() != "help" {
				fmt.Fprintf(w, "  lopen %-11s %s\n", c.Name(), c.Short)
			}
		}
		fmt.Fprintf(w, "\n%s\nAbout each: lopen COMMAND --help; what a command is told: lopen help prompt\n\n", wrapped("Plumbing: "+strings.Join(plumbing, ", ")))
		fmt.Fprint(w, `  -C DIR               run as if started in DIR; --color auto, always or never
  --log-level LEVEL    debug to error (default warn); --log-file; --log-format
`)
	})
}

// wrapped breaks a list of words where a line would have more than 80 columns.
func wrapped(list string) string {
	if len(list) <= 80 {
		return list
	}
	i := strings.LastIndexByte(list[:80], ' ')
	return list[:i] + "\n  " + wrapped(list[i+1:])
}

// newPromptHelp is a topic of the help, not a command: lopen help prompt.
func newPromptHelp() *cobra.Command {
	return &cobra.Command{Use: "prompt", Short: "What a command is told: the prompt, the variables, the template", Long: prompt.Help}
}

// newSkillHelp is a topic of the help: what an agent is to know of lopen, as a file for its folder
// of skills.
func newSkillHelp() *cobra.Command {
	return &cobra.Command{Use: "skill", Short: "What teaches an agent to ask lopen: a SKILL.md", Long: strings.TrimSpace(plugin.Skill)}
}
