package carry

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/lopen-dev/lopen/writer"
)

// A Target is a file that is not there before it is whole.
type Target struct {
	dir   writer.FS
	name  string
	temp  string
	force bool
	f     writer.File // nil once committed or discarded
}

// Create begins a file. With force it may take the place of a regular file. The caller ends it
// with Commit or Discard.
func Create(path string, force bool) (*Target, error) {
	dir, err := writer.OpenFS(filepath.Dir(path))
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w; make the folder first", err)
	}
	if err != nil {
		return nil, err
	}
	t, err := createIn(dir, filepath.Base(path), force)
	if err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	return t, nil
}

func createIn(dir writer.FS, name string, force bool) (t *Target, err error) {
	t = &Target{dir: dir, name: name, temp: writer.TempName("export"), force: force}
	if err = t.free(); err == nil {
		t.f, err = dir.OpenFile(t.temp, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		err = t.failed(err, writer.NotCommitted)
	}
	return t, err
}

// Name returns the path of the file.
func (t *Target) Name() string { return filepath.Join(t.dir.Name(), t.name) }

func (t *Target) failed(err error, outcome writer.Outcome) error {
	if err == nil {
		return nil
	}
	return writer.NewError("write", t.Name(), outcome, err)
}

// free returns an error if what has the file's name must stay.
func (t *Target) free() error {
	info, err := t.dir.Lstat(t.name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return t.failed(err, writer.NotCommitted)
	case !info.Mode().IsRegular():
		err = errors.New("it is there already, and no regular file: give another name, or - for stdout")
	case t.force:
		return nil
	default:
		err = fmt.Errorf("%w: give another name, or --force to replace it", fs.ErrExist)
	}
	return &writer.Error{Op: "write", Path: t.Name(), Class: writer.ClassInvalid, Err: err}
}

// Write appends to the file.
func (t *Target) Write(p []byte) (int, error) {
	n, err := t.f.Write(p)
	return n, t.failed(err, writer.NotCommitted)
}

// Commit makes the file durable, and then visible. After an error nothing is left, unless the
// Outcome of the error says that it is not durable.
func (t *Target) Commit() error {
	f := t.f
	if err := f.Sync(); err != nil {
		t.Discard()
		return t.failed(err, writer.NotCommitted)
	}
	t.f = nil
	err := f.Close()
	if err == nil {
		err = t.publish()
	}
	if err != nil {
		_ = t.dir.Remove(t.temp)
		err = t.failed(err, writer.NotCommitted)
	} else {
		err = t.failed(t.dir.SyncDir("."), writer.NotDurable)
	}
	return errors.Join(err, t.dir.Close())
}

// publish gives the file its name.
func (t *Target) publish() error {
	if !t.force {
		err := t.dir.Link(t.temp, t.name) // fails if somebody else made the file meanwhile
		if err == nil {
			_ = t.dir.Remove(t.temp) // a second name of the file does no harm
			return nil
		}
		if !writer.RefusesLinks(err) {
			return err
		}
	}
	if err := t.free(); err != nil {
		return err
	}
	return t.dir.Rename(t.temp, t.name)
}

// Discard removes what was written. After Commit it does nothing.
func (t *Target) Discard() {
	if t.f == nil {
		return
	}
	_ = t.f.Close()
	t.f = nil
	_ = t.dir.Remove(t.temp)
	_ = t.dir.Close()
}
