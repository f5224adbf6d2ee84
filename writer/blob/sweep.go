package blob

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/lopen-dev/lopen/writer"
)

// Swept is what a sweep removed, or would remove.
type Swept struct {
	Hashes []Hash // in ascending order
	Bytes  int64  // of their contents
}

// Sweep removes the blobs that mark does not name, and the temporary files of
// dead writers. It takes the lock for itself, or, while a [Hold] or another sweep
// is out, steps aside with an error of class busy; it never waits. mark is called
// under the lock and returns the hashes of every manifest; if it fails nothing is
// removed. With dryRun nothing is removed either way. What is no blob by name and
// kind is left alone.
//
// Any goroutine may call it, but not one that has a Hold. After an error Swept is
// what was removed until then; the next sweep goes on. An error of mark has its own
// class and is wrapped. Removals are not synced: see the package's Crash safety.
func (s *Store) Sweep(mark func() (map[Hash]struct{}, error), dryRun bool) (swept Swept, err error) {
	const op = "sweep blobs"
	fl, err := s.tryLock(op, writer.Flock.TryLock)
	if err != nil {
		return Swept{}, err
	}
	if fl == nil {
		return Swept{}, s.busy(op, errors.New("somebody is storing or sweeping"))
	}
	defer func() { // mark is foreign code and may panic
		if uerr := s.unlock(op, fl); err == nil {
			err = uerr
		}
	}()
	writer.RecordOwner(s.dir, lockName, writer.Self("sweep of blobs"))
	marked, err := mark()
	if err != nil {
		return Swept{}, writer.NewError(op, s.dir.Name(), writer.NotCommitted, fmt.Errorf("nothing is removed: what is needed cannot be told: %w", err))
	}
	for first := range 256 {
		if err := s.sweepShard(byte(first), marked, dryRun, &swept); err != nil {
			return swept, err
		}
	}
	if !dryRun {
		err = writer.RemoveTemps(s.dir, ".", nil)
	}
	return swept, err
}

// sweepShard sweeps the blobs whose hash begins with a byte. The folder stays:
// others count on it.
func (s *Store) sweepShard(first byte, marked map[Hash]struct{}, dryRun bool, swept *Swept) error {
	const op = "sweep blobs"
	shard := Hash{first}.shard()
	info, err := s.dir.Lstat(shard)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.IsDir() {
		return nil
	}
	var entries []fs.DirEntry
	if err == nil {
		err = writer.Retry(func() (err error) {
			entries, err = s.dir.ReadDir(shard)
			return err
		})
	}
	if err != nil {
		return writer.NewError(op, s.path(shard), writer.NotCommitted, err)
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	for _, e := range entries {
		h, err := ParseHash(shard + e.Name())
		if err != nil {
			continue
		}
		if _, ok := marked[h]; ok {
			continue
		}
		size, err := s.remove(h, dryRun)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNoBlob) {
			continue
		}
		if err != nil {
			return s.failed(op, h, writer.NotCommitted, err)
		}
		swept.Hashes = append(swept.Hashes, h)
		swept.Bytes += size
	}
	return nil
}

// errNoBlob is what remove returns for what only has a blob's name.
var errNoBlob = errors.New("no blob")

// remove removes a blob and returns its size in bytes.
func (s *Store) remove(h Hash, dryRun bool) (size int64, err error) {
	info, err := s.dir.Lstat(h.name())
	if err != nil {
		return 0, err
	}
	if !info.Mode().IsRegular() {
		return 0, errNoBlob
	}
	if !dryRun {
		err = writer.Retry(func() error { return s.dir.Remove(h.name()) })
	}
	return info.Size(), err
}
