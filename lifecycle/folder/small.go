package folder

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/envelope"
)

// small is the format of the store's small files. The largest is ids.json, with about thirty
// bytes for each module and day.
var small = envelope.Format{Key: "schemaVersion", Version: 1, Max: 4 << 20, File: true}

// WriteSmall replaces a small file of the store, durably.
func WriteSmall(dir writer.FS, name string, v any) error {
	data, err := small.Encode(v)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return writer.ReplaceFile(dir, name, data, 0o600)
}

// ReadSmall reads a small file into v. The error wraps fs.ErrNotExist if there is no such
// file, ErrFutureVersion if a newer version wrote it, and ErrCorrupt if it is damaged. After
// an error v is undefined.
func ReadSmall(dir writer.FS, name string, v any) error {
	data, err := writer.ReadFile(dir, name, int64(small.Max))
	if err != nil {
		return err
	}
	if err := small.Decode(data, v); err != nil {
		class := writer.ClassCorrupt
		if errors.Is(err, envelope.ErrFutureVersion) {
			class = writer.ClassFutureVersion
		}
		return &writer.Error{Op: "read", Path: filepath.Join(dir.Name(), name), Class: class, Err: err}
	}
	return nil
}

// cursorsDir is the folder of a session's cursors, one sealed file each.
const cursorsDir = "cursors"

// cursorFile is the content of a cursor: the last record that its reader has read.
type cursorFile struct {
	Seq uint64 `json:"seq"`
}

func cursorPath(name string) (string, error) {
	if err := session.ValidateModule(name); err != nil { // a cursor's name has the same rule
		return "", &writer.Error{Op: "cursor", Path: fmt.Sprintf("%q", name), Class: writer.ClassInvalid, Err: err}
	}
	return cursorsDir + "/" + name + ".json", nil
}

// Cursor returns the record up to which a named reader has read a session's log, or 0 if the
// reader has no cursor yet.
func Cursor(dir writer.FS, name string) (uint64, error) {
	path, err := cursorPath(name)
	if err != nil {
		return 0, err
	}
	var c cursorFile
	if err = ReadSmall(dir, path, &c); errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return c.Seq, err
}

// MoveCursor records durably that a named reader has read a session's log up to a record. A
// cursor never goes back. Only its reader may move it.
func MoveCursor(dir writer.FS, name string, seq uint64) error {
	path, err := cursorPath(name)
	if err != nil {
		return err
	}
	if was, err := Cursor(dir, name); err != nil || seq < was {
		return err
	}
	if err := writer.MkdirDurable(dir, cursorsDir); err != nil {
		return err
	}
	return WriteSmall(dir, path, cursorFile{Seq: seq})
}

// Passed returns the record that every reader with a cursor has passed. If a cursor cannot be
// read, Passed returns 0, the name of the cursor, and the error.
func Passed(dir writer.FS) (seq uint64, unread string, err error) {
	slowest := ^uint64(0) - 1
	entries, err := dir.ReadDir(cursorsDir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, "", err
	}
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".json")
		if !ok || session.ValidateModule(name) != nil {
			continue
		}
		seq, err := Cursor(dir, name)
		if err != nil {
			return 0, name, err
		}
		slowest = min(slowest, seq)
	}
	return slowest, "", nil
}
