package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/fleet"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/wire"
	"github.com/lopen-dev/lopen/writer/plain"
)

func newSession(a *app) *cobra.Command {
	return group("session", "List, show, resume, check and tidy sessions",
		newSessionList(a), newSessionShow(a), newSessionResume(a), newSessionPause(a), newSessionFork(a), newSessionLog(a), newSessionOutput(a), newSessionWatch(a),
		newSessionVerify(a), newSessionRecover(a), newSessionRename(a), newSessionPin(a, true), newSessionPin(a, false), newSessionDelete(a), newSessionRestore(a),
		newSessionPrune(a), newSessionExport(a), newSessionImport(a), newSessionPull(a), newSessionPush(a))
}

// readSession opens the store and finds the session for a command that only reads.
func (a *app) readSession(args []string, fn func(*lifecycle.Store, session.ID) error) error {
	return a.readStore(func(store *lifecycle.Store) error {
		id, err := resolveArg(store, args)
		if err != nil {
			return err
		}
		return fn(store, id)
	})
}

// readSessionIn is readSession, or that of the fleet.
func (a *app) readSessionIn(ctx context.Context, inFleet bool, args []string, fn func(*lifecycle.Store, session.ID) error) error {
	if !inFleet {
		return a.readSession(args, fn)
	}
	return a.readFleet(ctx, args, func(_ *fleet.Fleet, _ *fleet.Found, store *lifecycle.Store, id session.ID) error {
		return fn(store, id)
	})
}

// readState is Store.Read, with a warning in place of an error where [readOnly] has one.
func (a *app) readState(store *lifecycle.Store, id session.ID) (*session.State, uint64, error) {
	st, seq, err := store.Read(id)
	if note := readOnly(st, err); note != "" {
		fmt.Fprintf(a.stderr, "warning: session %s: %s\n", id, note)
		err = nil
	}
	return st, seq, err
}

func resolveArg(store *lifecycle.Store, args []string) (session.ID, error) {
	if len(args) == 0 {
		return store.Resolve("")
	}
	return store.Resolve(args[0])
}

// everySession lists the sessions, and after them those in corrupted/ from which none was
// recovered.
func everySession(store *lifecycle.Store) ([]lifecycle.Info, error) {
	infos, err := store.List()
	if err != nil {
		return nil, err
	}
	lost, err := store.Quarantined()
	for i := range lost {
		lost[i].Summary = wire.Summary{ID: lost[i].ID}
	}
	return append(infos, lost...), err
}

// readOnly is what to do about a State that Read returned with an error, "" when the
// error is to be returned: what was edited outside and what a newer version wrote
// is shown all the same.
func readOnly(st *session.State, err error) string {
	switch {
	case st == nil:
	case errors.Is(err, lifecycle.ErrEdited):
		return fmt.Sprintf("it was edited outside and is read-only until: lopen session recover %s --accept-edit (or --discard-edit)", st.ID())
	case errors.Is(err, lifecycle.ErrFutureVersion):
		return "a newer lopen wrote it; this one shows what it knows of it"
	}
	return ""
}

// rulesText are findings for a person.
func rulesText(all []session.Finding) (s string) {
	for _, f := range all {
		s += fmt.Sprintf("  %s: %s (%s, %s): %s", f.Severity, f.Rule, f.Component, f.Kind, plain.Line(strings.Join(f.Where, "; ")))
		if more := f.Count - len(f.Where); more > 0 {
			s += fmt.Sprintf("; and %d more", more)
		}
		s += "\n    " + f.Repair + "\n"
	}
	return s
}

// sessionFlag is which session's checkpoints a command is about.
func sessionFlag(cmd *cobra.Command, name *string) {
	cmd.Flags().StringVar(name, "session", "", "of this session `ID` in place of the newest")
}
