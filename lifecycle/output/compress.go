package output

import (
	"bytes"
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/codec"
)

// Compress has Close compress the attempt's files above the threshold, by a call of run. Close
// does not wait for it.
func (w *Writer) Compress(by codec.Options, run func(func() error)) { w.by, w.run = by, run }

// compress compresses the files of an attempt that ended. A kill in between leaves a file as it
// was, or in both forms, of which the first one is read.
func compress(dir writer.FS, name string, by codec.Options) error {
	entries, err := dir.ReadDir(".")
	for _, e := range entries {
		m := fileName().FindStringSubmatch(e.Name())
		if m == nil || m[1] != name || m[4] == metaEnd || m[6] != "" {
			continue
		}
		if info, ierr := e.Info(); ierr == nil && info.Mode().IsRegular() && by.Above(info.Size()) {
			err = errors.Join(err, compressFile(dir, e.Name(), by.Encoder()))
		}
	}
	return err
}

func compressFile(dir writer.FS, name string, by codec.Encoder) error {
	data, err := writer.ReadFile(dir, name, headBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var out bytes.Buffer
	f := by.Create(&out)
	_, _ = f.Write(data) // a bytes.Buffer does not fail
	if _, packed, err := f.End(); err != nil || packed >= int64(len(data)) {
		return err
	}
	// It is durable before the original goes, which may be by now.
	to := name + by.Codec.Suffix()
	if err := writer.ReplaceFile(dir, to, out.Bytes(), filePerm); err != nil {
		return err
	}
	err = dir.Remove(name)
	if errors.Is(err, fs.ErrNotExist) { // its turn came to be removed, so it is not to come back
		return remove(dir, to)
	}
	if err != nil {
		return writer.NewError("remove", filepath.Join(dir.Name(), name), writer.NotCommitted, err)
	}
	return nil
}
