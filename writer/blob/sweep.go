package blob

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/codec"
	"github.com/lopen-dev/lopen/writer/envelope"
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
	writer.RecordOwner(s.dir, lockName, writer.OwnerOf(os.Getpid(), "sweep of blobs"))
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
		is := false
		for _, c := range codec.All {
			n, err := s.sweepFile(h.file(c))
			if err != nil {
				return s.failedAt(opSweep, h.file(c), h, writer.NotCommitted, err)
			}
			is = is || n >= 0
			swept.Bytes += max(n, 0)
		}
		if is {
			swept.Hashes = append(swept.Hashes, h)
		}
	}
	return nil
}

// sweepFile removes a file and returns its size; -1 if there is none.
func (s *Store) sweepFile(name string) (int64, error) {
	info, err := s.dir.Lstat(name)
	if err == nil && !info.Mode().IsRegular() {
		return -1, nil // it only has the name of a blob
	}
	if err == nil {
		err = writer.Retry(func() error { return s.dir.Remove(name) })
	}
	if errors.Is(err, fs.ErrNotExist) {
		return -1, nil
	}
	if err != nil {
		return -1, err
	}
	return info.Size(), nil
}

// A packSweep sweeps the packs, under the lock.
type packSweep struct {
	s      *Store
	marked map[Hash]struct{}
	swept  *Swept

	retained []index // indexes of the packs that stay
	damaged  []*pack // packs whose index is damaged
}

// A part is a pack with the bytes that are needed of it.
type part struct {
	p    *pack
	x    index
	live int64 // including the records of the contents
}

func (c *packSweep) run() error {
	if _, err := c.s.look(); err != nil {
		return err
	}
	packs, err := c.s.known()
	if err != nil {
		return err
	}
	defer c.settle()
	var sparse []part
	for _, p := range packs {
		at, perr := c.part(p)
		switch {
		case errors.Is(perr, envelope.ErrCorrupt):
			c.damaged = append(c.damaged, p)
		case errors.Is(perr, envelope.ErrFutureVersion), errors.Is(perr, fs.ErrNotExist):
			// The pack belongs to a newer version, or a person removed it.
		case perr != nil:
			err = cmp.Or(err, perr) // the other packs are swept all the same
		case at.live == 0:
			if err := c.gone(at, 0); err != nil {
				return err
			}
		case at.live < p.bytes/2:
			sparse = append(sparse, at)
		default:
			c.retained = append(c.retained, at.x)
		}
	}
	slices.SortFunc(sparse, func(a, b part) int { return cmp.Compare(a.live, b.live) })
	for _, at := range sparse {
		perr := c.rewrite(at)
		if perr == nil {
			continue
		}
		c.retained = append(c.retained, at.x)
		if writer.ClassOf(perr) != writer.ClassNoSpace && !errors.Is(perr, envelope.ErrCorrupt) {
			err = cmp.Or(err, perr)
		}
	}
	return cmp.Or(err, c.removeDamaged())
}

// part adds up what is needed of a pack.
func (c *packSweep) part(p *pack) (part, error) {
	x, err := c.s.index(opSweep, p)
	if err != nil {
		return part{}, err
	}
	at := part{p: p, x: x}
	for i := range x.len() {
		if r := x.at(i); c.needs(r.hash()) {
			at.live += int64(r.size() + recordSize)
		}
	}
	return at, nil
}

func (c *packSweep) needs(h Hash) bool {
	_, ok := c.marked[h]
	return ok
}

// gone removes a pack and adds its contents that are not needed to Swept. A pack of so many
// bytes has the others.
func (c *packSweep) gone(at part, made int64) error {
	if err := c.unlink(at.p); err != nil {
		return err
	}
	for i := range at.x.len() {
		if h := at.x.at(i).hash(); !c.needs(h) {
			c.swept.Hashes = append(c.swept.Hashes, h)
		}
	}
	c.swept.Bytes += at.p.bytes - made
	return nil
}

func (c *packSweep) unlink(p *pack) error {
	err := writer.Retry(func() error { return c.s.dir.Remove(p.path()) })
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return c.s.packError(opSweep, p, err)
	}
	return nil
}

// rewrite makes a durable pack of the needed contents of another one, and then removes that
// one. It fails when there is no room, or when a needed content is damaged and the store has
// no other copy; then the old pack stays.
func (c *packSweep) rewrite(at part) error {
	made, err := c.copyPack(at)
	if err != nil {
		return err
	}
	c.retained = append(c.retained, made.index)
	return c.gone(at, made.bytes)
}

// copyPack makes a durable pack of the marked contents of another one. It leaves out damaged
// contents of which another pack has a copy. If that leaves none, it returns an empty pack
// and makes no file.
func (c *packSweep) copyPack(at part) (made *pack, err error) {
	s := c.s
	f, _, err := s.openPack(opSweep, at.p)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	w, err := s.newPack()
	if err != nil {
		return nil, err
	}
	written := false
	defer func() {
		if !written {
			w.discard()
		}
	}()
	for i := range at.x.len() {
		r := at.x.at(i)
		if !c.needs(r.hash()) {
			continue
		}
		data, err := s.readObject(f, r)
		if errors.Is(err, envelope.ErrCorrupt) {
			if _, _, elsewhere := s.fromPack(opSweep, r.hash(), func(p *pack) bool { return p != at.p }); elsewhere == nil {
				continue // another pack has an intact copy
			}
		}
		if err == nil {
			err = w.add(r.hash(), data)
		}
		if err != nil {
			return nil, s.failedAt(opSweep, at.p.path(), r.hash(), writer.NotCommitted, err)
		}
	}
	if len(w.records) == 0 {
		return &pack{}, nil
	}
	made, err = w.end()
	if err != nil {
		return nil, s.packError(opSweep, at.p, err)
	}
	written = true
	if err := SyncAll([]writer.File{w.f}); err != nil {
		_ = s.dir.Remove(w.temp)
		return nil, s.packError(opSweep, at.p, err)
	}
	if err := s.rename(temp{name: w.temp, pack: made}); err != nil {
		return nil, err
	}
	if err := s.syncFolder(packsFolder); err != nil {
		_ = s.dir.Remove(made.path()) // the old pack stays
		return nil, err
	}
	s.add(made)
	return made, nil
}

// removeDamaged removes the packs with a damaged index, unless a marked blob is missing that
// may be in one of them.
func (c *packSweep) removeDamaged() error {
	if len(c.damaged) == 0 {
		return nil
	}
	for h := range c.marked {
		if _, err := c.s.Size(h); err != nil {
			return nil //nolint:nilerr // h may be in a damaged pack, so they stay
		}
	}
	for _, p := range c.damaged {
		if err := c.unlink(p); err != nil {
			return err
		}
		c.swept.Bytes += p.bytes
	}
	return nil
}

// settle takes the hashes that a remaining pack has off Swept, and sorts the others.
func (c *packSweep) settle() {
	c.swept.Hashes = slices.DeleteFunc(c.swept.Hashes, func(h Hash) bool {
		return slices.ContainsFunc(c.retained, func(x index) bool { return x.find(h) != nil })
	})
	slices.SortFunc(c.swept.Hashes, func(a, b Hash) int { return bytes.Compare(a[:], b[:]) })
	c.swept.Hashes = slices.Compact(c.swept.Hashes)
}
