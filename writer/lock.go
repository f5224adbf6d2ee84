package writer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/lopen-dev/lopen/writer/strictjson"
)

// A Lock is an flock on a permanent file. The file is never unlinked: if it were, two
// processes could each hold the lock, on two files of one name. The kernel releases the
// lock when the holder dies, so that no lock is ever stale.
//
// A lock file with more than one hard link is refused with class invalid: two locks could
// be one file, and the owner's record would be written into another file as well.
type Lock struct {
	path string
	fl   Flock
	held fs.FileInfo // of the open file; its inode number is not reused while it is open

	mu       sync.Mutex
	unlocked bool // Guarded by mu.
}

// probeDelay is the pause between two attempts at a lock. probeTime is how long
// TryLock waits for callers of Holder, which hold the lock for a moment.
const (
	probeDelay = time.Millisecond
	probeTime  = 2 * time.Second
)

// patience is how long a caller waits for a lock that is normally held for a moment only.
// Its holder may be a stopped process.
const patience = 10 * time.Second

// WithPatience returns a context that ends with ctx or after ten seconds, which is how long
// callers wait for a lock that is normally held for a moment only.
func WithPatience(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, patience, fmt.Errorf("waited for %s", patience))
}

// TryLock takes the lock of that name or returns a [*BusyError]. It does not wait
// for a holder. It waits at most two seconds for callers of [Holder], which take
// microseconds each. Two Locks of one process exclude each other as well.
func TryLock(dir FS, name string, owner Owner) (*Lock, error) {
	ctx, cancel := context.WithTimeout(context.Background(), probeTime)
	defer cancel()
	return lock(ctx, dir, name, owner, false)
}

// LockWait takes the lock of that name. It waits until ctx ends, and at most ten seconds.
// It is for locks that are held for a moment only. The error names the holder.
func LockWait(ctx context.Context, dir FS, name string, owner Owner) (*Lock, error) {
	if ctx == nil {
		return nil, &Error{Op: "lock", Path: filepath.Join(dir.Name(), name), Class: ClassInvalid, Err: errors.New("the context is nil")}
	}
	ctx, cancel := WithPatience(ctx)
	defer cancel()
	l, err := lock(ctx, dir, name, owner, true)
	if cause := context.Cause(ctx); errors.Is(err, ErrBusy) && cause != nil {
		return nil, fmt.Errorf("%w: %w", cause, err)
	}
	return l, err
}

func lock(ctx context.Context, dir FS, name string, owner Owner, wait bool) (*Lock, error) {
	l := &Lock{path: filepath.Join(dir.Name(), name)}
	var err error
	l.fl, l.held, err = Flocked(dir, "lock", name, func(fl Flock) (bool, error) { return acquire(ctx, fl, wait) })
	switch {
	case ClassOf(err) == ClassFenced:
		return nil, &Error{Op: "lock", Path: l.path, Class: ClassBusy, Err: errors.New("somebody is moving it at this moment; try again")}
	case err != nil:
		return nil, err
	case l.fl == nil:
		return nil, &BusyError{Path: l.path, Owner: holder(dir, name)}
	}
	RecordOwner(dir, name, owner)
	return l, nil
}

// Flocked creates the file of that name if it is missing, and takes an flock on it with take.
// It returns a nil Flock if take returns false. Otherwise the flock is on the file that has
// the name, which held describes. The error has class fenced if the file is replaced again
// and again.
func Flocked(dir FS, op, name string, take func(Flock) (bool, error)) (fl Flock, held fs.FileInfo, err error) {
	full := filepath.Join(dir.Name(), name)
	for range attempts {
		// The Flock opens its file by path. So the file is created here, through the FS,
		// where no name leads outside and no symlink is followed. Below it is verified
		// that both are the same file.
		f, _, err := OpenRegular(dir, op, name, os.O_CREATE|os.O_RDWR)
		if err != nil {
			return nil, nil, err
		}
		if err := f.Close(); err != nil {
			return nil, nil, NewError(op, full, NotCommitted, err)
		}
		fl := dir.Flock(name, os.O_RDWR)
		ok, err := take(fl)
		if err == nil && !ok {
			return nil, nil, nil
		}
		if err == nil {
			var there fs.FileInfo
			if held, err = fl.Stat(); err == nil {
				there, err = dir.Lstat(name)
			}
			if err == nil && SameFile(held, there) {
				return fl, held, nil
			}
			_ = fl.Close() // the file was replaced before the flock was taken, or cannot be looked at
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // the file was removed since
			return nil, nil, NewError(op, full, NotCommitted, err)
		}
	}
	return nil, nil, &Error{Op: op, Path: full, Class: ClassFenced, Err: errors.New("the lock file or its folder is replaced again and again")}
}

