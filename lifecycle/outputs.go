package lifecycle

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/lopen-dev/lopen/lifecycle/output"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer"
)

// Output begins to keep what an attempt prints, redacted, in the session's folder. It is
// not part of the State: nothing waits for it, and no failure of it pauses the session. The
// caller closes it.
func (s *Session) Output(iteration int, a output.Attempt) (*output.Writer, error) {
	name := s.path(output.Dir)
	root := s.store.root()
	if err := root.Mkdir(name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("keep output: %w", writer.NewError("create", root.Name()+"/"+name, writer.NotCommitted, err))
	}
	dir, err := openDir(root, name)
	if err != nil {
		return nil, fmt.Errorf("keep output: %w", err)
	}
	return output.Begin(dir, s.redact, iteration, a)
}

// Outputs returns the attempts of a session of which there is output, the oldest first. It
// takes no lock. ErrNotFound says that there is no such session.
func (s *Store) Outputs(id session.ID) ([]output.Kept, error) {
	dir, err := s.outputDir(id)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list output of session %s: %w", id, err)
	}
	defer dir.Close()
	all, err := output.List(dir)
	if err != nil {
		return nil, fmt.Errorf("list output of session %s: %w", id, err)
	}
	return all, nil
}

// ReadOutput opens a file of an attempt that Outputs names. An error that wraps
// fs.ErrNotExist says that there is none.
func (s *Store) ReadOutput(id session.ID, name string, of output.File) (*output.Reader, error) {
	dir, err := s.outputDir(id)
	if err != nil {
		return nil, fmt.Errorf("read output of session %s: %w", id, err)
	}
	r, err := output.OpenReader(dir, name, of)
	if err != nil {
		return nil, fmt.Errorf("read output of session %s: %w", id, err)
	}
	return r, nil
}

// outputDir opens the folder with a session's output. fs.ErrNotExist says that it has none,
// ErrNotFound that there is no such session.
func (s *Store) outputDir(id session.ID) (writer.FS, error) {
	dir, err := s.sessionDir(id)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	return openDir(dir, output.Dir)
}
