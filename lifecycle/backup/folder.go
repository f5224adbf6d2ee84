package backup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/blob"
	"github.com/lopen-dev/lopen/writer/codec"
	"github.com/lopen-dev/lopen/writer/crypt"
)

const (
	markFile     = "lopen-backup.json"
	keyFile      = "key.age"
	lockFile     = ".lock"
	objectsDir   = "objects"
	snapshotsDir = "snapshots"

	filePerm   = 0o600
	tempPrefix = ".tmp-"
	lostFound  = "lost+found" // mkfs makes it
)

// Options of a folder. The zero value works for one that is not encrypted.
type Options struct {
	// Key returns the key of an encrypted folder. It is asked only if the folder is
	// encrypted, or is to be.
	Key     func() (*crypt.Key, error)
	Encrypt bool             // encrypt a new folder
	Project string           // path of the project: a folder inside is refused; "" refuses none
	Now     func() time.Time // the clock; nil means time.Now
}

// mark is the content of lopen-backup.json, which makes a folder a backup.
type mark struct {
	Encrypted bool      `json:"encrypted"`
	Since     time.Time `json:"since"`
}

// A Folder is an open backup. Close it after use.
type Folder struct {
	dir   writer.FS // the folder as it is on the disk
	files writer.FS // the same folder, or what decrypts it
	opts  Options
	mark  mark
	keyID string

	mu    sync.Mutex
	store *blob.Store // Guarded by mu: nil until there are objects.
	subs  []writer.FS // Guarded by mu: to be closed.
}

// ErrNone is wrapped when a folder is no backup.
var ErrNone = errors.New("it is no backup")

// Create opens the backup in the folder of this path, and makes folder and backup if the path
// is free or the folder is empty. A folder with anything else is refused with class invalid.
func Create(path string, o Options) (*Folder, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("open backup: %w", err)
	}
	if err := outside(path, o.Project); err != nil {
		return nil, err
	}
	if o.Encrypt { // before there is a folder
		if _, err := o.key(path); err != nil {
			return nil, err
		}
	}
	dir, err := writer.OpenFS(path)
	if errors.Is(err, fs.ErrNotExist) {
		var parent writer.FS
		if parent, err = writer.OpenFS(filepath.Dir(path)); err != nil {
			return nil, fmt.Errorf("make the backup's folder: %w", err)
		}
		err = errors.Join(writer.MkdirDurable(parent, filepath.Base(path)), parent.Close())
		if err == nil {
			dir, err = writer.OpenFS(path)
		}
	}
	if err != nil {
		return nil, err
	}
	return create(dir, o)
}

// outside refuses a folder within the project's: a backup there goes with the project, and the
// checkpoints would take it for the project's files.
func outside(path, project string) error {
	if project == "" {
		return nil
	}
	there, err := os.Stat(project)
	if err != nil {
		return fmt.Errorf("look at the project: %w", err)
	}
	at := path
	for {
		whole, err := filepath.EvalSymlinks(at)
		if err == nil {
			at = whole
			break
		}
		if up := filepath.Dir(at); up != at {
			at = up
			continue
		}
		return fmt.Errorf("look at the backup's folder: %w", err)
	}
	for ; ; at = filepath.Dir(at) {
		if info, err := os.Stat(at); err == nil && os.SameFile(info, there) {
			return &writer.Error{Op: "back up to", Path: path, Class: writer.ClassInvalid, Err: fmt.Errorf("it is inside of the project %s; name a folder in another place", project)}
		}
		if filepath.Dir(at) == at {
			return nil
		}
	}
}

// create is Create on an open folder, which it closes after an error.
func create(dir writer.FS, o Options) (*Folder, error) {
	f, err := open(dir, o)
	if !errors.Is(err, ErrNone) {
		return f, err
	}
	if err := empty(dir, o.Encrypt); err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	lock, err := lockOf(dir, "a new backup")
	if err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	defer func() { _ = lock.Unlock() }()
	f = &Folder{dir: dir, files: dir, opts: o}
	if err := f.make(); err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	return f, nil
}

