package blob

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/lopen-dev/lopen/writer"
)

const (
	// MaxUnsynced bounds the files that are open at once because they are not synced
	// yet.
	MaxUnsynced = 64
	// syncers is how many syncs are asked for at once. A journalling file system
	// commits what waits together: eight at a time cost little more than one.
	syncers = 8
)

// A Batch stores many contents for the price of few waits: the contents are
// written as they come, synced side by side, renamed together, and each folder is
// synced once. Nothing of it is durable, nor under its name, before
// [Batch.Commit] returns nil. Make one with [Hold.Batch].
type Batch struct {
	h *Hold

	mu       sync.Mutex
	seen     map[Hash]struct{} // Guarded by mu: in the Batch, or whole in the store.
	unsynced []unsynced        // Guarded by mu.
	synced   []temp            // Guarded by mu: closed, waiting for their names.
	err      error             // Guarded by mu: sticky.
	done     bool              // Guarded by mu.
}

type temp struct {
	name string
	hash Hash
}

type unsynced struct {
	temp
	f writer.File
}

// Batch begins a Batch. One that is not committed must be discarded.
func (h *Hold) Batch() *Batch { return &Batch{h: h, seen: map[Hash]struct{}{}} }

// Put is [Hold.Put] but for what it promises: the content is durable when
// [Batch.Commit] has returned nil. stored, if not zero, is a hash that a durable
// manifest names: the caller vouches for it, and a content that has it costs no more
// than the reading. Any goroutine may call Put, until Commit. After an error that is
// not of r the Batch cannot be committed any more.
func (b *Batch) Put(r io.Reader, stored Hash) (Hash, int64, error) {
	b.h.mu.RLock()
	defer b.h.mu.RUnlock()
	if err := b.usable(); err != nil {
		return Hash{}, 0, err
	}
	s := b.h.s
	buf := heads.Get().(*[chunk]byte)
	defer heads.Put(buf)
	first, ended, err := head(r, buf[:])
	if err != nil {
		return Hash{}, 0, writer.NewError(opPut, s.dir.Name(), writer.NotCommitted, err)
	}
	if ended { // a small content that is there is not written at all
		if sum := Hash(sha256.Sum256(first)); sum == stored || b.has(sum) {
			return sum, int64(len(first)), nil
		}
	}
	name, f, sum, size, err := s.fillTemp(io.MultiReader(bytes.NewReader(first), r))
	if err != nil {
		return Hash{}, 0, err
	}
	if sum == stored || b.has(sum) {
		_ = f.Close()
		_ = s.dir.Remove(name)
		return sum, size, nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, twice := b.seen[sum]; twice { // by another goroutine, since
		_ = f.Close()
		_ = s.dir.Remove(name)
		return sum, size, b.err
	}
	b.seen[sum] = struct{}{}
	b.unsynced = append(b.unsynced, unsynced{temp{name, sum}, f})
	if len(b.unsynced) >= MaxUnsynced {
		b.sync()
	}
	return sum, size, b.err
}

var heads = sync.Pool{New: func() any { return new([chunk]byte) }}

// head reads the beginning of r, and says whether that is all.
func head(r io.Reader, first []byte) (_ []byte, ended bool, err error) {
	n, empty := 0, 0
	for n < len(first) {
		m, err := r.Read(first[n:])
		n += m
		if empty++; m > 0 {
			empty = 0
		}
		switch {
		case err == io.EOF: // not errors.Is, as in copyHash
			return first[:n], true, nil
		case err != nil:
			return nil, false, fmt.Errorf("read the content: %w", err)
		case empty >= maxEmptyReads:
			return nil, false, fmt.Errorf("read the content: %w", io.ErrNoProgress)
		}
	}
	return first, false, nil
}

// has says whether a content needs no storing, and notes that its folder is to be
// synced: who stored it may not have come to that.
func (b *Batch) has(sum Hash) bool {
	b.mu.Lock()
	_, twice := b.seen[sum]
	b.mu.Unlock()
	if twice {
		return true
	}
	s := b.h.s
	if s.shards[sum[0]].suspect.Load() || s.verify(opPut, sum) != nil {
		return false
	}
	b.mu.Lock()
	b.seen[sum] = struct{}{}
	b.mu.Unlock()
	return true
}

func (b *Batch) usable() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err == nil && (b.done || b.h.fl == nil) {
		return &writer.Error{Op: opPut, Path: b.h.s.dir.Name(), Class: writer.ClassInvalid, Err: errors.New("the hold was released, or the batch is over")}
	}
	return b.err
}

