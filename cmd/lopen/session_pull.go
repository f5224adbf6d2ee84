package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/git"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/loop"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/fleet"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer/plain"
)

func newSessionPull(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "pull [ID]",
		Short: "Bring a session from the fleet, with its plan and the project's files",
		Long: `Bring a session from the fleet, with the plan of its module, its checkpoints, and the project's
files as its newest checkpoint has them. lopen run MODULE does this by itself, and goes on.

Files are brought only where the repository is at the commit at which the session left it,
and nothing is overwritten but what is committed or what a session left: commit or stash
what else was changed, and pull again. A copy here that is behind makes way; what was done
here after another machine took the session is kept as a session of its own, which is named.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.inFleet(func(_ string, f *fleet.Fleet) error {
				name := ""
				if len(args) > 0 {
					name = args[0]
				}
				x, err := f.Find(cmd.Context(), name)
				if err != nil {
					return err
				}
				return a.initStore(func(_ string, store *lifecycle.Store) error {
					id, err := a.pull(cmd.Context(), f, store, &x)
					if err != nil {
						return err
					}
					if _, err := a.bringFiles(cmd.Context(), store, id, false); err != nil {
						return err
					}
					if x.Status != session.StatusComplete {
						fmt.Fprintf(a.stderr, "go on with it: lopen run %s\n", id.Module)
					}
					return nil
				})
			})
		},
	}
}

// pull brings a session with the plan of its module, and says what it did.
func (a *app) pull(ctx context.Context, f *fleet.Fleet, store *lifecycle.Store, x *fleet.Found) (session.ID, error) {
	changed, err := a.takePlan(ctx, f, store, x.ID.Module)
	var conflict *fleet.ConflictError
	switch {
	case errors.As(err, &conflict):
		return x.ID, &loop.Exit{Code: loop.ExitUser, Reason: fmt.Sprintf("%v, and here as well\n  how they differ:       lopen plan push %s\n  take the fleet's plan: move %s away, and pull again",
			err, x.ID.Module, lifecycle.PlanPath(x.ID.Module))}
	case err != nil:
		return x.ID, err
	}
	if changed {
		fmt.Fprintf(a.stderr, "plan of %s: as the fleet has it\n", x.ID.Module)
	}
	p, err := f.Pull(ctx, store, x)
	if err != nil {
		return x.ID, err
	}
	switch p.Was {
	case fleet.Same:
		fmt.Fprintf(a.stderr, "session %s is here already, with all its records\n", x.ID)
	case fleet.Ahead:
		fmt.Fprintf(a.stderr, "session %s is here with more records than the fleet has: lopen session push %s\n", x.ID, x.ID)
	default:
		fmt.Fprintf(a.stderr, "session %s from %s: %s, %d/%d tasks done\n", p.ID, plain.Line(x.Host), plain.Some(int(x.Records), "record"), x.Progress.Done, x.Progress.Total)
	}
	if p.ID != x.ID {
		fmt.Fprintf(a.stderr, "its ID %s is taken here by another session, so it is %s here, and in the fleet once it goes on\n", x.ID, p.ID)
	}
	if p.Fork != (session.ID{}) {
		fmt.Fprintf(a.stderr, "what was done here after %s took it is session %s: look with lopen session show %s\n", plain.Line(x.Host), p.Fork, p.Fork)
	}
	return p.ID, nil
}

// bringFiles brings the project's files to what a session's newest checkpoint has. made says that the
// work tree was made for the session a moment ago: its commit need not be the same. It returns an
// Exit if something of a person's is in the way; then nothing was changed.
func (a *app) bringFiles(ctx context.Context, store *lifecycle.Store, id session.ID, made bool) (n int, err error) {
	folder := store.Project().Name()
	if st, _, err := store.Read(id); err == nil {
		folder = st.Header().Worktree.Folder(folder)
	}
	now, err := git.Look(ctx, folder, a.environ)
	if err != nil {
		return 0, err
	}
	clean := made || now.Head != "" && !now.Dirty
	files, err := fleet.LookAtFiles(ctx, store, id, clean, checkpoint.Git{Head: now.Head, Branch: now.Branch})
	if errors.Is(err, lifecycle.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		return 0, nil // no checkpoint was ever made
	}
	if files == nil || err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, files.Close()) }()
	a.sayUnstored(files)
	if len(files.Plan.Changes) == 0 && len(unsaved(files)) == 0 {
		return 0, nil
	}
	if files.Moved() && !made {
		return 0, &loop.Exit{Code: loop.ExitUser, Reason: fmt.Sprintf("the files are not brought: the session left the repository at %s, and here it is at %s\n  bring them:                      git checkout %s, and then lopen session pull %s\n  go on with the files as they are: lopen run %s",
			commitName(files.Target.Git), commitName(files.Git), plain.Quote(files.Target.Git.Head), id, id.Module)}
	}
	if left := unsaved(files); len(left) > 0 {
		return 0, &loop.Exit{Code: loop.ExitUser, Reason: fmt.Sprintf("the files are not brought: changed here and neither committed nor left by a session: %s\n  bring them:                      commit these, or git stash -u, and then lopen session pull %s\n  go on with the files as they are: lopen run %s", firstOf(left), id, id.Module)}
	}
	a.sayFiles(files)
	done, err := files.Bring(ctx)
	for _, k := range done.Retained {
		fmt.Fprintf(a.stderr, "kept %s (%s)\n", shown(k.Path), whyKept(k))
	}
	return done.Changes, err
}

// sayUnstored names what is not as the session left it because no checkpoint has it.
func (a *app) sayUnstored(f *fleet.Files) {
	for _, k := range f.Plan.Retained {
		if k.Why == checkpoint.Unstored {
			fmt.Fprintf(a.stderr, "left as it is: %s (%s)\n", shown(k.Path), whyKept(k))
		}
	}
}

// unsaved are the paths that bringing the files would take from a person.
func unsaved(f *fleet.Files) (paths []string) {
	for _, k := range f.Plan.Retained {
		if k.Why == checkpoint.Unsaved {
			paths = append(paths, k.Path)
		}
	}
	return paths
}

func commitName(g checkpoint.Git) string {
	if g.Head == "" {
		return "no commit"
	}
	return g.Head[:min(len(g.Head), 12)]
}

// sayFiles says what bringing the files changes.
func (a *app) sayFiles(f *fleet.Files) {
	counts := map[checkpoint.Kind]int{}
	for _, c := range f.Plan.Changes {
		counts[c.Kind]++
	}
	text := ""
	for _, k := range []struct {
		kind checkpoint.Kind
		word string
	}{{checkpoint.KindCreate, "created"}, {checkpoint.KindOverwrite, "overwritten"}, {checkpoint.KindDelete, "deleted"}, {checkpoint.KindMode, "with another mode"}, {checkpoint.KindRetarget, "pointed elsewhere"}} {
		if n := counts[k.kind]; n > 0 {
			text += fmt.Sprintf(", %d %s", n, k.word)
		}
	}
	if text != "" {
		fmt.Fprintf(a.stderr, "files as the session left them: %s\n", text[2:])
	}
}