// make writes what makes a folder a backup, the mark last. The caller has the lock.
func (f *Folder) make() error {
	if err := readMark(f.dir, &f.mark); !errors.Is(err, ErrNone) {
		if err == nil {
			err = f.unlockFiles()
		}
		return err // somebody else made it meanwhile
	}
	if err := writer.RemoveTemps(f.dir, ".", nil); err != nil {
		return err
	}
	f.mark = mark{Encrypted: f.opts.Encrypt, Since: f.now()}
	if f.mark.Encrypted {
		if err := f.makeKey(); err != nil {
			return err
		}
	}
	data, err := sealed.Encode(f.mark)
	if err != nil {
		return err
	}
	return writer.ReplaceFile(f.dir, markFile, data, filePerm)
}

// Open opens the backup in the folder of this path. It writes nothing. The error wraps ErrNone
// if the folder is no backup.
func Open(path string, o Options) (*Folder, error) {
	dir, err := writer.OpenFS(path)
	if err != nil {
		return nil, err
	}
	f, err := open(dir, o)
	if errors.Is(err, ErrNone) {
		_ = dir.Close()
	}
	return f, err
}

// open opens the backup in an open folder. It closes the folder after an error that is not
// ErrNone.
func open(dir writer.FS, o Options) (*Folder, error) {
	f := &Folder{dir: dir, files: dir, opts: o}
	err := readMark(dir, &f.mark)
	if errors.Is(err, ErrNone) {
		return nil, err
	}
	if err == nil {
		err = f.unlockFiles()
	}
	if err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	return f, nil
}

func readMark(dir writer.FS, m *mark) error {
	err := readSealed(dir, markFile, m)
	if errors.Is(err, fs.ErrNotExist) {
		return &writer.Error{Op: "open backup", Path: dir.Name(), Class: writer.ClassInvalid, Err: fmt.Errorf("%w: there is no %s", ErrNone, markFile)}
	}
	return err
}

// empty refuses a folder that has anything but what an interrupted creation left.
func empty(dir writer.FS, encrypt bool) error {
	entries, err := dir.ReadDir(".")
	if err != nil {
		return err
	}
	for _, e := range entries {
		switch name := e.Name(); {
		case name == lockFile, name == keyFile && encrypt, name == lostFound && e.IsDir(), strings.HasPrefix(name, tempPrefix):
		default:
			return &writer.Error{Op: "make a backup in", Path: dir.Name(), Class: writer.ClassInvalid, Err: fmt.Errorf("%w, and not empty: it has %q; name an empty folder or one that is not there", ErrNone, name)}
		}
	}
	return nil
}

func lockOf(dir writer.FS, what string) (*writer.Lock, error) {
	return writer.TryLock(dir, lockFile, writer.OwnerOf(os.Getpid(), what))
}

func (f *Folder) now() time.Time {
	now := time.Now
	if f.opts.Now != nil {
		now = f.opts.Now
	}
	return now().UTC().Round(0)
}

// path returns the full path of a name in the folder, for messages.
func (f *Folder) path(name string) string { return filepath.Join(f.dir.Name(), name) }

// Path returns the path of the folder.
func (f *Folder) Path() string { return f.dir.Name() }

// KeyID names the key of an encrypted backup: the SHA-256 of its text, in hex. "" means that the
// backup is not encrypted. Who remembers it notices when the key was replaced.
func (f *Folder) KeyID() string { return f.keyID }

// objects returns the store of objects. The error wraps fs.ErrNotExist if nothing was ever
// backed up.
func (f *Folder) objects() (*blob.Store, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.store != nil {
		return f.store, nil
	}
	sub, err := writer.OpenDir(f.files, objectsDir)
	if err != nil {
		return nil, err
	}
	f.subs = append(f.subs, sub)
	f.store = blob.New(sub).Compressing(codec.Options{})
	return f.store, nil
}

// fresh returns a store of objects that remembers nothing of what another one saw.
func (f *Folder) fresh() (*blob.Store, error) {
	f.mu.Lock()
	f.store = nil
	f.mu.Unlock()
	return f.objects()
}

// Close closes the folder. It is not idempotent.
func (f *Folder) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var errs []error
	for _, sub := range f.subs {
		errs = append(errs, sub.Close())
	}
	return errors.Join(append(errs, f.dir.Close())...)
}
