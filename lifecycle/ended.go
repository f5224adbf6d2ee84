package lifecycle

import (
	"os"

	"github.com/lopen-dev/lopen/writer"
)

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
