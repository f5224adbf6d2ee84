package main

import (
	"context"
	"errors"
	"io"
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

// untilEnd reads until a context ends.
type untilEnd struct {
	ctx context.Context //nolint:containedctx // it is that of the command
	r   io.Reader
}

func (u untilEnd) Read(p []byte) (int, error) {
	if u.ctx.Err() != nil {
		return 0, context.Cause(u.ctx)
	}
	return u.r.Read(p)
}

func newCheckpointCat(a *app) *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use:   "cat CP PATH",
		Short: "Print a file as it is in a checkpoint, or the target of a symlink",
		Long:  "Print a file as it is in a checkpoint, or the target of a symlink: byte for byte\ninto a file or a pipe; on a terminal what would steer it is escaped.\n\n" + checkpointHelp,
		Args:  cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.readCheckpoints(name, func(_ *lifecycle.Store, _ session.ID, cps *chain) error {
				e, err := cps.find(args[0])
				if err != nil {
					return err
				}
				path, err := a.pathOf(args[1:])
				if err != nil {
					return err
				}
				f, err := at(cps.Tree(e.Root), path)
				if err != nil {
					return err
				}
				if f.Mode.IsDir() {
					return usagef("%s is a folder: lopen checkpoint show %d PATH lists it", shown(path), e.Number)
				}
				if f.Mode&fs.ModeSymlink != 0 {
					_, err = io.WriteString(a.stdout.Content(), f.Target)
					return err
				}
				r, err := cps.Content(f)
				if err != nil {
					return err
				}
				_, err = io.Copy(a.stdout.Content(), untilEnd{cmd.Context(), r})
				return errors.Join(err, r.Close())
			})
		},
	}
	sessionFlag(cmd, &name)
	return cmd
}
