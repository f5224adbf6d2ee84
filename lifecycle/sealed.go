package lifecycle

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer"
)

// maxSealed bounds what is read of a small file, in bytes. The largest is ids.json, with
// thirty bytes for each module and day.
const maxSealed = 4 << 20

// writeSealed replaces a small file of the store, durably, by a value as one line of
// JSON that ends in a checksum, as state.json does.
func writeSealed(dir writer.FS, name string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode %s: %w", name, err)
	}
	return writer.ReplaceFile(dir, name, session.Seal(data[:len(data)-1]), filePerm)
}

// readSealed reads such a file into a value. fs.ErrNotExist says that there is none,
// ErrFutureVersion that a newer version wrote it, ErrCorrupt that it is not as it was
// written. Of these the value says nothing.
func readSealed(dir writer.FS, name string, v any) error {
	data, err := writer.ReadFile(dir, name, maxSealed)
	if err != nil {
		return err
	}
	e := &Error{Op: "read", Path: filepath.Join(dir.Name(), name), Class: writer.ClassCorrupt}
	// The version is read by itself: of what a newer one may look like nothing
	// else is known.
	var version struct {
		SchemaVersion int `json:"schemaVersion"`
	}
	err = json.Unmarshal(data, &version)
	switch {
	case err == nil && version.SchemaVersion > 1:
		e.Class, e.Err = writer.ClassFutureVersion, fmt.Errorf("schema version %d was written by a newer lopen: update this one", version.SchemaVersion)
		return e
	case err == nil && !session.Sealed(data):
		err = errors.New("its checksum does not fit")
	case err == nil:
		err = json.Unmarshal(data, v)
	}
	if err != nil {
		e.Err = err
		return e
	}
	return nil
}
