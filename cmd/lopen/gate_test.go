package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
)

// sameGate are the flags that make neither less nor more of any command.
var sameGate = []string{
	"json", "fields", "jq", "template", "session", "scope", "ttl", "encrypt", "force", "key-command", "key-file", "reread", "backup", "to",
	"pin", "name-only", "stat", "contested", "diff", "yes", "give-up", "project", "roles", "for", "gitignore", "after", "before", "under", "from", "remembered",
	"fleet", "since", "section", "module", "role", "tool", "file", "limit", "all", "no-index", "all-completed", "output", "no-messages",
	"redact", "at", "message", "long", "sort", "status", "tree", "cursor", "seq", "task", "follow", "prompt", "raw", "again", "discard-edit",
	"accept-edit", "strategy", "full", "format", "messages", "read-data", "remake", "jobs", "accept",
	// of a run: what an agent types tightens only, or has to be approved already
	"check", "unit", "agent", "fallback", "through", "resume", "no-resume", "timeout", "idle-timeout", "wait", "pause-timeout", "max-cost",
	"max-tokens", "until", "max-iterations", "failure-threshold", "require-green", "keep-failed", "require-change", "transaction",
	"worktree", "commit", "branch", "no-checkpoint", "transcript", "unattended", "no-save", "beside", "no-check",
}

// TestEachCommandHasAGate fails for a command, or a flag of one, of which nobody has decided what an agent may do with it.
func TestEachCommandHasAGate(t *testing.T) {
	t.Parallel()
	rows := 0
	eachCommand(newRoot(&app{}), func(cmd *cobra.Command) {
		path := cmd.CommandPath()
		if _, ok := gates[path]; ok {
			rows++
		} else {
			require.True(t, cmd.HasSubCommands(), "%s has no row", path)
		}
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if _, ok := gates[path+" --"+f.Name]; ok {
				rows++
			} else if !cmd.HasParent() {
				require.Contains(t, []string{"dir", "log-level", "log-format", "log-file", "color"}, f.Name)
			} else {
				require.True(t, slices.Contains(sameGate, f.Name), "%s --%s has no row", path, f.Name)
			}
		})
	})
	require.Len(t, gates, rows, "a row is of a command or a flag that is not there")
}

func eachCommand(cmd *cobra.Command, fn func(*cobra.Command)) {
	fn(cmd)
	for _, sub := range cmd.Commands() {
		eachCommand(sub, fn)
	}
}

// TestAnUnknownCommandIsTheUsers: what nobody has decided about is refused to agents.
func TestAnUnknownCommandIsTheUsers(t *testing.T) {
	t.Parallel()
	root := newRoot(&app{})
	other := &cobra.Command{Use: "other", Run: func(*cobra.Command, []string) {}}
	root.AddCommand(other)
	require.Equal(t, owns, gateOf(other))
	for path, want := range map[string]gateKind{"config": reads, "help": reads, "session list": reads, "config set": owns} {
		root.InitDefaultHelpCmd()
		cmd, _, err := root.Find(strings.Fields(path))
		require.NoError(t, err)
		require.Equal(t, want, gateOf(cmd), path)
	}
}
