package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/loop"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

func newSessionFork(a *app) *cobra.Command {
	var at lifecycle.ForkOptions
	cmd := &cobra.Command{
		Use:   "fork [ID]",
		Short: "Start a new session from another one, as it is or as it was",
		Long: `Start a new session from another one, as it is or as it was. The other one stays as
it is, may be running, and may be deleted afterwards. The checkpoints up to then are on
the new one's line; what they know of tasks is lost with the other one, files are not.
A session that works in a work tree shares that, with its branch, with the new one.
Without ID the newest session is continued in a new one. The new session's ID is printed;
lopen session resume goes on with it.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.editNamed(args, func(store *lifecycle.Store, id session.ID) error {
				at.Continue = len(args) == 0
				sess, err := store.Fork(cmd.Context(), id, at)
				if err != nil {
					return err
				}
				if err := sess.Close(cmd.Context()); err != nil {
					return err
				}
				p, h, then := sess.State().Progress(), sess.State().Header(), "go on with: lopen session resume"
				if h.Origin != session.OriginRun {
					then = "look at it: lopen session show --messages"
				}
				fmt.Fprintf(a.stderr, "from %s, record %d: %d/%d tasks done; %s %s\n", id, h.Lineage.Seq, p.Done, p.Total, then, sess.ID())
				if w := h.Worktree; w != nil {
					fmt.Fprintf(a.stderr, "it works in the same work tree as %s: %s\n", id, shown(w.Folder(store.Project().Name())))
				}
				if differs := loop.Differs(sess.State()); differs != "" {
					fmt.Fprintln(a.stderr, differs)
				}
				_, err = fmt.Fprintln(a.stdout, sess.ID())
				return err
			})
		},
	}
	cmd.Flags().Uint64Var(&at.Seq, "at", 0, "as it was at record `SEQ` of its log")
	cmd.Flags().StringVar(&at.Message, "message", "", "with the messages up to the one with this `UUID`")
	cmd.MarkFlagsMutuallyExclusive("at", "message")
	return cmd
}
