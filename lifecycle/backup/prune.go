package backup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/blob"
)

// Retention limits the snapshots; Prune removes the others. 0 means no limit. The newest
// snapshot always stays.
type Retention struct {
	Backups int           // number of snapshots that stay
	Age     time.Duration // age up to which a snapshot stays
	Bytes   int64         // bytes of contents that all snapshots together may need; the oldest go first
}

// A Gone is a snapshot that Prune removes, or has removed.
type Gone struct {
	Snapshot
	Why string
}

// Prune removes the snapshots beyond the limits, the oldest first, and then the objects that no
// snapshot needs. It returns what it removed and how many bytes that freed. With dryRun it only
// returns what it would remove. A snapshot that cannot be read stays, and nothing that it may
// need can be told: then no object is removed.
func (f *Folder) Prune(ctx context.Context, r Retention, dryRun bool) (gone []Gone, freed int64, err error) {
	if !dryRun {
		lock, err := lockOf(f.dir, "pruning backups")
		if err != nil {
			return nil, 0, err
		}
		defer func() { _ = lock.Unlock() }()
	}
	all, err := f.List()
	if err != nil {
		return nil, 0, err
	}
	goes, err := f.beyond(r, all)
	if err != nil || dryRun {
		return goes, 0, err
	}
	for _, s := range goes {
		if err := ctx.Err(); err != nil {
			return gone, 0, err
		}
		name := snapshotsDir + "/" + snapshotName(s.Number)
		if err := writer.Retry(func() error { return f.files.Remove(name) }); err != nil {
			return gone, 0, writer.NewError("remove backup", f.path(name), writer.NotCommitted, err)
		}
		gone = append(gone, s)
	}
	if len(all) == 0 {
		return nil, 0, nil
	}
	// A power cut must not bring back a snapshot whose objects are gone.
	if err := f.files.SyncDir(snapshotsDir); err != nil {
		return gone, 0, writer.NewError("remove backups in", f.path(snapshotsDir), writer.NotDurable, err)
	}
	freed, err = f.sweep()
	return gone, freed, err
}

// beyond returns the snapshots beyond the limits, the oldest first. all are in ascending order.
func (f *Folder) beyond(r Retention, all []Snapshot) (goes []Gone, err error) {
	whole := slices.DeleteFunc(slices.Clone(all), func(s Snapshot) bool { return s.Err != nil })
	m := marker{f: f, sized: r.Bytes > 0}
	now := f.agreed(whole)
	for i, s := range slices.Backward(whole) {
		newer := len(whole) - 1 - i
		if r.Bytes > 0 {
			if err := m.mark(s.Number); err != nil {
				return nil, err
			}
		}
		var why string
		switch {
		case newer == 0:
			continue
		case r.Backups > 0 && newer >= r.Backups:
			why = fmt.Sprintf("more than %d backups", r.Backups)
		case r.Age > 0 && now.Sub(s.At) > r.Age:
			why = fmt.Sprintf("more than %d days old", int(r.Age.Hours()/24))
		case r.Bytes > 0 && m.bytes > r.Bytes:
			why = fmt.Sprintf("backups need more than %d bytes", r.Bytes)
		default:
			continue
		}
		goes = append(goes, Gone{s, why})
	}
	slices.Reverse(goes)
	return goes, nil
}

// believed is how far a clock may be ahead of what the backups say, and still counts: two days, as
// the newest backup but one is of yesterday where one is made each day.
const believed = 48 * time.Hour

// agreed is the time from which the age of backups counts: this clock's, but hardly after the newest
// backup but one. The newest one may be of this command: no backup goes on the word of one clock. One
// that a wrong clock dated ahead does not count.
func (f *Folder) agreed(all []Snapshot) time.Time {
	now := f.now()
	var known []time.Time
	for _, s := range all {
		if !s.At.After(now) {
			known = append(known, s.At)
		}
	}
	if len(known) < 2 {
		return time.Time{}
	}
	slices.SortFunc(known, time.Time.Compare)
	if at := known[len(known)-2].Add(believed); at.Before(now) {
		return at
	}
	return now
}

// sweep removes the objects that no snapshot needs. The caller has the lock.
func (f *Folder) sweep() (freed int64, err error) {
	store, err := f.fresh()
	if err != nil {
		return 0, err
	}
	swept, err := store.Sweep(func() (map[blob.Hash]struct{}, error) {
		all, err := f.List()
		m := marker{f: f}
		for _, s := range all {
			if err = errors.Join(err, s.Err); err == nil {
				err = m.mark(s.Number)
			}
		}
		if err != nil {
			err = fmt.Errorf("%w; if this backup is not needed, remove its file in %s", err, f.path(snapshotsDir))
		}
		return m.needed, err
	})
	return swept.Bytes, err
}

// A marker collects the objects that snapshots need. What two snapshots share is read once.
type marker struct {
	f      *Folder
	sized  bool // add up bytes
	needed map[blob.Hash]struct{}
	read   map[ref]bool // nodes by kind: the size is 1 in the list of entries, else 0
	bytes  int64
	store  *blob.Store
}

// mark adds the objects of a snapshot.
func (m *marker) mark(number uint64) error {
	if m.needed == nil {
		m.needed, m.read = map[blob.Hash]struct{}{}, map[ref]bool{}
	}
	file, err := m.f.snapshot(number)
	if err != nil {
		return err
	}
	if m.store, err = m.f.objects(); err != nil {
		return err
	}
	err = m.each(file.Header, 0, nil)
	if err == nil {
		err = m.each(file.Entries, 1, m.lines)
	}
	if err != nil {
		return fmt.Errorf("backup %d: %w", number, err)
	}
	return nil
}

// each adds the nodes and the objects of a ref, and calls object with each object that it did
// not see in a sequence of this kind before.
func (m *marker) each(at ref, kind int64, object func(blob.Hash) error) error {
	w := newWalk(at, func(h blob.Hash) ([]byte, error) {
		if err := m.add(h); err != nil {
			return nil, err
		}
		return m.store.Read(h, chunkSize)
	})
	first := func(h blob.Hash, depth int) bool {
		key := ref{h, depth, kind}
		seen := m.read[key]
		m.read[key] = true
		return !seen
	}
	w.enter = func(node ref) bool { return first(node.Hash, node.Depth) }
	for {
		h, more, err := w.next()
		if err != nil || !more {
			return err
		}
		if err := m.add(h); err != nil {
			return err
		}
		if object != nil && first(h, 0) {
			if err := object(h); err != nil {
				return err
			}
		}
	}
}

// lines adds what the entries of an object of the list need.
func (m *marker) lines(h blob.Hash) error {
	lines, err := m.store.Read(h, chunkSize)
	var e entry
	for err == nil && len(lines) > 0 {
		if lines, err = e.decode(lines); err != nil {
			break
		}
		if e.Name == "" {
			err = m.add(e.Hash)
		} else {
			err = m.each(e.ref, 0, nil)
		}
	}
	return err
}

func (m *marker) add(h blob.Hash) error {
	if _, seen := m.needed[h]; seen {
		return nil
	}
	m.needed[h] = struct{}{}
	if !m.sized {
		return nil
	}
	size, err := m.store.Size(h)
	m.bytes += size
	return err
}
