package repair

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/lopen-dev/lopen/lifecycle/rewind"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/wire"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/envelope"
	"github.com/lopen-dev/lopen/writer/plain"
	"github.com/lopen-dev/lopen/writer/process"
)

// A Check is the result of one check that doctor makes.
type Check struct {
	Name    string `json:"name"` // what was checked
	Found   string `json:"found"`
	Problem bool   `json:"problem"`
	Mend    string `json:"mend,omitempty"` // a command, or what to do; "" when there is nothing to mend
}

// Failed returns a Check that is a problem: err prevented the check, or is what it found.
func Failed(name string, err error) Check {
	return Check{name, err.Error(), true, writer.ClassOf(err).Hint()}
}

// Writing checks that a file can be created and written, as every publication does.
func Writing(root writer.FS) Check {
	err := tryFile(root, "preflight", func(f writer.File) error {
		_, err := f.WriteAt([]byte("x"), 0)
		return err
	})
	if err != nil {
		return Failed("writing", err)
	}
	return Check{Name: "writing", Found: "possible"}
}

// tryFile calls fn with a new file of the store, and removes the file afterwards.
func tryFile(root writer.FS, prefix string, fn func(f writer.File) error) error {
	name := writer.TempName(prefix)
	f, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err == nil {
		err = errors.Join(fn(f), f.Close(), root.Remove(name))
	}
	if err != nil {
		return writer.NewError("write", root.Name(), writer.NotCommitted, err)
	}
	return nil
}

// Modes checks that the folder of a store belongs to this user and that no other user may
// read it.
func Modes(root writer.FS) Check {
	f := Check{Name: "permissions", Found: "yours alone"}
	info, err := root.Stat(".")
	switch {
	case err != nil:
		return Failed(f.Name, err)
	case !writer.Mine(info):
		f.Found, f.Mend = "it belongs to another user", "sudo chown -R $(id -un) "+plain.Quote(root.Name())+", or run as its owner"
	case info.Mode().Perm()&0o077 != 0:
		f.Found, f.Mend = fmt.Sprintf("others may look into it (%v)", info.Mode().Perm()), "chmod 700 "+plain.Quote(root.Name())
	}
	return f
}

// Space checks that at least low bytes are free.
func Space(root writer.FS, low uint64) Check {
	f := Check{Name: "free space"}
	free, err := writer.FreeBytes(root.Name())
	if err != nil {
		f.Found = "not known on this system"
		return f
	}
	f.Found = fmt.Sprintf("%d MiB", free>>20)
	if free < low {
		f.Problem, f.Mend = true, writer.ClassNoSpace.Hint()
	}
	return f
}

// FileSystem checks the file system of the store.
func FileSystem(root writer.FS) Check {
	name, network, err := writer.FSType(root.Name())
	f := Check{Name: "file system", Found: name}
	switch {
	case err != nil:
		f.Found = "not known on this system"
	case network:
		f.Mend = "locks and fsync are as good as the server's: keep projects that matter on a local disk"
	case name == "tmpfs":
		f.Mend = "it is memory: nothing survives a power cut"
	}
	return f
}

// syncs is the number of writes that Sync measures.
const syncs = 20

// Sync measures appends with fdatasync, as the journal makes them.
func Sync(root writer.FS) Check {
	f := Check{Name: "fsync"}
	var took []time.Duration
	err := tryFile(root, "doctor", func(file writer.File) error {
		for i := range syncs {
			begun := time.Now()
			if _, err := file.WriteAt(make([]byte, 512), int64(i)*512); err != nil {
				return err
			}
			if err := file.Datasync(); err != nil {
				return err
			}
			took = append(took, time.Since(begun))
		}
		return nil
	})
	if err != nil {
		return Failed(f.Name, err)
	}
	slices.Sort(took)
	median, worst := took[len(took)/2], took[len(took)-1]
	f.Found = fmt.Sprintf("one append and fdatasync of 512 bytes takes %s (median of %d; worst %s)", round(median), len(took), round(worst))
	if median > 50*time.Millisecond {
		f.Mend = "a slow disk: saves wait for nothing, but Sync and the end of a task do"
	}
	return f
}

func round(d time.Duration) time.Duration { return d.Round(max(time.Microsecond, d/100)) }

// Orphaned reports a command that outlived the loop of a session.
func Orphaned(id session.ID, o *process.Orphan) Check {
	return Check{id.String(), "what its command left behind still works: " + o.String(), true, HowToEnd(o, id)}
}

// Interrupted reports a rewind that was begun and not finished.
func Interrupted(id session.ID, r *session.Rewinding) Check {
	return Check{id.String(), rewind.Unfinished(r), true, rewind.HowToFinish(id, r)}
}

// Sessions reports each session with a problem, and the others in one line.
func Sessions(all []Report) []Check {
	var checks []Check
	intact := 0
	for i := range all {
		r := &all[i]
		if r.Orphan != nil {
			checks = append(checks, Orphaned(r.ID, r.Orphan))
		}
		if r.Rewind != nil {
			checks = append(checks, Interrupted(r.ID, r.Rewind))
		}
		c, sound := r.check()
		if sound {
			intact++
		}
		if c.Mend != "" {
			checks = append(checks, c)
		}
	}
	return append([]Check{{"sessions", fmt.Sprintf("%d of %d are intact, format %d", intact, len(all), wire.SchemaVersion), false, ""}}, checks...)
}

// resumes says what opens a session for writing next, and what a person can type about it.
var resumes = map[session.Origin]struct{ what, command string }{
	session.OriginRun:    {"run", "lopen session resume "},
	session.OriginHook:   {"prompt", "lopen session show "},
	session.OriginImport: {"import", "lopen session show "},
}

// check sums up a report, and reports whether the files are sound. A Check without a Mend need
// not be shown.
func (r *Report) check() (c Check, sound bool) {
	id := r.ID
	c = Check{Name: id.String(), Found: string(r.Condition)}
	if r.Err != nil {
		c.Found += ": " + r.Err.Error()
	}
	next := resumes[r.Origin]
	if r.Status == session.StatusInterrupted {
		c.Found = "interrupted, " + c.Found
	}
	switch {
	case r.Condition == Torn && r.Holder == nil:
		c.Mend = "nothing is lost; the next " + next.what + " mends it: " + next.command + id.String()
	case errors.Is(r.Err, envelope.ErrFutureVersion):
		c.Problem, c.Mend = true, "update lopen"
	case r.Condition == HistoryDamaged:
		c.Problem, c.Mend = true, fmt.Sprintf("the session is whole, its log has a hole: lopen session verify %s", id)
	case r.Condition == Flawed:
		c.Found += r.lostMoves()
		c.Problem, c.Mend = true, fmt.Sprintf("the session is usable: lopen session verify %s says what is wrong", id)
	case r.Condition == Edited:
		c.Problem, c.Mend = true, fmt.Sprintf("look at it, then: lopen session recover %s --accept-edit, or --discard-edit", id)
	case r.Condition == Corrupt || r.Condition == Unreadable:
		c.Problem, c.Mend = true, fmt.Sprintf("lopen session recover %s --dry-run says what is left of it", id)
	case r.Status == session.StatusInterrupted:
		c.Mend, sound = "nobody runs it; go on with: lopen run "+id.Module, true
		if r.Origin != session.OriginRun {
			c.Mend = "the agent ended in a turn; its next " + next.what + " resumes it: " + next.command + id.String()
		}
	default:
		sound = true
	}
	return c, sound
}
