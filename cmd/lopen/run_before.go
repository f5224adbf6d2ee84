package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"path"
	"slices"
	"strconv"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/loop"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/settings"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/trust"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer/plain"
)

// maxBefore bounds how many sessions of a module are read for what it was run with, the newest ones.
const maxBefore = 32

// A before is what a module was run with.
type before struct {
	session  session.ID
	settings session.Settings // without those that commit, which are typed for each session
	commits  bool
}

// runsBefore are those of the module's sessions whose settings can be read, the newest first, each read when it is asked for.
// Of a damaged one that is the part that could be recovered. store may be nil.
func (r *runCall) runsBefore(store *lifecycle.Store) (iter.Seq[before], error) {
	var infos []lifecycle.Info
	if store != nil {
		var err error
		if infos, err = store.List(); err != nil {
			return nil, err
		}
		moved, err := store.Quarantined()
		if err != nil {
			return nil, err
		}
		for _, m := range moved {
			at := slices.IndexFunc(infos, m.Later)
			if at < 0 {
				at = len(infos)
			}
			infos = slices.Insert(infos, at, m)
		}
	}
	return func(yield func(before) bool) {
		read := 0
		for _, info := range infos {
			if info.ID.Module != r.module || info.Err == nil && info.Origin != session.OriginRun {
				continue
			}
			if read++; read > maxBefore {
				return
			}
			st := readable(store, info)
			if st == nil || st.Header().Origin != session.OriginRun {
				continue // a damaged session is reported where it matters
			}
			was := st.Header().Settings
			commits := was.Commit
			was.Commit, was.Branch = false, false
			if len(was.Command) > 0 && !yield(before{info.ID, was, commits}) {
				return
			}
		}
	}, nil
}

// readable is the State of a session, of one in quarantine the part that could be recovered; nil if there is none.
func readable(store *lifecycle.Store, info lifecycle.Info) *session.State {
	var bad *lifecycle.DamagedError
	switch {
	case info.Err == nil:
		st, _, _ := store.Read(info.ID)
		return st
	case !errors.As(info.Err, &bad) || !bad.Moved():
		return nil
	}
	rec, err := store.Recover(context.Background(), path.Base(bad.Where), "", true)
	if err != nil {
		return nil
	}
	return rec.State()
}

// remembered puts the settings of the session that is resumed between the flags and the variables, or
// for a new one those of the module's newest session: a run uses them unless a flag overrides
// them. [session.Settings] lists them. It returns what stands for the session's with the Values.
func (r *runCall) remembered(store *lifecycle.Store, old session.Settings) (*settings.Values, session.Settings, error) {
	runs, err := r.runsBefore(store)
	if err != nil {
		return nil, old, err
	}
	r.asBefore = nil
	if len(old.Command) == 0 {
		if r.asBefore = newest(runs); r.asBefore != nil {
			old = r.asBefore.settings
		}
	}
	was, judged := asTexts(old), r.judgedBefore(store)
	if judged != "" && was["check"] == "" && r.byAgent() {
		was["check"] = judged // the agent may have moved the sessions away
	}
	values, err := r.settingsOf(store, was, r.flags)
	if err == nil && values.Check == old.Check {
		err = r.compareCheck(store, was, old.Check)
	}
	if err != nil || values.Check != "" || r.noCheck {
		return values, old, err
	}
	check := checkOf(runs, judged)
	if check == "" {
		return values, old, r.checkKnown(runs)
	}
	// what once judged the module's tasks is not dropped silently
	if r.checkTyped {
		return nil, old, &loop.Exit{Code: loop.ExitUser, Reason: fmt.Sprintf("%s was run with the check %s: without one, each task at which the command exits with 0 counts as done\n  if that is what you want: lopen run %s --no-check",
			r.module, plain.Shell(check), r.module)}
	}
	was["check"] = check
	values, err = r.settingsOf(store, was, r.flags)
	return values, old, err
}

