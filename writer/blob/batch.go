package blob

import (
	"context"
	"errors"
	"io"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/codec"
)

const (
	// opPut is the operation that errors of a Batch name.
	opPut = "store blob"
	// MaxUnsynced bounds the files of a Batch that are open because they are not synced
	// yet.
	MaxUnsynced = 64
	// syncers is the number of concurrent syncs. A journalling file system commits
	// concurrent syncs together: eight cost little more than one.
	syncers = 8
)

// A Batch stores many contents with few syncs. Contents of up to [PackMax] bytes go into
// packs; a larger one gets a file of its own. The files are written by Put. Commit syncs
// them concurrently, renames them, and syncs each folder once. Before [Batch.Commit]
// returns nil no content is durable. Make a Batch with [Hold.Batch].
type Batch struct {
	h    *Hold
	look sync.Once // lists the packs once: no sweep removes one during the Hold

	mu       sync.Mutex
	seen     map[Hash]struct{}     // Guarded by mu: contents in the Batch, or intact in the store.
	folders  [packsFolder + 1]bool // Guarded by mu: folders that Commit has to make and sync.
	packing  *packWriter           // Guarded by mu: the pack in progress; nil when there is none.
	unsynced []unsynced            // Guarded by mu.
	synced   []temp                // Guarded by mu: synced, closed and not yet renamed.
	err      error                 // Guarded by mu: sticky.
	done     bool                  // Guarded by mu.
	ended    func() error          // ends the verification of what is stored; nil never does
}

// A temp is a complete temporary file that is not renamed yet.
type temp struct {
	name  string
	hash  Hash        // of the content
	codec codec.Codec // of a single content
	pack  *pack       // nil for a single content
}

type unsynced struct {
	temp
	f writer.File
}

// Batch begins a Batch. The caller must call Commit or Discard.
func (h *Hold) Batch() *Batch { return &Batch{h: h, seen: map[Hash]struct{}{}} }

// Until ends the calls of Put with the error of ctx when that ends, also while they verify what is
// stored already. The caller has not called Put yet.
func (b *Batch) Until(ctx context.Context) *Batch {
	b.ended = ctx.Err
	return b
}

// Put reads r to its end, stores the content, and returns its hash and its length in
// bytes. The content is durable when [Batch.Commit] has returned nil. If the store has the
// content, Put verifies it and stores a damaged one again. stored, if not zero, is a hash
// that a durable manifest names: a content with this hash is neither verified nor stored.
// Put needs one buffer of memory for any size. Any goroutine may call Put before Commit.
// An error of r is wrapped and has its own class; the Batch stays usable. After another
// error the Batch cannot be committed.
func (b *Batch) Put(r io.Reader, stored Hash) (Hash, int64, error) {
	b.h.mu.RLock()
	defer b.h.mu.RUnlock()
	if err := b.usable(); err != nil {
		return Hash{}, 0, err
	}
	s := b.h.s
	buf := heads.Get().(*[PackMax + 1]byte)
	defer heads.Put(buf)
	first, ended, err := head(r, buf[:s.packMax+1])
	if err != nil {
		return Hash{}, 0, writer.NewError(opPut, s.dir.Name(), writer.NotCommitted, err)
	}
	if ended {
		sum := s.sum(first)
		if sum != stored && !b.has(sum, int64(len(first)), packsFolder) {
			err = b.pack(sum, first)
		}
		return sum, int64(len(first)), err
	}
	u, size, err := s.fillTemp(first, r, b.ended)
	if err != nil {
		return Hash{}, 0, err
	}
	if u.hash == stored || b.has(u.hash, size, u.hash.folder()) {
		discard(s.dir, u.name, u.f)
		return u.hash, size, nil
	}
	if b.ended != nil && b.ended() != nil { // what is stored may be intact
		discard(s.dir, u.name, u.f)
		return Hash{}, 0, b.ended()
	}
	return u.hash, size, b.add(u)
}

// has reports whether the content is in the Batch already, or intact in this folder of the
// store. In the second case it marks the folder for a sync unless its name is known to be
// durable: another process may have stored the content and not have synced the folder.
func (b *Batch) has(sum Hash, size int64, in folder) bool {
	b.mu.Lock()
	_, twice := b.seen[sum]
	b.mu.Unlock()
	if twice {
		return true
	}
	s := b.h.s
	suspect, durable := s.folders[in].suspect.Load(), false
	if in == packsFolder {
		b.look.Do(func() { _, _ = s.look() }) // after an error a content may be stored twice, no more
		_, p, err := s.fromPack(opPut, sum, func(p *pack) bool { return p.durable.Load() || !suspect })
		if err != nil {
			return false
		}
		durable = p.durable.Load()
	} else if suspect || s.verifyLoose(opPut, sum, size, b.ended) != nil {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.seen[sum] = struct{}{}
	b.folders[in] = b.folders[in] || !durable
	return true
}

// add adds the file of a large content to the Batch.
func (b *Batch) add(u unsynced) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, twice := b.seen[u.hash]; twice || b.done { // another goroutine was faster
		discard(b.h.s.dir, u.name, u.f)
		return b.err
	}
	b.seen[u.hash] = struct{}{}
	b.folders[u.hash.folder()] = true
	b.unsynced = append(b.unsynced, u)
	if len(b.unsynced) >= MaxUnsynced {
		b.sync()
	}
	return b.err
}

// pack adds a small content to the pack in progress.
func (b *Batch) pack(sum Hash, data []byte) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, twice := b.seen[sum]; twice || b.done || b.err != nil {
		return b.err
	}
	if b.packing == nil {
		if b.packing, b.err = b.h.s.newPack(); b.err != nil {
			return b.err
		}
	}
	b.seen[sum] = struct{}{}
	b.folders[packsFolder] = true
	err := b.packing.add(sum, data)
	if err == nil && len(b.packing.records) == b.h.s.objects {
		err = b.endPack()
	}
	if err != nil {
		b.err = writer.NewError(opPut, b.h.s.dir.Name(), writer.NotCommitted, err)
	}
	return b.err
}

// endPack completes the pack in progress, but does not sync it. The caller holds mu.
func (b *Batch) endPack() error {
	w := b.packing
	if w == nil {
		return nil
	}
	p, err := w.end()
	if err != nil {
		return err
	}
	b.packing = nil
	b.unsynced = append(b.unsynced, unsynced{temp{name: w.temp, pack: p}, w.f})
	return nil
}

func (b *Batch) usable() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err == nil && (b.done || b.h.fl == nil) {
		return &writer.Error{Op: opPut, Path: b.h.s.dir.Name(), Class: writer.ClassInvalid, Err: errors.New("the hold was released, or the batch is over")}
	}
	return b.err
}

// sync syncs and closes the open files. The caller holds mu.
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

// SyncAll syncs and closes files concurrently, each exactly once, and returns the first
// error.
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

// discard closes and removes a temporary file.
func discard(dir writer.FS, name string, f writer.File) {
	_ = f.Close()
	_ = dir.Remove(name)
}
