package main

import (
	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/lifecycle"
)

func newSessionRename(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "rename ID NAME",
		Short: "Give a session a name for people; its ID stays",
		Args:  cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return usageIf(a.setMeta(cmd.Context(), args[:1], func(m *lifecycle.Meta) error {
				m.Name = args[1]
				return nil
			}), lifecycle.ErrInvalid)
		},
	}
}
