package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

// choose opens the session that the run is to go on with, or a new one. A nil
// session without an error means that there is nothing to do. ready says whether a new
// session could be run; it is asked before the old one is paused and before any is made.
func (r *runCall) choose(ctx context.Context, store *lifecycle.Store, ready func() error) (sess *lifecycle.Session, fresh bool, err error) {
	if r.resume != "" {
		id, err := store.Resolve(r.resume)
		if err != nil {
			return nil, false, err
		}
		if id.Module != r.module {
			return nil, false, usagef("session %s belongs to module %s, not %s", id, id.Module, r.module)
		}
		sess, err := store.Open(id)
		return sess, false, err
	}
	old, found, err := store.Unfinished(r.module)
	if err != nil {
		return nil, false, err
	}
	if err := r.mention(store); err != nil {
		return nil, false, err
	}
	if found {
		yes, err := r.wantsResume(ctx, old)
		if err != nil {
			return nil, false, err
		}
		if yes {
			sess, err := store.Open(old.ID)
			return sess, false, err
		}
	} else if over, err := r.nothingLeft(store); over || err != nil {
		return nil, false, err
	}
	if err := ready(); err != nil {
		return nil, false, err
	}
	if found {
		sess, err := store.Open(old.ID)
		if err == nil {
			err = errors.Join(sess.Pause(ctx, session.TriggerSwitched, session.ExitPaused), sess.Close(ctx))
		}
		if err != nil {
			return nil, false, err
		}
	}
	sess, err = store.Create(ctx, r.module)
	return sess, true, err
}

// mentioned is how many other modules' sessions a run names, the newest ones.
const mentioned = 3

// mention tells of what the module's name does not cover: unfinished sessions
// of other modules, and sessions that cannot be read.
func (r *runCall) mention(store *lifecycle.Store) error {
	infos, err := store.List()
	if err != nil {
		return err
	}
	others := 0
	for _, info := range infos {
		switch {
		case info.Err != nil:
			fmt.Fprintf(r.stderr, "warning: session %s cannot be read and is left out: %v\n  what can be saved of it: lopen session recover %s --dry-run\n", info.ID, info.Err, info.ID)
		case info.Module != r.module && info.Status != session.StatusComplete:
			if others++; others <= mentioned {
				fmt.Fprintf(r.stderr, "unfinished as well: %s (%d/%d tasks)\n", info.ID, info.Progress.Done, info.Progress.Total)
			}
		}
	}
	if others > mentioned {
		fmt.Fprintf(r.stderr, "unfinished as well: %d more, see lopen session list\n", others-mentioned)
	}
	return nil
}

// wantsResume asks whether to go on with a session; auto_resume answers where
// nobody can be asked.
func (r *runCall) wantsResume(ctx context.Context, old lifecycle.Info) (bool, error) {
	if r.noResume {
		return false, nil
	}
	v, err := r.settings(nil, r.flags)
	if err != nil {
		return false, err
	}
	if !r.interactive() || v.Bool("unattended") {
		return v.Bool("auto_resume"), nil
	}
	question := fmt.Sprintf("Resume %s (%d/%d tasks, active %s)? [Y/n] ", old.ID, old.Progress.Done, old.Progress.Total, ago(time.Since(old.UpdatedAt)))
	answer, err := r.ask(ctx, question)
	if err != nil {
		return false, err
	}
	return answer == "" || answer[0] == 'y' || answer[0] == 'Y', nil
}
