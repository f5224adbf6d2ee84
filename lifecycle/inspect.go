package lifecycle

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/lopen-dev/lopen/lifecycle/history"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer"
)

// inspect notes what is damaged in a session's folder and what a crash left there.
// It changes nothing, and refuses a session that somebody holds or a newer version
// wrote.
func inspect(dir writer.FS, r *Recovery) error {
	if err := free(dir); err != nil {
		return err
	}
	report := verify(dir, r.From, nil)
	if errors.Is(report.Err, ErrFutureVersion) {
		return report.Err // it is not damaged: a newer version goes on with it
	}
	if report.Err != nil {
		r.Leftovers = append(r.Leftovers, "damage: "+report.Err.Error())
	}
	for _, f := range report.Faults {
		r.Leftovers = append(r.Leftovers, f.String())
	}
	for _, f := range report.Rules {
		if f.Rule.Severity == session.SeverityCritical { // the others are of what is recovered, too
			r.Rules = append(r.Rules, f)
		}
	}
	r.Leftovers = append(r.Leftovers, report.Leftovers...)
	if report.Orphan != nil {
		r.Advice = append(r.Advice, "end what is left of the old command before the new session runs: it may still change files")
	}
	return nil
}

// free returns a [*BusyError] when somebody holds the session of a folder. Something
// that is no file in the lock's place is damage, and no lock.
func free(dir writer.FS) error {
	owner, held, err := writer.Holder(dir, leaseFile)
	if held {
		return &BusyError{Path: filepath.Join(dir.Name(), leaseFile), Owner: owner}
	}
	if errors.Is(err, ErrInvalid) {
		return nil
	}
	return err
}

// leftovers are what a crash left in a session's folder: files of writes that did
// not end, and the lock of a process that is gone. Nobody holds the session.
func leftovers(dir writer.FS, st *session.State) (all []string) {
	for _, sub := range []string{".", history.Dir} {
		temps, err := writer.Temps(dir, sub)
		if err != nil {
			continue // there is none
		}
		for _, name := range temps {
			all = append(all, fmt.Sprintf("%s is of a write that did not end", name))
		}
	}
	if st != nil && st.Status() == session.StatusActive {
		all = append(all, fmt.Sprintf("%s is that of %s, which is gone and did not close the session", leaseFile, writer.LastOwner(dir, leaseFile)))
	}
	return all
}

// orphan names the command of a session's folder that outlived its loop.
func (r *Report) orphan(dir writer.FS) {
	var err error
	switch r.Orphan, err = abandoned(dir, ""); {
	case err != nil:
		r.Leftovers = append(r.Leftovers, "whether the old command lives cannot be told: "+err.Error())
	case r.Orphan != nil:
		r.Leftovers = append(r.Leftovers, fmt.Sprintf("it was left behind: %s; %s", r.Orphan, HowToEnd(r.Orphan, r.ID)))
	}
}
