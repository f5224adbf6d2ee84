package lifecycle

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/lopen-dev/lopen/lifecycle/history"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer"
)

// inspect notes what is damaged in a session's folder and what a crash left there.
// It changes nothing, and refuses a session that somebody holds or a newer version
// wrote.
func (s *Store) inspect(dir writer.FS, r *Recovery) error {
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
	if orphan := s.orphanIn(dir, r.From.Module); orphan != "" {
		r.Leftovers = append(r.Leftovers, orphan)
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

// orphanIn names the command that a session's folder says still lives, "" for none.
// It holds the module meanwhile, so that no run takes the child's lock just now; of a
// module that runs it says so.
func (s *Store) orphanIn(dir writer.FS, module string) string {
	if _, err := dir.Lstat(childFile); errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	lock, err := s.LockModule(module)
	if errors.Is(err, ErrBusy) {
		return fmt.Sprintf("module %s is being run: whether the old command lives cannot be told from %s now", module, filepath.Join(dir.Name(), childFile))
	}
	var orphan *writer.Orphan
	if err == nil {
		orphan, err = writer.FindOrphan(dir, childFile)
		err = errors.Join(err, lock.Unlock())
	}
	switch {
	case err != nil:
		return "whether the old command lives cannot be told: " + err.Error()
	case orphan == nil || !orphan.Alive:
		return ""
	}
	return "the command of the session lives: " + orphan.String()
}
