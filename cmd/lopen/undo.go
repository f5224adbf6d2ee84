package main

import "github.com/spf13/cobra"

func newUndo(a *app) *cobra.Command {
	var rf rewindFlags
	cmd := a.jsonFlags(&cobra.Command{
		Use:   "undo",
		Short: "Take the last rewind back",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return a.rewind(cmd.Context(), rf, "", nil) },
	})
	rf.add(cmd)
	rf.addScope(cmd)
	return cmd
}
