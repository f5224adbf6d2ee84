package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

func newSessionPin(a *app, pinned bool) *cobra.Command {
	cmd := &cobra.Command{Use: "pin [ID]", Short: "Keep a session from being pruned", Args: cobra.MaximumNArgs(1)}
	if !pinned {
		cmd.Use, cmd.Short = "unpin [ID]", "Let prune take a session again"
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return a.setMeta(cmd.Context(), args, func(m *lifecycle.Meta) error {
			m.Pinned = pinned
			return nil
		})
	}
	return cmd
}

func (a *app) setMeta(ctx context.Context, args []string, change func(*lifecycle.Meta) error) error {
	return a.editNamed(args, func(store *lifecycle.Store, id session.ID) error { return store.SetMeta(ctx, id, change) })
}
