package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer"
)

// A Finding is one thing that Doctor looked at.
type Finding struct {
	Name    string // what was looked at
	Found   string
	Problem bool
	Mend    string // a command, or what to do; "" when there is nothing to mend
}

// Preflight looks at what a run needs of the store before it begins: that it can
// be written, that it belongs to this user alone, and that there is room. It
// returns what is not so.
func (s *Store) Preflight() []Finding {
	all := []Finding{s.lookAtWriting(), s.lookAtModes(), s.lookAtSpace()}
	return slices.DeleteFunc(all, func(f Finding) bool { return f.Mend == "" })
}

// failed is a Finding that could not be looked at, or is an error by itself.
func failed(name string, err error) Finding {
	return Finding{name, err.Error(), true, writer.ClassOf(err).Hint()}
}

// lookAtWriting makes a file as every save of the readable files does.
func (s *Store) lookAtWriting() Finding {
	err := s.tryFile("preflight", func(f writer.File) error {
		_, err := f.WriteAt([]byte("x"), 0)
		return err
	})
	if err != nil {
		return failed("writing", err)
	}
	return Finding{Name: "writing", Found: "possible"}
}

// tryFile calls fn with a new file of the store, which is removed afterwards.
func (s *Store) tryFile(prefix string, fn func(f writer.File) error) error {
	name := writer.TempName(prefix)
	f, err := s.root().OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, filePerm)
	if err == nil {
		err = errors.Join(fn(f), f.Close(), s.root().Remove(name))
	}
	if err != nil {
		return writer.NewError("write", s.Path(), writer.NotCommitted, err)
	}
	return nil
}

// syncs is how many writes Doctor measures.
const syncs = 20

// Doctor looks at what a store stands on: the file system, how long an fsync
// takes on it, free space, permissions, locks, and every session. It writes one
// temporary file and removes it.
func (s *Store) Doctor(ctx context.Context) []Finding {
	all := []Finding{s.lookAtFS(), s.lookAtSync(), s.lookAtSpace(), s.lookAtModes(), s.lookAtLock(ctx), s.lookAtBallast()}
	all = append(all, s.lookAtBytes(), s.lookAtCheckpoints())
	all = append(all, s.lookAtSessions()...)
	return append(all, s.lookAtCorrupted()...)
}

// lookAtCorrupted names the damaged sessions from which none was recovered.
func (s *Store) lookAtCorrupted() (all []Finding) {
	lost, err := s.Aside()
	if err != nil {
		return []Finding{failed(corruptedDir, err)}
	}
	for _, i := range lost {
		if o, err := s.Abandoned(i.ID); err == nil && o != nil {
			all = append(all, stillWorks(i.ID, o))
		}
		all = append(all, Finding{i.ID.String(), i.Err.Error(), false, "lopen session recover " + i.ID.String()})
	}
	return all
}

// stillWorks names a command that outlived the loop of a session.
func stillWorks(id session.ID, o *Orphan) Finding {
	return Finding{id.String(), "what its command left behind still works: " + o.String(), true, HowToEnd(o, id)}
}

// lookAtBytes says where the bytes are, as du counts them.
func (s *Store) lookAtBytes() Finding {
	var parts []string
	for _, name := range []string{sessionsDir, checkpointsDir, blobsDir, trashDir, corruptedDir, "cache"} {
		if n := s.diskBytes(name, false); n > 0 {
			parts = append(parts, fmt.Sprintf("%s %.1f MiB", name, float64(n)/(1<<20)))
		}
	}
	return Finding{Name: "bytes", Found: strings.Join(parts, ", ")}
}

// lookAtCheckpoints says what the checkpoints take, to the byte.
func (s *Store) lookAtCheckpoints() Finding {
	f := Finding{Name: "checkpoints"}
	u, err := s.CheckpointUsage()
	if err != nil {
		return failed(f.Name, err)
	}
	f.Found = fmt.Sprintf("%d, in %d bytes of contents and %d bytes of their chain", u.Checkpoints, u.Blobs, u.Chain)
	if u.Unneeded > 0 {
		f.Found += fmt.Sprintf("; %d bytes of the contents are of none of them, in packs that are at least half needed or wait for the next prune", u.Unneeded)
	}
	return f
}

