package lifecycle

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer"
)

// cursorsDir is the folder of a session's cursors, one sealed file each.
const cursorsDir = "cursors"

// cursorFile is how far a reader of a log has come.
type cursorFile struct {
	SchemaVersion int    `json:"schemaVersion"`
	Seq           uint64 `json:"seq"`
}

func cursorPath(name string) (string, error) {
	if err := session.ValidateModule(name); err != nil { // the names of both have one rule
		return "", &Error{Op: "cursor", Path: fmt.Sprintf("%q", name), Class: writer.ClassInvalid, Err: err}
	}
	return cursorsDir + "/" + name + ".json", nil
}

// Cursor returns the record up to which a reader has read a session's log: 0 for one that
// has no cursor yet. It takes no lock.
func (s *Store) Cursor(id session.ID, name string) (uint64, error) {
	return within(s, "cursor of", id, func(dir writer.FS) (uint64, error) { return cursorIn(dir, name) })
}

func cursorIn(dir writer.FS, name string) (uint64, error) {
	path, err := cursorPath(name)
	if err != nil {
		return 0, err
	}
	var c cursorFile
	if err = readSealed(dir, path, &c); errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return c.Seq, err
}

// MoveCursor says that a reader has read a session's log up to a record, durably. From then on
// records above it are not dropped, whatever JournalBytes allows, until it is moved again or
// its file is removed. It never goes back. The reader is the only one that moves its cursor; no lock is taken.
func (s *Store) MoveCursor(id session.ID, name string, seq uint64) error {
	dir, err := s.sessionDir(id)
	if err != nil {
		return fmt.Errorf("cursor of session %s: %w", id, err)
	}
	defer dir.Close()
	path, err := cursorPath(name)
	if err != nil {
		return err
	}
	if was, err := cursorIn(dir, name); err != nil || seq < was {
		return err
	}
	if err := writer.MkdirDurable(dir, cursorsDir); err != nil {
		return err
	}
	return writeSealed(dir, path, cursorFile{SchemaVersion: 1, Seq: seq})
}

// passed is the record that every registered reader has passed: 0 where one cannot be read.
func (s *Store) passed(dir writer.FS, id session.ID) (uint64, error) {
	slowest := ^uint64(0) - 1
	entries, err := dir.ReadDir(cursorsDir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".json")
		if !ok || session.ValidateModule(name) != nil {
			continue
		}
		seq, err := cursorIn(dir, name)
		if err != nil {
			s.Logger(id).Warn().Err(err).Str("cursor", name).Msg("no record of the log is dropped while this cursor cannot be read: remove its file")
			return 0, nil
		}
		slowest = min(slowest, seq)
	}
	return slowest, nil
}
