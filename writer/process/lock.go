package process

import (
	"cmp"
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
	Space   string    `json:"space,omitempty"` // the PID namespace of the numbers, "" if the system has none
	Mark    string    `json:"mark,omitempty"`  // random, of the lock: see [Lock.Environ]
	Over    bool      `json:"over,omitempty"`  // the process that started the command saw its end
}

// A Lock is an flock on an open file that a command inherits: as long as
// the command or anything that it started keeps the descriptor, the lock is
// held, whatever becomes of the process that took it.
type Lock struct {
	path string
	file *os.File
	once sync.Once

	mark  string      // of the command's environment, and by its position of the open file
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
	l := &Lock{path: full, file: file, info: info, mark: newMark()}
	err = holdShared(file, full)
	if err == nil {
		_, err = file.Seek(position(l.mark), io.SeekStart)
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
	if err := l.write(Group{Boot: proc.BootID(), Since: time.Now().UTC(), Space: proc.Space(), Mark: l.mark}); err != nil {
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
			by := holdersOf(file)
			return fmt.Errorf("a process holds it exclusively%s, as lopen never does; %s", listed(by), byHand(path, pids(by)))
		}
	}
}

// File is the open file that the command is to inherit.
func (l *Lock) File() *os.File { return l.file }

// Record notes the group that the command leads, right after it started.
func (l *Lock) Record(pgid int, command string) error {
	start := cmp.Or(proc.Start(pgid), proc.Start(os.Getpid())) // a leader that has ended already has none
	g := Group{PGID: pgid, Start: start, Boot: proc.BootID(), Command: command, Since: time.Now().UTC(), Space: proc.Space(), Mark: l.mark}
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

// Release closes this process's descriptor, after the end of the command: what still runs then
// is a process that the command left behind and that nobody ended, and the record says so. When
// none started, what else may hold the lock is no unknown command. It is idempotent.
func (l *Lock) Release() error {
	var err error
	l.once.Do(func() {
		g := Group{}
		if started := l.group.Load(); started != nil {
			g = *started
		}
		g.Over = true
		err = l.write(g)
		if cerr := l.file.Close(); err == nil && cerr != nil {
			err = writer.NewError("release child lock", l.path, writer.NotCommitted, cerr)
		}
	})
	return err
}

// A Held lock is one that a process has.
type Held struct {
	PID  int
	Path string // of the lock file, as the system says it; with " (deleted)" behind it if it has no name any more
}

// GroupLives says whether a process group has a member that is no zombie, as far as the
// system tells.
func GroupLives(pgid int) bool { return groupExists(pgid) }
