package writer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/gofrs/flock"
)

// A Lock is an flock on a permanent file. The file is never unlinked: if it
// were, two processes could hold two files of one name. The kernel lets go when
// the holder dies, so there is nothing to steal and no age to judge by.
type Lock struct {
	path string
	fl   *flock.Flock

	mu       sync.Mutex
	unlocked bool // Guarded by mu.
}

// probes is how often TryLock looks again before it believes that a lock is
// held: Holder takes it, shared, for a moment.
const (
	probes     = 20
	probeDelay = 2 * time.Millisecond
)

// TryLock takes the lock of that name or returns a [*BusyError]. It waits no
// longer than it takes to tell a holder from somebody who only asks who it is.
// Two Locks of one process exclude each other as well.
func TryLock(dir FS, name string, owner Owner) (*Lock, error) {
	ctx, cancel := context.WithTimeout(context.Background(), probes*probeDelay)
	defer cancel()
	l, err := lock(ctx, dir, name, owner)
	if errors.Is(err, context.DeadlineExceeded) {
		return nil, &BusyError{Path: filepath.Join(dir.Name(), name), Owner: readOwner(dir, name)}
	}
	return l, err
}

// LockWait takes the lock of that name, waiting for it until ctx ends. It is
// for locks that are held for a moment; on ctx's end it names the holder.
func LockWait(ctx context.Context, dir FS, name string, owner Owner) (*Lock, error) {
	l, err := lock(ctx, dir, name, owner)
	if ctx.Err() != nil && err != nil {
		return nil, fmt.Errorf("%w: %w", context.Cause(ctx), &BusyError{Path: filepath.Join(dir.Name(), name), Owner: readOwner(dir, name)})
	}
	return l, err
}

func lock(ctx context.Context, dir FS, name string, owner Owner) (*Lock, error) {
	full := filepath.Join(dir.Name(), name)
	if info, err := dir.Lstat(name); err == nil && !info.Mode().IsRegular() {
		return nil, &Error{Op: "lock", Path: full, Class: ClassInvalid, Err: fmt.Errorf("it is no regular file but %s", info.Mode().Type())}
	}
	for range attempts {
		l := &Lock{path: full, fl: flock.New(full, flock.SetFlag(os.O_CREATE|os.O_RDWR|noFollow), flock.SetPermissions(0o600))}
		if _, err := l.fl.TryLockContext(ctx, probeDelay); err != nil {
			_ = l.fl.Close()
			if ctx.Err() != nil {
				return nil, err
			}
			return nil, newError("lock", full, NotCommitted, err)
		}
		// Between the open and the flock the file may have been replaced.
		if err := l.Check(dir, name); err == nil {
			l.record(dir, name, owner)
			return l, nil
		}
		_ = l.fl.Close()
	}
	return nil, &Error{Op: "lock", Path: full, Class: ClassFenced, Err: errors.New("the lock file is replaced again and again")}
}

// Check returns nil while the file that is held is the one of that name in dir.
// It costs two stats. The error has class fenced: whoever lost the lock must stop
// writing at once.
func (l *Lock) Check(dir FS, name string) error {
	held, err := l.fl.Stat()
	if err != nil {
		return &Error{Op: "check lock", Path: l.path, Class: ClassFenced, Err: err}
	}
	there, err := dir.Stat(name)
	if err != nil {
		return &Error{Op: "check lock", Path: l.path, Class: ClassFenced, Err: fmt.Errorf("the lock file is gone: %w", err)}
	}
	if !os.SameFile(held, there) {
		return &Error{Op: "check lock", Path: l.path, Class: ClassFenced, Err: errors.New("another file has taken the lock file's place")}
	}
	return nil
}

// Unlock lets go. It is idempotent. The file and the record in it stay.
func (l *Lock) Unlock() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.unlocked {
		return nil
	}
	l.unlocked = true
	if err := l.fl.Close(); err != nil {
		return newError("unlock", l.path, NotCommitted, err)
	}
	return nil
}

// record writes who holds. A failure, say on a full disk, costs a name in a
// message and not the lock.
func (l *Lock) record(dir FS, name string, owner Owner) {
	data, err := json.Marshal(owner)
	if err != nil {
		return
	}
	f, err := dir.OpenFile(name, os.O_WRONLY|os.O_TRUNC|noFollow, 0)
	if err != nil {
		return
	}
	defer f.Close()
	_, _ = f.Write(append(data, '\n'))
}

func readOwner(dir FS, name string) Owner {
	data, err := ReadFile(dir, name, maxRecord)
	if err != nil {
		return Owner{}
	}
	return decodeOwner(data)
}

// Holder says whether somebody holds the lock of that name, and who. It takes
// no lock for longer than it looks and changes nothing.
func Holder(dir FS, name string) (owner Owner, held bool, err error) {
	info, err := dir.Lstat(name)
	if errors.Is(err, os.ErrNotExist) {
		return Owner{}, false, nil
	}
	full := filepath.Join(dir.Name(), name)
	if err != nil {
		return Owner{}, false, newError("look at lock", full, NotCommitted, err)
	}
	if !info.Mode().IsRegular() {
		return Owner{}, false, &Error{Op: "look at lock", Path: full, Class: ClassInvalid, Err: errors.New("it is no regular file")}
	}
	fl := flock.New(full, flock.SetFlag(os.O_RDONLY|noFollow))
	defer fl.Close()
	free, err := fl.TryRLock()
	if err != nil {
		return Owner{}, false, newError("look at lock", full, NotCommitted, err)
	}
	if free {
		return Owner{}, false, nil
	}
	return readOwner(dir, name), true, nil
}