// sync syncs and closes what is open. The caller holds mu.
func (b *Batch) sync() {
	open := make([]writer.File, 0, len(b.unsynced))
	for _, u := range b.unsynced {
		open = append(open, u.f)
		b.synced = append(b.synced, u.temp)
	}
	b.unsynced = nil
	if err := SyncAll(open); err != nil && b.err == nil {
		b.err = writer.NewError(opPut, b.h.s.dir.Name(), writer.NotCommitted, err)
	}
}

// SyncAll syncs and closes files side by side, each once and never again, and
// returns the first error.
func SyncAll(open []writer.File) error {
	var g errgroup.Group
	g.SetLimit(syncers)
	for _, f := range open {
		g.Go(func() error {
			err := f.Sync()
			if cerr := f.Close(); err == nil {
				err = cerr
			}
			return err
		})
	}
	return g.Wait()
}

// Commit makes everything that was put durable. After an error some contents may
// be stored, whole; storing them again is fine. The Batch is over either way.
func (b *Batch) Commit() error {
	b.h.mu.RLock()
	defer b.h.mu.RUnlock()
	defer b.Discard()
	if err := b.usable(); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.h.s
	if b.sync(); b.err != nil {
		return b.err
	}
	if b.err = s.makeShards(b.seen); b.err != nil {
		return b.err
	}
	for len(b.synced) > 0 {
		t := b.synced[0]
		b.synced = b.synced[1:]
		if b.err = s.rename(t.name, t.hash); b.err != nil {
			return b.err
		}
	}
	b.err = s.syncShards(b.seen)
	return b.err
}

// Discard removes what was put and not committed. It is idempotent; after Commit
// it does nothing.
func (b *Batch) Discard() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.done = true
	for _, u := range b.unsynced {
		_ = u.f.Close()
		_ = b.h.s.dir.Remove(u.name)
	}
	for _, t := range b.synced {
		_ = b.h.s.dir.Remove(t.name)
	}
	b.unsynced, b.synced = nil, nil
}

// makeShards is makeShard for many, with one sync of the store's folder.
func (s *Store) makeShards(hashes map[Hash]struct{}) error {
	var made []*shardState
	var last Hash
	for h := range hashes {
		state := &s.shards[h[0]]
		if state.durable.Load() {
			continue
		}
		// The last one syncs the names of all of them.
		err := writer.Retry(func() error { return s.dir.Mkdir(h.shard(), 0o700) })
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return s.failed(opPut, h, writer.NotCommitted, err)
		}
		made, last = append(made, state), h
	}
	if len(made) == 0 {
		return nil
	}
	if err := s.makeShard(last); err != nil {
		return err
	}
	for _, state := range made {
		state.durable.Store(true)
	}
	return nil
}

// syncShards syncs each folder that one of the blobs is in, once. A blob that was
// there is synced too: who renamed it may not have come to that.
func (s *Store) syncShards(hashes map[Hash]struct{}) error {
	one := map[byte]Hash{}
	for h := range hashes {
		one[h[0]] = h
	}
	var g errgroup.Group
	g.SetLimit(syncers)
	for first, h := range one {
		g.Go(func() error {
			if err := s.dir.SyncDir(h.shard()); err != nil {
				s.shards[first].suspect.Store(true)
				return s.failed(opPut, h, writer.NotDurable, err)
			}
			return nil
		})
	}
	return g.Wait()
}