func (s *Store) lookAtFS() Finding {
	name, network, err := writer.FSType(s.Path())
	f := Finding{Name: "file system", Found: name}
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

// lookAtSync appends to a file as the journal does.
func (s *Store) lookAtSync() Finding {
	f := Finding{Name: "fsync"}
	var took []time.Duration
	err := s.tryFile("doctor", func(file writer.File) error {
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
		return failed(f.Name, err)
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

func (s *Store) lookAtSpace() Finding {
	f := Finding{Name: "free space"}
	free, err := writer.FreeBytes(s.Path())
	if err != nil {
		f.Found = "not known on this system"
		return f
	}
	f.Found = fmt.Sprintf("%d MiB", free>>20)
	if free < lowSpace {
		f.Problem, f.Mend = true, writer.ClassNoSpace.Hint()
	}
	return f
}

func (s *Store) lookAtModes() Finding {
	f := Finding{Name: "permissions", Found: "yours alone"}
	info, err := s.root().Stat(".")
	switch {
	case err != nil:
		return failed(f.Name, err)
	case !writer.Mine(info):
		f.Found, f.Mend = "it belongs to another user", "sudo chown -R $(id -un) "+s.Path()+", or run as its owner"
	case info.Mode().Perm()&0o077 != 0:
		f.Found, f.Mend = fmt.Sprintf("others may look into it (%v)", info.Mode().Perm()), "chmod 700 "+s.Path()
	}
	return f
}

func (s *Store) lookAtLock(ctx context.Context) Finding {
	f := Finding{Name: "store lock", Found: "free"}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	lock, err := s.lock(ctx)
	if err != nil {
		f.Found, f.Problem, f.Mend = err.Error(), true, "wait for the holder, or end it"
		return f
	}
	if err := lock.Unlock(); err != nil {
		return failed(f.Name, err)
	}
	return f
}

func (s *Store) lookAtBallast() Finding {
	f := Finding{Name: "reserve", Found: fmt.Sprintf("%d MiB, given up on a full disk for one more save", ballastBytes>>20)}
	if info, err := s.root().Lstat(ballastFile); err != nil || info.Size() != ballastBytes {
		f.Found, f.Mend = "none: a full disk stops saving at once", "it is made when a session is opened and there is room"
	}
	return f
}

// lookAtSessions names what is not as it should be; the rest is one line.
func (s *Store) lookAtSessions() (all []Finding) {
	folders, err := s.folders(sessionsDir)
	if err != nil {
		return []Finding{failed("sessions", err)}
	}
	slices.SortFunc(folders, func(a, b folder) int { return strings.Compare(a.name, b.name) })
	intact := 0
	for _, folder := range folders {
		id := folder.id
		r, err := s.Verify(id)
		if err != nil {
			continue // removed meanwhile
		}
		f := Finding{Name: id.String(), Found: string(r.Condition)}
		if r.Err != nil {
			f.Found += ": " + r.Err.Error()
		}
		if r.Orphan != nil {
			all = append(all, stillWorks(id, r.Orphan))
		}
		if r.Status == session.StatusInterrupted {
			f.Found = "interrupted, " + f.Found
		}
		switch {
		case r.Condition == Torn && r.Holder == nil:
			f.Mend = fmt.Sprintf("nothing is lost; the next run mends it: lopen session resume %s", id)
		case errors.Is(r.Err, ErrFutureVersion):
			f.Problem, f.Mend = true, "update lopen"
		case r.Condition == HistoryDamaged:
			f.Problem, f.Mend = true, fmt.Sprintf("the session is whole, its log has a hole: lopen session verify %s", id)
		case r.Condition == Flawed:
			f.Problem, f.Mend = true, fmt.Sprintf("the session is usable: lopen session verify %s says what is wrong", id)
		case r.Condition == Edited:
			f.Problem, f.Mend = true, fmt.Sprintf("look at it, then: lopen session recover %s --accept-edit, or --discard-edit", id)
		case r.Condition == Corrupt || r.Condition == Unreadable:
			f.Problem, f.Mend = true, fmt.Sprintf("lopen session recover %s --dry-run says what is left of it", id)
		case r.Status == session.StatusInterrupted:
			intact++
			f.Mend = "nobody runs it; go on with: lopen run " + id.Module
		default:
			intact++
			continue
		}
		all = append(all, f)
	}
	return append([]Finding{{"sessions", fmt.Sprintf("%d of %d are intact, format %d", intact, len(folders), session.SchemaVersion), false, ""}}, all...)
}
