package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

func newCheckpointPin(a *app, pinned bool) *cobra.Command {
	var name string
	cmd := &cobra.Command{Use: "pin CP", Short: "Keep a checkpoint when those beyond the limit are removed", Args: cobra.ExactArgs(1)}
	if !pinned {
		cmd.Use, cmd.Short = "unpin CP", "Let a checkpoint be removed again"
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		var id checkpoint.ID
		err := a.readCheckpoints(name, func(store *lifecycle.Store, _ session.ID, cps *chain) error {
			e, err := cps.find(args[0])
			if err == nil && cps.origin[e.ID] != "" {
				err = usagef("checkpoint %s was imported beside this project's own: it stays until its sessions are deleted", e.ID.Short())
			}
			if err != nil {
				return err
			}
			id = e.ID
			failed, err := store.FailedTrees(cps.all)
			if failed[e.Number] && !pinned && !e.Pinned {
				return usagef("checkpoint %s has the tree of a failed task and stays until session %s is pruned or deleted", numbered(e), e.Session)
			}
			return err
		})
		if err != nil {
			return err
		}
		return a.editStore(func(store *lifecycle.Store) error {
			cps, err := store.Checkpoints()
			if err != nil {
				return err
			}
			return errors.Join(cps.Pin(cmd.Context(), id, pinned), cps.Close())
		})
	}
	sessionFlag(cmd, &name)
	return cmd
}
