package blob

import (
	"bytes"
	"errors"
	"io"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/lopen-dev/lopen/writer"
)

const (
	// opPut is what errors of a Batch say was being done.
	opPut = "store blob"
	// MaxUnsynced bounds the files that are open at once because they are not synced
	// yet.
	MaxUnsynced = 64
	// syncers is how many syncs are asked for at once. A journalling file system
	// commits what waits together: eight at a time cost little more than one.
	syncers = 8
)

// A Batch stores many contents for the price of few waits. Those of up to [PackMax]
// bytes go into one pack; each larger one is a file of its own. The files are written as
// the contents come, synced side by side, renamed together, and each folder is
// synced once. Nothing of it is durable, nor under its name, before
// [Batch.Commit] returns nil. Make one with [Hold.Batch].
type Batch struct {
	h    *Hold
	look sync.Once // at the packs: those that are there stay while the Hold is out

	mu       sync.Mutex
	seen     map[Hash]struct{}     // Guarded by mu: in the Batch, or whole in the store.
	folders  [packsFolder + 1]bool // Guarded by mu: to make and to sync at Commit.
	packing  *packWriter           // Guarded by mu: takes contents; nil before the first.
	unsynced []unsynced            // Guarded by mu.
	synced   []temp                // Guarded by mu: closed, waiting for their names.
	err      error                 // Guarded by mu: sticky.
	done     bool                  // Guarded by mu.
}

// A temp is a complete file that waits for its name.
type temp struct {
	name string
	hash Hash  // of the content
	pack *pack // nil for a single content
}

type unsynced struct {
	temp
	f writer.File
}

// Batch begins a Batch. One that is not committed must be discarded.
func (h *Hold) Batch() *Batch { return &Batch{h: h, seen: map[Hash]struct{}{}} }

// Put stores what r has, to its end, and returns the hash and the number of
// bytes; the content is durable when [Batch.Commit] has returned nil. Content that is
// there is read to see that it is whole; what is damaged is stored anew. Put needs the
// memory of one buffer, whatever the size. stored, if not zero, is a hash that a durable
// manifest names: the caller vouches for it, and a content that has it costs no more
// than the reading. Any goroutine may call Put, until Commit. An error of r has its own
// class, is wrapped and stores nothing. After another one the Batch cannot be committed
// any more.
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
		if sum != stored && !b.has(sum, packsFolder) {
			err = b.pack(sum, first)
		}
		return sum, int64(len(first)), err
	}
	name, f, sum, size, err := s.fillTemp(io.MultiReader(bytes.NewReader(first), r))
	if err != nil {
		return Hash{}, 0, err
	}
	if sum == stored || b.has(sum, sum.folder()) {
		discard(s.dir, name, f)
		return sum, size, nil
	}
	return sum, size, b.add(unsynced{temp{name: name, hash: sum}, f})
}

// has says whether a content that belongs into a folder needs no storing, and notes
// whether the folder is to be synced: who stored it may not have come to that.
func (b *Batch) has(sum Hash, in folder) bool {
	b.mu.Lock()
	_, twice := b.seen[sum]
	b.mu.Unlock()
	if twice {
		return true
	}
	s := b.h.s
	suspect, durable := s.folders[in].suspect.Load(), false
	if in == packsFolder {
		b.look.Do(func() { _, _ = s.look() }) // without it something may be stored twice, no more
		_, p, err := s.fromPack(opPut, sum, func(p *pack) bool { return p.durable.Load() || !suspect })
		if err != nil {
			return false
		}
		durable = p.durable.Load()
	} else if suspect || s.verifyLoose(opPut, sum) != nil {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.seen[sum] = struct{}{}
	b.folders[in] = b.folders[in] || !durable
	return true
}

// add takes a file of its own of a content.
func (b *Batch) add(u unsynced) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, twice := b.seen[u.hash]; twice || b.done { // by another goroutine, since
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

// pack takes a content into the pack.
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

// endPack completes the pack but for its sync. The caller holds mu.
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

// discard closes and removes a file that is not needed.
func discard(dir writer.FS, name string, f writer.File) {
	_ = f.Close()
	_ = dir.Remove(name)
}
