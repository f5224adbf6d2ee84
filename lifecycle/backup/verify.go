package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/lopen-dev/lopen/writer/blob"
)

// maxDamage bounds the damage that a report names.
const maxDamage = 100

// A Report is what Verify found of a snapshot.
type Report struct {
	Snapshot
	Damage []string // what is damaged or missing, the first hundred
	More   int      // how many more
}

func (r *Report) damage(err error) {
	if len(r.Damage) == maxDamage {
		r.More++
		return
	}
	r.Damage = append(r.Damage, err.Error())
}

// Verify reads everything that snapshots need and compares it with its hashes. Number 0 means
// all snapshots. What they share is read once. Damage is in the reports; the error is for what
// kept Verify from reading.
func (f *Folder) Verify(ctx context.Context, number uint64) ([]Report, error) {
	all, err := f.List()
	if err != nil {
		return nil, err
	}
	if number > 0 {
		s, err := f.Source(number)
		if err == nil {
			_ = s.Close() // nothing was written
		} else if len(all) == 0 {
			return nil, err
		}
		all = slices.DeleteFunc(all, func(s Snapshot) bool { return s.Number != number })
	}
	v := verifier{seen: map[blob.Hash]int64{}, bad: map[blob.Hash]error{}}
	var reports []Report
	for _, s := range slices.Backward(all) {
		r := Report{Snapshot: s}
		if err := v.snapshot(ctx, f, &r); err != nil {
			return reports, err
		}
		reports = append(reports, r)
	}
	slices.Reverse(reports)
	return reports, nil
}

// A verifier remembers what it has read.
type verifier struct {
	seen map[blob.Hash]int64 // sizes of objects that are whole
	bad  map[blob.Hash]error // and those that are not
}

func (v *verifier) snapshot(ctx context.Context, f *Folder, r *Report) error {
	if r.Err != nil {
		r.damage(r.Err)
		return nil
	}
	s, err := f.Source(r.Number)
	if err != nil {
		r.damage(err)
		return nil
	}
	defer s.Close()
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		e, err := s.entry()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			r.damage(s.fail(err))
			return nil
		}
		if err := v.content(s, &e); err != nil {
			r.damage(err)
		}
	}
}

// content reads the objects of an entry that were not read before.
func (v *verifier) content(s *Source, e *entry) error {
	if e.Name == "" {
		size, err := v.object(s, e.Hash)
		if err == nil && size != e.Size {
			err = fmt.Errorf("object %s has %d bytes, and the list says %d", e.Hash, size, e.Size)
		}
		return err
	}
	left, chunks := e.Size, newWalk(e.ref, s.read)
	for {
		h, more, err := chunks.next()
		if err == nil && !more && left == 0 {
			return nil
		}
		var size int64
		if err == nil && more {
			size, err = v.object(s, h)
		}
		if err == nil && (size == 0 || size != min(left, chunkSize)) {
			err = damaged(errors.New("its chunks have another size than the list says"))
		}
		if err != nil {
			return fmt.Errorf("%s: %w", e.Name, err)
		}
		left -= size
	}
}

func (v *verifier) object(s *Source, h blob.Hash) (int64, error) {
	if size, ok := v.seen[h]; ok {
		return size, nil
	}
	if err, ok := v.bad[h]; ok {
		return 0, err
	}
	r, err := s.open(h)
	var size int64
	if err == nil {
		size, err = io.Copy(io.Discard, r)
		_ = r.Close() // nothing was written
	}
	if err != nil {
		v.bad[h] = err
		return 0, err
	}
	v.seen[h] = size
	return size, nil
}
