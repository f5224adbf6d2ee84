package folder

import (
	"errors"
	"fmt"
	"path/filepath"

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
