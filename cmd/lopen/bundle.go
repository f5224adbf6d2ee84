package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/lifecycle/bundle"
	"github.com/lopen-dev/lopen/lifecycle/carry"
	"github.com/lopen-dev/lopen/writer/crypt"
	"github.com/lopen-dev/lopen/writer/plain"
)

func newBundle(a *app) *cobra.Command {
	return group("bundle", "Check files that sessions are carried in", newBundleVerify(a))
}

// openBundle calls fn with a bundle whose header was read; - is stdin.
func (a *app) openBundle(ctx context.Context, name string, keys *keyFlags, fn func(*bundle.Reader) error) error {
	in := a.stdin
	switch {
	case name != "-":
		path, err := a.path(name)
		if err == nil {
			in, err = await(ctx, func() (*os.File, error) { return os.Open(path) })
		}
		if err != nil {
			return fmt.Errorf("open bundle: %w", notFound(err))
		}
		defer in.Close()
	case isTerminal(in):
		return usagef("stdin is a terminal: give a file, or a pipe")
	}
	if info, err := in.Stat(); err == nil && info.IsDir() {
		return usagef("%s is a folder: give the file that session export wrote", shown(name))
	}
	encrypted := false
	r, err := bundle.NewReader(&pipe{ctx: ctx, name: in.Name(), r: in}, func() (*crypt.Key, error) {
		encrypted = true
		return keys.decryption(ctx)
	})
	if err != nil {
		return err
	}
	if !encrypted {
		if err := keys.unneeded(name); err != nil {
			return err
		}
	}
	return fn(r)
}

// showArrived prints what came with a bundle, for a person.
func (a *app) showArrived(r *carry.Report) {
	for _, s := range r.Sessions {
		text := fmt.Sprintf("%s: %d/%d tasks done, record %d, %s", s.Was, s.Done, s.Total, s.Seq, plain.Some(int(s.Messages), "message"))
		switch {
		case s.Known && s.Here > s.Seq:
			text = fmt.Sprintf("%s is already here as %s and went on to record %d; as it was in the bundle: lopen session fork %s --at %d", s.Was, s.ID, s.Here, plain.Quote(s.ID), s.Seq)
		case s.Known:
			text = fmt.Sprintf("%s is already here as %s, at record %d", s.Was, s.ID, s.Here)
		case s.ID != s.Was:
			text += ", now " + s.ID + ", since its ID is taken here"
		}
		if s.Condition != "intact" {
			text += "; " + s.Condition
		}
		if s.Paths {
			text += "; its command and check name this project's folder now"
		}
		if s.Rewind != "" && !s.Known {
			text += "; a rewind of it had begun and is left out: checkpoint " + s.Rewind[:min(len(s.Rewind), 8)] + " has the files before it"
		}
		if s.Worktree != "" && !s.Known {
			text += "; it worked in the work tree " + shown(s.Worktree) + ", and works in the project's folder here"
		}
		fmt.Fprintln(a.stderr, text)
	}
	fmt.Fprintf(a.stderr, "%s, %s of them (%d known), %s in all, from %s\n", plain.Some(r.Checkpoints, "checkpoint"), plain.Some(r.Objects, "content"), r.ObjectsKnown, bytesText(r.Bytes), shown(r.From.Path))
	if r.Redacted {
		fmt.Fprintln(a.stderr, "it was redacted: it has no checkpoints")
	}
	if r.NoMessages {
		fmt.Fprintln(a.stderr, "it has no messages and no output")
	}
}
