package lifecycle

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer"
)

// A Child is the lock that a session's command inherits, so that the next
// holder of the session can see that the command still lives.
type Child = writer.ChildLock

// An Orphan is a command that outlived the loop that started it.
type Orphan = writer.Orphan

// HoldChild takes the lock that the next command inherits. It is nil where nothing is
// saved: no later holder looks for the command.
func (s *Session) HoldChild() (*Child, error) {
	if !s.store.saves() {
		return nil, nil
	}
	return writer.HoldChild(s.store.root(), s.path(childFile))
}

// ChildHeld says whether something still holds the lock that the last command inherited: the
// command, or a process that it left behind. The caller is about to start none.
func (s *Session) ChildHeld() (bool, error) {
	o, err := writer.FindOrphan(s.store.root(), s.path(childFile))
	return o != nil || err != nil, err
}

// Orphan returns the command of a session that still holds its lock, or nil, also
// of one that was deleted since somebody listed it. The session may lie in corrupted/.
// The caller holds the session or its module, so that no run has it started; others ask
// [Store.Abandoned].
func (s *Store) Orphan(id session.ID) (*Orphan, error) {
	dir, err := openDir(s.root(), s.folderOf(id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look for a command that outlived session %s: %w", id, err)
	}
	defer dir.Close()
	return writer.FindOrphan(dir, childFile)
}

// Abandoned returns the command of a session that nobody holds, if it still works, or a
// process that it left behind, or nil. It makes no file and keeps no run from starting; anybody may call it.
func (s *Store) Abandoned(id session.ID) (*Orphan, error) {
	return abandoned(s.root(), s.folderOf(id)+"/")
}

// folderOf is where a session's files are: in sessions/, or in corrupted/ once it was
// moved there.
func (s *Store) folderOf(id session.ID) string {
	name := sessionsDir + "/" + id.String()
	if _, err := s.root().Lstat(name); errors.Is(err, fs.ErrNotExist) {
		if moved, ok := s.inCorrupted(id.String()); ok {
			return moved.Where
		}
	}
	return name
}

// abandoned is Abandoned for a session whose files have names that begin with folder.
func abandoned(dir writer.FS, folder string) (orphan *Orphan, err error) {
	for range 2 { // the second look is between two at the lease: no run began meanwhile
		if orphan, err = writer.FindOrphan(dir, folder+childFile); err != nil || orphan == nil {
			return nil, err
		}
		if _, held, err := writer.Holder(dir, folder+leaseFile); held {
			return nil, err
		}
	}
	return orphan, nil
}

// HowToEnd says how to end a command that outlived the loop of a session.
func HowToEnd(o *Orphan, id session.ID) string {
	if o.PGID == 0 || !o.Alive {
		return o.ByHand()
	}
	return fmt.Sprintf("lopen run %s ends it; or: kill -- -%d", id.Module, o.PGID)
}

// Ended is how a session's command ended, as its keeper wrote it down or the loop itself:
// see [Child.Ended].
type Ended = writer.Ended

// NoteEnded is for the keeper of a command, which has the file of its [Child].
func NoteEnded(f *os.File, e Ended) error { return writer.NoteEnded(f, e) }

// GroupLives says whether a process group has a member that is no zombie, as far as the
// system tells.
func GroupLives(pgid int) bool { return writer.GroupLives(pgid) }

// CommandEnded is how the command of the last attempt ended, nil where nobody knows. The
// caller holds the session, and nothing holds the command's lock any more. What is written
// down of an attempt whose outcome the State has is not returned.
func (s *Session) CommandEnded() (*Ended, error) {
	e, err := writer.ReadEnded(s.store.root(), s.path(childFile))
	if err != nil || e == nil || e.Iteration != s.State().NumIterations()+1 {
		return nil, err
	}
	return e, nil
}
