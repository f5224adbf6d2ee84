package blob

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/lopen-dev/lopen/writer"
)

const opSweep = "sweep blobs"

// Swept is what a sweep removed, or would remove.
type Swept struct {
	Hashes []Hash // that are not there any more, in ascending order
	Bytes  int64  // that were freed: the lengths of files
	Waste  int64  // bytes of contents that nobody needs, in packs that stay
}

// Sweep removes the blobs that mark does not name, and the temporary files of
// dead writers. A pack goes when nothing in it is needed; one of which less than half
// is needed is written anew, if there is room for that, and stays as it is otherwise. It
// frees first what needs no room, then what needs the least. A pack whose index cannot
// be read stays while anything that mark names is missing.
//
// It takes the lock for itself, or, while a [Hold] or another sweep
// is out, returns an error of class busy; it never waits. mark is called
// under the lock and returns the hashes of every manifest; if it fails nothing is
// removed. With dryRun nothing is removed either way. What is no blob by name and
// kind is left alone.
//
// Any goroutine may call it, but not one that has a Hold. After an error Swept is
// what was removed until then; the next sweep continues. An error of mark has its own
// class and is wrapped. Removals are not synced: see the package's Crash safety.
func (s *Store) Sweep(mark func() (map[Hash]struct{}, error), dryRun bool) (swept Swept, err error) {
	fl, err := s.tryLock(opSweep, writer.Flock.TryLock)
	if err != nil {
		return Swept{}, err
	}
	if fl == nil {
		return Swept{}, s.busy(opSweep, errors.New("somebody is storing or sweeping"))
	}
	defer func() { // mark is foreign code and may panic
		if uerr := s.unlock(opSweep, fl); err == nil {
			err = uerr
		}
	}()
	writer.RecordOwner(s.dir, lockName, writer.Self("sweep of blobs"))
	marked, err := mark()
	if err != nil {
		return Swept{}, writer.NewError(opSweep, s.dir.Name(), writer.NotCommitted, fmt.Errorf("nothing is removed: what is needed cannot be told: %w", err))
	}
	if !dryRun {
		if err := writer.RemoveTemps(s.dir, ".", nil); err != nil {
			return Swept{}, err
		}
	}
	shards, err := s.shards(opSweep)
	if err != nil {
		return Swept{}, err
	}
	for _, shard := range shards {
		if err := s.sweepShard(shard, marked, dryRun, &swept); err != nil {
			return swept, err
		}
	}
	c := &packSweep{s: s, marked: marked, dryRun: dryRun, swept: &swept}
	err = c.run()
	return swept, err
}

// sweepShard sweeps the blobs that have files of their own in a folder. The folder
// stays: others count on it.
func (s *Store) sweepShard(shard string, marked map[Hash]struct{}, dryRun bool, swept *Swept) error {
	hashes, err := s.loose(opSweep, shard)
	if err != nil {
		return err
	}
	for _, h := range hashes {
		if _, ok := marked[h]; ok {
			continue
		}
		size, err := s.remove(h, dryRun)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNoBlob) {
			continue
		}
		if err != nil {
			return s.failed(opSweep, h, writer.NotCommitted, err)
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