// acquire takes the exclusive lock. It returns false when ctx ends or, without
// wait, when another process or Lock holds it. A caller of [Holder] is no holder: it
// has a shared lock for a moment. acquire tells the two apart by trying a shared lock,
// which fails only against an exclusive one.
func acquire(ctx context.Context, fl Flock, wait bool) (bool, error) {
	tick := time.NewTicker(probeDelay)
	defer tick.Stop()
	for {
		if ok, err := fl.TryLock(); ok || err != nil {
			return ok, err
		}
		if !wait {
			asked, err := fl.TryRLock()
			if !asked || err != nil {
				return false, err
			}
			if err := fl.Unlock(); err != nil {
				return false, err
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return false, nil
		}
	}
}

// Check returns nil while the lock is held and name in dir is still the locked file. It
// costs one lookup of the name. The error has class fenced: a writer that lost its lock
// must stop at once.
func (l *Lock) Check(dir FS, name string) error {
	l.mu.Lock()
	unlocked := l.unlocked
	l.mu.Unlock()
	if d, ok := dir.(*root); ok && !unlocked && d.is(name, l.held) {
		return nil
	}
	there, err := dir.Lstat(name)
	switch {
	case unlocked:
		err = errors.New("it was given back")
	case err != nil:
		err = fmt.Errorf("the lock file is gone: %w", err)
	case !SameFile(l.held, there):
		err = errors.New("another file has taken the lock file's place")
		if owner, held, _ := Holder(dir, name); held {
			err = fmt.Errorf("%w, and %s holds it", err, owner)
		}
	}
	if err != nil {
		return &Error{Op: "check lock", Path: l.path, Class: ClassFenced, Err: err}
	}
	return nil
}

// Unlock releases the lock. It is idempotent. The file and the record in it stay.
func (l *Lock) Unlock() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.unlocked {
		return nil
	}
	l.unlocked = true
	if err := l.fl.Close(); err != nil {
		return NewError("unlock", l.path, NotCommitted, err)
	}
	return nil
}

// RecordOwner writes owner into the lock file of that name. The caller holds the lock.
// Errors are ignored: after one, on a full disk for example, only a name is missing in
// a message.
func RecordOwner(dir FS, name string, owner Owner) {
	data, err := strictjson.Marshal(owner)
	if err != nil {
		return
	}
	f, info, err := OpenRegular(dir, "record owner", name, os.O_WRONLY)
	if err != nil {
		return
	}
	defer f.Close()
	// One write, with blanks over the end of a longer record, so that no reader sees a
	// mixture of two records.
	blanks := max(0, min(info.Size(), maxRecord)-int64(len(data))-1)
	_, _ = f.Write(append(append(data, bytes.Repeat([]byte(" "), int(blanks))...), '\n'))
}

// LastOwner returns the record of the present or the last holder of the lock of that
// name, and the zero Owner when there is none that can be read. It is for messages.
func LastOwner(dir FS, name string) Owner {
	data, err := ReadFile(dir, name, maxRecord)
	if err != nil {
		return Owner{}
	}
	return decodeOwner(data)
}

// holder returns the record of the holder of a lock, and the zero Owner where that left none: what
// is not lopen leaves that of the holder before it.
func holder(dir FS, name string) Owner {
	if o := LastOwner(dir, name); !o.gone() {
		return o
	}
	return Owner{}
}

// Holder reports whether the lock of that name is held, and by whom. It takes a shared
// lock for a moment and changes nothing.
func Holder(dir FS, name string) (owner Owner, held bool, err error) {
	if held, _, err = Locked(dir, name); held {
		owner = holder(dir, name)
	}
	return owner, held, err
}

// Locked reports whether the lock of that name is held, and whether its file exists: a lock
// without a file was never held. It takes a shared lock for a moment and changes nothing.
func Locked(dir FS, name string) (held, ever bool, err error) {
	if d, ok := dir.(*root); ok {
		if held, ever, ok := d.locked(name); ok {
			return held, ever, nil
		}
	}
	info, err := dir.Lstat(name)
	if errors.Is(err, os.ErrNotExist) {
		return false, false, nil
	}
	full := filepath.Join(dir.Name(), name)
	if err != nil {
		return false, true, NewError("look at lock", full, NotCommitted, err)
	}
	if !info.Mode().IsRegular() {
		return false, true, notRegular("look at lock", full, info.Mode())
	}
	if err := alone("look at lock", full, os.O_RDWR, info); err != nil { // it may be the file of another lock
		return false, true, err
	}
	fl := dir.Flock(name, os.O_RDONLY)
	defer fl.Close()
	free, err := fl.TryRLock()
	if err != nil {
		return false, true, NewError("look at lock", full, NotCommitted, err)
	}
	return !free, true, nil
}
