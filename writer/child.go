package writer

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lopen-dev/lopen/writer/strictjson"
)

// A Group is a process group as it was when its leader started.
type Group struct {
	PGID    int       `json:"pgid"` // 0 while the lock is held for a command that has not started
	Start   string    `json:"start,omitempty"`
	Boot    string    `json:"boot,omitempty"`
	Command string    `json:"command,omitempty"`
	Since   time.Time `json:"since"`
}

// A ChildLock is an flock on an open file that a command inherits: as long as
// the command or anything that it started keeps the descriptor, the lock is
// held, whatever becomes of the process that took it.
type ChildLock struct {
	path     string
	file     *os.File
	recorded bool // a command has started. Owned by the one caller of Record and Release.
	once     sync.Once

	mark  int64       // the position in the open file, by which it is known in other processes
	info  fs.FileInfo // of the file
	group atomic.Pointer[Group]
}

// HoldChild takes the child's lock. The caller has the lease of the same
// folder, so nobody else takes it; that it is held all the same means that an
// earlier command left a process behind, and the lock is shared with that one.
func HoldChild(dir FS, name string) (*ChildLock, error) {
	full := filepath.Join(dir.Name(), name)
	f, info, err := OpenRegular(dir, "hold child lock", name, os.O_CREATE|os.O_RDWR)
	if err != nil {
		return nil, err
	}
	of, ok := f.(osFile)
	if !ok {
		_ = f.Close()
		return nil, &Error{Op: "hold child lock", Path: full, Class: ClassInvalid, Err: errors.New("this file system's files cannot be inherited")}
	}
	file := of.File
	l := &ChildLock{path: full, file: file, info: info}
	err = holdShared(file, full)
	if err == nil {
		l.mark, err = file.Seek(newMark(), io.SeekStart)
	}
	if err != nil {
		_ = file.Close()
		return nil, NewError("hold child lock", full, NotCommitted, err)
	}
	if info.Size() < childBytes { // a full disk is met here, not at the start of a command
		if err := l.Forget(); err != nil {
			_ = file.Close()
			return nil, err
		}
	}
	// From here on a command may be running; until Record says which, the lock
	// is that of an unknown one.
	if err := l.write(Group{Boot: bootID(), Since: time.Now().UTC()}); err != nil {
		_ = file.Close()
		return nil, err
	}
	return l, nil
}

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
func (l *ChildLock) File() *os.File { return l.file }

// Record notes the group that the command leads, right after it started.
func (l *ChildLock) Record(pgid int, command string) error {
	l.recorded = true
	g := Group{PGID: pgid, Start: processStart(pgid), Boot: bootID(), Command: command, Since: time.Now().UTC()}
	l.group.Store(&g)
	return l.write(g)
}

// write puts a record in place. It needs to outlive this process, not a power
// cut, which ends the command as well: nothing is synced.
func (l *ChildLock) write(g Group) error {
	data, err := strictjson.Marshal(g)
	if err != nil {
		return fmt.Errorf("record child: %w", err)
	}
	// One write of a fixed length: a record is never seen half.
	record := make([]byte, childRecord)
	copy(record, data[:min(len(data), childRecord-1)])
	if len(data) >= childRecord {
		g.Command = ""
		return l.write(g)
	}
	for i := len(data); i < childRecord; i++ {
		record[i] = ' '
	}
	record[childRecord-1] = '\n'
	if _, err := l.file.WriteAt(record, 0); err != nil {
		return NewError("record child", l.path, NotCommitted, err)
	}
	return nil
}

// Release closes this process's descriptor. The lock stays with a command that
// still has its own. When none started, what else may hold the lock is no
// unknown command but a process left behind, and the record says so. It is
// idempotent.
func (l *ChildLock) Release() error {
	var err error
	l.once.Do(func() {
		if !l.recorded {
			err = l.write(Group{})
		}
		if cerr := l.file.Close(); err == nil && cerr != nil {
			err = NewError("release child lock", l.path, NotCommitted, cerr)
		}
	})
	return err
}
