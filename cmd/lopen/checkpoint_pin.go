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
	cmd.Long = cmd.Short + ".\n\n" + checkpointHelp
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		var id checkpoint.ID
		err := a.readCheckpoints(name, func(store *lifecycle.Store, _ session.ID, cps *chain) error {
			e, err := cps.find(args[0])
			if err == nil && cps.origin[e.ID] != nil && cps.origin[e.ID].Imported() {
				err = usagef("checkpoint %s was imported beside this project's own: it stays until its sessions are deleted", e.ID.Short())
			}
			if err != nil {
				return err
			}
			id = e.ID
			failed, err := store.FailedTrees(cps.all)
			if failed[e.Number] && cps.origin[e.ID] == nil && !pinned && !e.Pinned {
				return usagef("checkpoint %s has the tree of a failed task and stays until session %s is pruned or deleted", numbered(e), e.Session)
			}
			return err
		})
		if err != nil {
			return err
		}
		return a.editStore(func(store *lifecycle.Store) error {
			cps, err := store.Checkpoints(nil)
			if err != nil {
				return err
			}
			defer cps.Close()
			others, err := cps.Others()
			for _, c := range others {
				if _, ferr := c.Find(id); ferr == nil && !c.Imported() {
					return c.Pin(cmd.Context(), id, pinned)
				}
			}
			return errors.Join(err, cps.Pin(cmd.Context(), id, pinned))
		})
	}
	sessionFlag(cmd, &name)
	return cmd
}
