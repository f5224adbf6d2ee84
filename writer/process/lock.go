package process

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/internal/proc"
)

// A Group is a process group as it was when its leader started.
type Group struct {
	PGID    int       `json:"pgid"` // 0 while the lock is held for a command that has not started
	Start   string    `json:"start,omitempty"`
	Boot    string    `json:"boot,omitempty"`
	Command string    `json:"command,omitempty"`
	Since   time.Time `json:"since"`
}

// A Lock is an flock on an open file that a command inherits: as long as
// the command or anything that it started keeps the descriptor, the lock is
// held, whatever becomes of the process that took it.
type Lock struct {
	path     string
	file     *os.File
	recorded bool // a command has started. Owned by the one caller of Record and Release.
	once     sync.Once

	mark  int64       // the position in the open file, by which it is known in other processes
	info  fs.FileInfo // of the file
	group atomic.Pointer[Group]
}

// Hold takes the child's lock. The caller has the lease of the same
// folder, so nobody else takes it; that it is held all the same means that an
// earlier command left a process behind, and the lock is shared with that one.
func Hold(dir writer.FS, name string) (*Lock, error) {
	full := filepath.Join(dir.Name(), name)
	f, info, err := writer.OpenRegular(dir, "hold child lock", name, os.O_CREATE|os.O_RDWR)
	if err != nil {
		return nil, err
	}
	file, ok := osFile(f)
	if !ok {
		_ = f.Close()
		return nil, &writer.Error{Op: "hold child lock", Path: full, Class: writer.ClassInvalid, Err: errors.New("this file system's files cannot be inherited")}
	}
	l := &Lock{path: full, file: file, info: info}
	err = holdShared(file, full)
	if err == nil {
		l.mark, err = file.Seek(newMark(), io.SeekStart)
	}
	if err != nil {
		_ = file.Close()
		return nil, writer.NewError("hold child lock", full, writer.NotCommitted, err)
	}
	if info.Size() < childBytes { // a full disk is met here, not at the start of a command
		if err := l.Forget(); err != nil {
			_ = file.Close()
			return nil, err
		}
	}
	// From here on a command may be running; until Record says which, the lock
	// is that of an unknown one.
	if err := l.write(Group{Boot: proc.BootID(), Since: time.Now().UTC()}); err != nil {
		_ = file.Close()
		return nil, err
	}
	return l, nil
}

// osFile is the system's file beneath one of an FS. A simulated disk has none.
func osFile(f writer.File) (*os.File, bool) {
	of, ok := f.(interface{ OS() *os.File })
	if !ok {
		return nil, false
	}
	return of.OS(), true
}

// probeDelay is the pause between two looks at a lock, and patience how long is waited for
// one that is held for a moment.
const (
	probeDelay = time.Millisecond
	patience   = 2 * time.Second
)

// holdShared takes the shared lock. Only [FindOrphan] takes another one, for a moment,
// which is waited for. But whatever inherits the lock can make it exclusive.
func holdShared(file *os.File, path string) error {
	tick := time.NewTicker(probeDelay)
	defer tick.Stop()
	for begun := time.Now(); ; <-tick.C {
		ok, err := flockShared(file)
		if ok || err != nil {
			return err
		}
		if time.Since(begun) > patience {
			pids := holdersOf(file)
			return fmt.Errorf("a process holds it exclusively%s, as lopen never does; %s", listed(pids), byHand(path, pids))
		}
	}
}

// File is the open file that the command is to inherit.
func (l *Lock) File() *os.File { return l.file }

// Record notes the group that the command leads, right after it started.
func (l *Lock) Record(pgid int, command string) error {
	l.recorded = true
	g := Group{PGID: pgid, Start: proc.Start(pgid), Boot: proc.BootID(), Command: command, Since: time.Now().UTC()}
	l.group.Store(&g)
	return l.write(g)
}

// write puts a record in place. It needs to outlive this process, not a power
// cut, which ends the command as well: nothing is synced.
func (l *Lock) write(g Group) error {
	err := writeRecord(l.file, g, 0, childRecord)
	if errors.Is(err, errTooLong) {
		g.Command = ""
		err = writeRecord(l.file, g, 0, childRecord)
	}
	if err != nil {
		return writer.NewError("record child", l.path, writer.NotCommitted, err)
	}
	return nil
}

// Release closes this process's descriptor. The lock stays with a command that
// still has its own. When none started, what else may hold the lock is no
// unknown command but a process left behind, and the record says so. It is
// idempotent.
func (l *Lock) Release() error {
	var err error
	l.once.Do(func() {
		if !l.recorded {
			err = l.write(Group{})
		}
		if cerr := l.file.Close(); err == nil && cerr != nil {
			err = writer.NewError("release child lock", l.path, writer.NotCommitted, cerr)
		}
	})
	return err
}

// newMark is a position beyond the records of a child's lock file, in bytes. The position
// belongs to the open file, as the lock does, and the system shows it: so the holders of
// one lock are distinguished from those of another one on the same file. Nothing reads or writes
// at it.
func newMark() int64 {
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails
	return childBytes + int64(binary.LittleEndian.Uint32(b[:])%(1<<20))
}

// Strays are the processes outside the command's group that hold the lock's file, as far
// as the system tells (Linux does). ours inherited this very lock, and began after the
// command did: the command started them, or they are its keeper. others hold an earlier one,
// or is unknown.
func (l *Lock) Strays() (ours, others []int) {
	g := l.group.Load()
	if g == nil {
		return nil, nil
	}
	return strays(l.info, l.mark, *g)
}

// A Held lock is one that a process has.
type Held struct {
	PID  int
	Path string // of the lock file, as the system says it; with " (deleted)" behind it if it has no name any more
}

// GroupLives says whether a process group has a member that is no zombie, as far as the
// system tells.
func GroupLives(pgid int) bool { return groupExists(pgid) }
