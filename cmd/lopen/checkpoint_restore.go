package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
)

func newCheckpointRestore(a *app) *cobra.Command {
	rf := rewindFlags{scope: "files"}
	cmd := a.jsonFlags(&cobra.Command{
		Use:   "restore CP [PATH...]",
		Short: "Bring single files or folders back to a checkpoint; lopen undo takes it back",
		Long:  "Bring single files or folders, with what is in them, back to a checkpoint; tasks stay as they are.\nOf failed:TASK it is without a PATH all that was set back when the task had failed." + rewindLong,
		Args:  cobra.MinimumNArgs(1),
		RunE:  func(cmd *cobra.Command, args []string) error { return a.rewindTo(cmd.Context(), rf, args[0], args[1:]) },
	})
	rf.add(cmd)
	return cmd
}

// restorable is pathOf for a path that is to be brought back: something is there, in the
// tree or in the work tree's folder, that a rewind may touch.
func (a *app) restorable(folder string, tree *checkpoint.Tree, arg string) (string, error) {
	if arg == "" {
		return "", usagef("an empty PATH names nothing: give . for everything beneath it")
	}
	path, err := a.pathOf([]string{arg})
	if err != nil {
		return "", err
	}
	if checkpoint.Reserved(path) {
		return "", usagef("%s: no checkpoint has what is in .git and .lopen", shown(path))
	}
	if _, err := os.Lstat(filepath.Join(folder, filepath.FromSlash(path))); err == nil {
		return path, nil
	}
	if f, known, err := tree.Find(path); err != nil || f != nil || !known {
		return path, err
	}
	return "", fmt.Errorf("%s: it is neither in the checkpoint nor in the project: %w", shown(path), lifecycle.ErrNotFound)
}