// checkKnown returns an error if the run begins afresh in the place of a damaged session that may have had a check.
func (r *runCall) checkKnown(runs iter.Seq[before]) error {
	if r.damaged == nil {
		return nil
	}
	for run := range runs {
		if run.session == r.damaged.ID {
			return nil
		}
	}
	return &loop.Exit{Code: loop.ExitUser, Reason: fmt.Sprintf("what judged the tasks of %[1]s cannot be read: nothing was run\n  name it: lopen run %[1]s --check COMMAND\n  or begin without a check: lopen run %[1]s --no-check\n", r.module) + r.leftOut()}
}

func newest(runs iter.Seq[before]) *before {
	for run := range runs {
		return &run
	}
	return nil
}

// checkOf is the newest check of a module's sessions, or the noted one, whose sessions may be gone.
func checkOf(runs iter.Seq[before], noted string) string {
	for run := range runs {
		if run.settings.Check != "" {
			return run.settings.Check
		}
	}
	return noted
}

// asTexts are the settings of a session as texts. One that never began has none.
func asTexts(old session.Settings) map[string]string {
	texts := map[string]string{}
	if len(old.Command) == 0 {
		return texts
	}
	texts["unit"], texts["timeout"] = old.Unit, old.Timeout.String()
	texts["failure_threshold"], texts["require_change"] = strconv.Itoa(old.FailureThreshold), strconv.FormatBool(old.RequireChange)
	if old.IdleTimeout > 0 { // else nobody named one, and a run that nobody watches has its own
		texts["idle_timeout"] = old.IdleTimeout.String()
	}
	if old.Check != "" { // else a variable or the configuration may name one
		texts["check"] = old.Check
	}
	return texts
}

// compareCheck notes what the settings name as the check where another one counts.
func (r *runCall) compareCheck(store *lifecycle.Store, was map[string]string, check string) error {
	r.otherCheck = ""
	if check == "" || r.checkTyped {
		return nil
	}
	without := maps.Clone(was)
	delete(without, "check")
	v, err := r.settingsOf(store, without, r.flags)
	if err == nil && v.Check != check {
		r.otherCheck = v.Check
	}
	return err
}

// judgedBefore is the check that judged the module's tasks last here, as the user's own state has it.
func (r *runCall) judgedBefore(store *lifecycle.Store) string {
	approvals, err := r.approvals()
	if store == nil || err != nil {
		return ""
	}
	here, err := approvals.Here(store.Project().Name())
	if err != nil {
		return "" // the settings say what is wrong with it
	}
	return here.CheckOf(r.module)
}

// noteCheck notes what judges the module's tasks from now on, in the user's own state.
func (r *runCall) noteCheck(store *lifecycle.Store, check string) {
	approvals, err := r.approvals()
	if err != nil || check == "" || r.byAgent() || r.judgedBefore(store) == check {
		return
	}
	if err := approvals.SetHere(store.Project().Name(), func(h *trust.Here) { h.Judged(r.module, check) }); err != nil {
		fmt.Fprintf(r.stderr, "warning: the check of %s is not noted: %v\n", r.module, err)
	}
}

// settingsOf are the settings of a project, with or without a store, with what a session was run with.
func (r *runCall) settingsOf(store *lifecycle.Store, was, flags map[string]string) (*settings.Values, error) {
	if store == nil {
		return r.settings(flags)
	}
	return r.sessionSettings(store, was, flags)
}

// sayAsBefore says what a new session takes over from the module's newest one.
func (r *runCall) sayAsBefore(ui *pane, check string) {
	if r.asBefore == nil {
		return
	}
	text := fmt.Sprintf("as session %s was run", r.asBefore.session)
	if len(r.command) == 0 {
		text += ": " + trust.Command{Argv: r.asBefore.settings.Command}.String()
	}
	if was := r.asBefore.settings.Check; was != "" && check != "" && !r.checkTyped {
		text += "; check: " + plain.Shell(was)
	}
	if r.asBefore.commits && !r.commitTyped && !r.worktree {
		text += "; without commits: --commit is typed for each session"
	}
	ui.Say("%s", text)
}
