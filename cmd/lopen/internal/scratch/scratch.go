package scratch

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/owner"
	"github.com/lopen-dev/lopen/writer/documents"
	"github.com/lopen-dev/lopen/writer/mount"
)

const (
	prefix   = "lopen-run-"
	attempts = 5
	// patience bounds what the removal of folders costs a run. The rest is removed
	// in the background, and what is left after that by the next run.
	patience = 2 * time.Second
)

// A Dir is the temporary folder of a run.
type Dir struct {
	in    place
	path  string
	root  *os.Root
	hold  *os.File // the folder, with the lock; nil where it cannot be locked
	files []string // that were named since the last Renew
}

// A place is where folders are made, and how their names begin.
type place struct{ folder, prefix string }

// New makes a folder, and removes those that runs of this user left which were killed.
func New() (*Dir, error) { return In(os.TempDir(), prefix) }

// In is New in another folder than that of the system for temporary files, with names that begin with prefix.
func In(folder, prefix string) (*Dir, error) {
	in := place{folder, prefix}
	within(in.sweep)
	return in.create()
}

// create makes a folder and takes its lock. One that somebody who sweeps took for left
// behind, before it was locked, is given up for another one.
func (in place) create() (*Dir, error) {
	for range attempts {
		path, err := os.MkdirTemp(in.folder, in.prefix)
		if err != nil {
			return nil, fmt.Errorf("make a temporary folder: %w", err)
		}
		if path, err = filepath.Abs(path); err != nil {
			return nil, fmt.Errorf("make a temporary folder: %w", err)
		}
		d, err := open(path)
		if err == nil {
			d.in = in
		}
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return nil, fmt.Errorf("make a temporary folder: %w", err)
		case d.there():
			return d, nil
		default:
			d.release()
		}
	}
	return nil, errors.New("make a temporary folder: somebody removes each as soon as it is made: " + in.folder)
}

// open opens a folder that was made just now. Its error is an fs.ErrNotExist when the
// folder is about to be swept.
func open(path string) (*Dir, error) {
	root, err := documents.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	d := &Dir{path: path, root: root}
	if d.hold, err = root.Open("."); err != nil {
		return nil, errors.Join(err, root.Close())
	}
	switch locked, err := Lock(d.hold); {
	case err != nil: // nobody else can lock it, and so nobody sweeps it
		_ = d.hold.Close()
		d.hold = nil
	case !locked:
		d.release()
		return nil, fs.ErrNotExist
	}
	return d, nil
}

// there says whether the path still leads to the folder.
func (d *Dir) there() bool {
	have, err := d.root.Stat(".")
	if err != nil {
		return false
	}
	info, err := os.Lstat(d.path)
	return err == nil && os.SameFile(have, info)
}

// Lock is the open folder whose lock a command is to inherit, so that the folder stays
// as long as the command; nil where there is no lock.
func (d *Dir) Lock() *os.File { return d.hold }

// Renew removes the files that were named since the last call, and mends the folder.
func (d *Dir) Renew() error {
	for _, name := range d.files {
		_ = d.root.Remove(name) // a folder in a file's place stays until Close
	}
	d.files = nil
	return d.Mend()
}

// Mend makes another folder where the command moved this one away, or removed it.
func (d *Dir) Mend() error {
	if d.there() {
		return d.root.Chmod(".", 0o700)
	}
	next, err := d.in.create()
	if err != nil {
		return err
	}
	d.Close()
	*d = *next
	return nil
}

// Path returns the path of the folder.
func (d *Dir) Path() string { return d.path }

// Name returns the path of a file that is not there yet and whose name nobody knows. It
// begins and ends with what is given.
func (d *Dir) Name(begin, end string) string {
	name := begin + "-" + rand.Text() + end
	d.files = append(d.files, name)
	return filepath.Join(d.path, name)
}

// Write writes a new file. It returns the file, to be read from its beginning, and its path.
func (d *Dir) Write(begin, end string, data []byte) (*os.File, string, error) {
	path := d.Name(begin, end)
	f, err := d.root.OpenFile(filepath.Base(path), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, "", err
	}
	_, err = f.Write(data)
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, "", errors.Join(err, f.Close())
	}
	return f, path, nil
}

// Read reads the regular file of a path that Name returned, of at most limit bytes.
// errors.Is(err, fs.ErrNotExist) says that there is none.
func (d *Dir) Read(path string, limit int64) ([]byte, error) {
	data, err := documents.Read(documents.Of(d.root), filepath.Base(path), limit)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return data, nil
}

// Close removes the folder and all that is in it.
func (d *Dir) Close() {
	old := *d // Renew puts another one in d, and may not wait for this
	within(func() {
		empty(old.root)
		_ = os.Remove(old.path) // if it is empty, or what the command put in its place
		old.release()
	})
}

// release lets go of the folder.
func (d *Dir) release() {
	if d.hold != nil {
		_ = d.hold.Close()
	}
	_ = d.root.Close()
}

// sweep removes the folders that were left in a folder for temporary files. Others have
// theirs there as well, so that nothing is reported of what cannot be removed.
func (in place) sweep() {
	root, err := documents.OpenRoot(in.folder)
	if err != nil {
		return
	}
	defer root.Close()
	each(root, func(name string) {
		if digits, ok := strings.CutPrefix(name, in.prefix); ok && strings.Trim(digits, "0123456789") == "" { // as os.MkdirTemp names it
			remove(root, name)
		}
	})
}

// remove removes a folder that a run of this user left. What is in it is removed through
// the folder that was opened, locked and looked at, whatever has its name by then.
func remove(temp *os.Root, name string) {
	info, err := temp.Lstat(name)
	if err != nil || !info.IsDir() || !owner.Mine(info) {
		return
	}
	left, err := temp.OpenRoot(name + "/.") // which no FIFO has, so that its open does not wait
	if err != nil {
		return
	}
	defer left.Close()
	hold, err := left.Open(".")
	if err != nil {
		return
	}
	defer hold.Close()
	opened, err := hold.Stat()
	if err != nil || !os.SameFile(info, opened) {
		return
	}
	if locked, err := Lock(hold); err != nil || !locked {
		return
	}
	empty(left)
	_ = temp.Remove(name)
}

// empty removes what is in a folder, as far as that goes.
func empty(root *os.Root) { each(root, func(name string) { _ = mount.RemoveIn(root, name) }) }

// each calls fn with each name in a folder, as far as it can be read.
func each(root *os.Root, fn func(name string)) {
	dir, err := root.Open(".")
	if err != nil {
		return
	}
	defer dir.Close()
	for {
		entries, err := dir.ReadDir(256)
		for _, e := range entries {
			fn(e.Name())
		}
		if err != nil {
			return
		}
	}
}

// within runs fn, and waits for it as long as there is patience: a command may have left
// very many files, or a mount that does not answer.
func within(fn func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		fn()
	}()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	}
}
