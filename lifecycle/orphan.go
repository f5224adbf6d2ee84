package lifecycle

import (
	"errors"
	"fmt"

	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer"
)

// A Child is the lock that a session's command inherits, so that the next
// holder of the session can see that the command still lives.
type Child = writer.ChildLock

// An Orphan is a command that outlived the loop that started it.
type Orphan = writer.Orphan

// HoldChild takes the lock that the next command inherits.
func (s *Session) HoldChild() (*Child, error) {
	return writer.HoldChild(s.store.root(), s.path(childFile))
}

// Orphan returns the command of a session that still holds its lock, or nil, also
// of one that was deleted since somebody listed it. The caller holds the session or its
// module, so that no run has it started; others ask [Store.Abandoned].
func (s *Store) Orphan(id session.ID) (*Orphan, error) {
	dir, err := s.sessionDir(id)
	if errors.Is(err, ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look for a command that outlived session %s: %w", id, err)
	}
	defer dir.Close()
	return writer.FindOrphan(dir, childFile)
}

// Abandoned returns the command of a session that nobody holds, if it still works, or
// nil. It makes no file and keeps no run from starting; anybody may call it.
func (s *Store) Abandoned(id session.ID) (*Orphan, error) {
	dir, err := s.sessionDir(id)
	if errors.Is(err, ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look for a command that outlived session %s: %w", id, err)
	}
	defer dir.Close()
	if free(dir) != nil {
		return nil, nil
	}
	return abandoned(dir)
}

// abandoned is Abandoned for a session's folder that nobody held before.
func abandoned(dir writer.FS) (*Orphan, error) {
	orphan, err := writer.FindOrphan(dir, childFile)
	if err != nil || orphan == nil || !orphan.Alive || free(dir) != nil { // a run began meanwhile
		return nil, err
	}
	return orphan, nil
}

// HowToEnd says how to end a command that outlived the loop of a session.
func HowToEnd(o *Orphan, id session.ID) string {
	if o.PGID == 0 {
		return "find it with fuser or lsof and end it: its process group is not known"
	}
	return fmt.Sprintf("lopen run %s ends it; or: kill -- -%d", id.Module, o.PGID)
}
