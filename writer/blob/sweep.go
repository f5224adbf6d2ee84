package blob

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/lopen-dev/lopen/writer"
)

const opSweep = "sweep blobs"

// Swept is what a sweep removed.
type Swept struct {
	Hashes []Hash // contents that are no longer in the store, in ascending order
	Bytes  int64  // freed bytes, by the lengths of files
}

// Sweep removes the blobs that mark does not return, and the temporary files of dead
// writers. It removes a pack of which no content is needed. It rewrites a pack of which
// less than half is needed; if there is no room for that, the pack stays. It begins with
// the removals, which need no room, and continues with the smallest rewrite. A pack whose
// index is damaged stays while any hash of mark is missing.
//
// Sweep takes the exclusive lock. It does not wait: during a [Hold] or another sweep it
// returns an error of class busy. It calls mark under the lock, which returns the hashes
// of all manifests. If mark fails, nothing is removed, and the error wraps that of mark
// and has its class. Files that are no blobs by name and kind are left alone.
//
// A goroutine that has a Hold must not call Sweep. After an error Swept is what was
// removed until then, and the next sweep continues. Removals are not synced, for the
// reason in the package comment.
func (s *Store) Sweep(mark func() (map[Hash]struct{}, error)) (swept Swept, err error) {
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
	if err := writer.RemoveTemps(s.dir, ".", nil); err != nil {
		return Swept{}, err
	}
	shards, err := s.shards(opSweep)
	if err != nil {
		return Swept{}, err
	}
	for _, shard := range shards {
		if err := s.sweepShard(shard, marked, &swept); err != nil {
			return swept, err
		}
	}
	err = (&packSweep{s: s, marked: marked, swept: &swept}).run()
	return swept, err
}

// sweepShard sweeps the blobs with their own files in one folder. The folder stays, because
// Stores remember that its name is durable.
func (s *Store) sweepShard(shard string, marked map[Hash]struct{}, swept *Swept) error {
	hashes, err := s.loose(opSweep, shard)
	if err != nil {
		return err
	}
	for _, h := range hashes {
		if _, ok := marked[h]; ok {
			continue
		}
		info, err := s.dir.Lstat(h.name())
		if err == nil && !info.Mode().IsRegular() {
			continue // it only has the name of a blob
		}
		if err == nil {
			err = writer.Retry(func() error { return s.dir.Remove(h.name()) })
		}
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return s.failed(opSweep, h, writer.NotCommitted, err)
		}
		swept.Hashes = append(swept.Hashes, h)
		swept.Bytes += info.Size()
	}
	return nil
}
