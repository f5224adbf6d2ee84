package repair

import (
	"fmt"
	"path"
	"time"

	"github.com/lopen-dev/lopen/lifecycle/commit"
	"github.com/lopen-dev/lopen/lifecycle/folder"
	"github.com/lopen-dev/lopen/lifecycle/history"
	"github.com/lopen-dev/lopen/lifecycle/output"
	"github.com/lopen-dev/lopen/lifecycle/rewind"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/process"
)

// ChildFile is the lock that a session's command inherits, in the session's folder.
const ChildFile = ".child"

// leftovers returns texts about what a crash left in a session's folder: temporary files, and
// the lease of a dead process. The session must not be held.
func leftovers(dir writer.FS, ld *folder.Contents) (all []string) {
	for _, sub := range []string{".", history.Dir, output.Dir} {
		temps, err := writer.Temps(dir, sub)
		if err != nil {
			continue // there is no such folder
		}
		for _, name := range temps {
			all = append(all, fmt.Sprintf("%s is of a write that did not end", name))
		}
	}
	if ld != nil && ld.State.Status() == session.StatusActive {
		all = append(all, fmt.Sprintf("%s is that of %s, which is gone and did not close the session", folder.LeaseFile, writer.LastOwner(dir, folder.LeaseFile)))
	}
	return all
}

// Unfinished reports the folders of sessions whose creation was interrupted. The caller holds
// the store lock, so that no creation is in progress.
func Unfinished(root writer.FS, now time.Time) (all []Check) {
	names, err := commit.Unfinished(root)
	if err != nil {
		return []Check{Failed("sessions", err)}
	}
	for _, name := range names {
		info, err := root.Lstat(name)
		if err != nil {
			all = append(all, Failed("unfinished", err))
			continue
		}
		all = append(all, Check{
			Name: "unfinished", Found: fmt.Sprintf("%s is of a session whose making was cut off %s ago", path.Base(name), now.Sub(info.ModTime()).Round(time.Second)),
			Mend: "nothing is lost; it is removed when a session is made or deleted, and by: lopen session prune",
		})
	}
	return all
}

// orphan adds the command of a session's folder that outlived its loop.
func (r *Report) orphan(dir writer.FS) {
	var err error
	switch r.Orphan, err = Abandoned(dir, ""); {
	case err != nil:
		r.Leftovers = append(r.Leftovers, "whether the old command lives cannot be told: "+err.Error())
	case r.Orphan != nil:
		r.Leftovers = append(r.Leftovers, fmt.Sprintf("it was left behind: %s; %s", r.Orphan, HowToEnd(r.Orphan, r.ID)))
	}
}

// rewind adds a rewind that was begun and not finished.
func (r *Report) rewind(begun *session.Rewinding) {
	if begun == nil {
		return
	}
	r.Rewind = begun
	r.Leftovers = append(r.Leftovers, rewind.Unfinished(begun)+"; "+rewind.HowToFinish(r.ID, begun))
}

// Abandoned returns the command of a session that is not held, if the command or a process
// that it left behind still runs; else nil. prefix is put before the names of the session's
// files in dir.
func Abandoned(dir writer.FS, prefix string) (orphan *process.Orphan, err error) {
	for range 2 { // the second look lies between two looks at the lease, so that no run began in between
		if orphan, err = process.FindOrphan(dir, prefix+ChildFile); err != nil || orphan == nil {
			return nil, err
		}
		if _, held, err := writer.Holder(dir, prefix+folder.LeaseFile); held {
			return nil, err
		}
	}
	return orphan, nil
}

// HowToEnd returns a text on how to end a command that outlived the loop of a session.
func HowToEnd(o *process.Orphan, id session.ID) string {
	switch {
	case !o.Alive:
		return o.ByHand()
	case !o.CanEnd():
		return fmt.Sprintf("%s; or work at the same time: lopen run %s --beside", o.ByHand(), id.Module)
	}
	return fmt.Sprintf("lopen run %s ends it; or: %s", id.Module, o.ByHand())
}
