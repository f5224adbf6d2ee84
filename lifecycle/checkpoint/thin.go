package checkpoint

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lopen-dev/lopen/writer/blob"
)

// Limits bound the checkpoints of a work tree. What rewinds moved away counts as an object.
type Limits struct {
	Bytes int64 // limit of the bytes that the objects take; 0 means no limit
	// Keep, given all entries, returns which of them stay: those that undo and the sessions
	// need. It is called again under the chain's lock, with the entries as they are then.
	Keep func(all []*Entry) func(*Entry) bool
	// Unfinished reports whether a session is not complete: entries of other sessions are
	// removed first.
	Unfinished func(session string) bool
}

// slack is what entries are removed down to below the bound, in bytes, so that the next
// checkpoints need not remove some again.
func (l Limits) slack() int64 { return l.Bytes / 8 }

// goal returns down to how many bytes entries are removed. floor is what the entries take that
// must stay. The others may take an eighth of the limit in any case: to remove them frees no
// more than that.
func (l Limits) goal(floor int64) int64 { return max(l.Bytes-l.slack(), floor+l.slack()) }

// Thinned is what Thin did.
type Thinned struct {
	Removed []*Entry
	Bytes   int64 // bytes of the remaining objects; an upper bound if nothing was removed
	Over    int64 // bytes above the limit that cannot be removed; 0 within the limit
}

// Thin removes, durably, entries while all objects together take more than the limit. The limit
// is one for all work trees: entries of their chains count and are removed alike. Imported chains
// do neither. It removes entries of complete sessions first. Of the others it removes first those
// that are neither the first one before nor the last one after a task, then the rest, and the
// first entry of each session last. Within each group it begins with the oldest. Pinned entries
// stay, and so do the newest two, the first one before each active task, and those of Keep.
//
// Thin removes entries until the objects take seven eighths of the limit. What must stay may take
// more than that: then it removes entries until the others take an eighth of the limit. It begins
// only when the objects take an eighth of the limit more than what it would leave. An entry whose
// turn came stays after all if it fits, because what it shares with entries that stay is not freed.
//
// It reads trees only if the objects may take more than the limit, and those of the entries that
// may be removed only if some have to be. The objects are removed by a later sweep.
func (s *Store) Thin(ctx context.Context, limits Limits) (Thinned, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if limits.Bytes <= 0 {
		return Thinned{}, nil
	}
	if s.objects < 0 {
		n, err := s.blobs.Usage()
		if err != nil {
			return Thinned{}, err
		}
		moved, err := MovedBytes(s.opts.Lopen)
		if err != nil {
			return Thinned{}, err
		}
		s.objects = n + moved
		s.grown.Store(0)
	}
	most := s.objects + s.grown.Load()
	if most <= limits.Bytes {
		return Thinned{Bytes: most}, nil
	}
	trees, err := s.worktrees()
	if err != nil {
		return Thinned{}, err
	}
	l, spares, err := s.weigh(trees, limits)
	if err != nil {
		return Thinned{}, err
	}
	out := Thinned{Bytes: most, Over: max(0, l.total-limits.Bytes)}
	goal := limits.goal(l.total)
	if most <= goal+limits.slack() {
		return out, nil
	}
	for _, e := range spares {
		if err := l.add(e.Entry); err != nil {
			return Thinned{}, err
		}
	}
	if l.total > goal+limits.slack() {
		gone := l.choose(spares, limits, goal)
		for _, t := range trees {
			removed, err := t.removeSpares(ctx, limits, l, gone[t])
			if out.Removed = append(out.Removed, removed...); err != nil {
				return out, err
			}
		}
	}
	out.Bytes, s.objects = l.total, l.total
	s.grown.Store(0)
	return out, nil
}

// weigh returns a ledger of the entries that must stay, and the others.
func (s *Store) weigh(trees []*Store, limits Limits) (*ledger, []spare, error) {
	var spares []spare
	var stay []*Entry
	for _, t := range trees {
		c, err := t.load()
		if err != nil {
			return nil, nil, err
		}
		some, rest := t.spares(c, limits)
		spares, stay = append(spares, some...), append(stay, rest...)
	}
	sizes, err := s.blobs.Sizes() // after the chains, so that it has what their entries name
	if err != nil {
		return nil, nil, err
	}
	moved, dir, err := movedNames(s.opts.Lopen)
	if dir != nil {
		err = errors.Join(err, dir.Close())
	}
	if err != nil {
		return nil, nil, err
	}
	for _, m := range moved {
		sizes[m.hash] += m.bytes
	}
	l := &ledger{tree: s.Tree(blob.Hash{}), sizes: sizes, known: map[node]int32{}}
	for _, e := range stay {
		if err := l.add(e); err != nil {
			return nil, nil, err
		}
	}
	return l, spares, nil
}

// worktrees returns the Stores of the chains of all work trees, this one first.
func (s *Store) worktrees() ([]*Store, error) {
	others, err := s.Others()
	if err != nil {
		return nil, err
	}
	return append([]*Store{s}, slices.DeleteFunc(others, (*Store).Imported)...), nil
}

// A spare is an entry that may be removed. Those of the lowest group go first, and of these the
// oldest.
type spare struct {
	of *Store
	*Entry
	marks marking   // of its chain
	since time.Time // not before that of an older entry of its chain, whatever the clock was
	group int       // see [marking.turn]; set by choose
}

// choose removes spares from the ledger until all entries take at most goal bytes, and returns
// their numbers in each chain. It adds those again that fit all the same, the last one first: an
// entry takes little if others that stay have most of its objects.
func (l *ledger) choose(spares []spare, limits Limits, goal int64) map[*Store]map[uint64]bool {
	for i := range spares {
		spares[i].group = spares[i].marks.turn(spares[i].Entry, limits)
	}
	slices.SortStableFunc(spares, func(a, b spare) int { return cmp.Or(cmp.Compare(a.group, b.group), a.since.Compare(b.since)) })
	n := 0
	for ; n < len(spares) && l.total > goal; n++ {
		l.release(spares[n].Entry)
	}
	gone := map[*Store]map[uint64]bool{}
	for _, e := range slices.Backward(spares[:n]) {
		if l.use(e.Entry); l.total <= goal {
			continue
		}
		l.release(e.Entry)
		if gone[e.of] == nil {
			gone[e.of] = map[uint64]bool{}
		}
		gone[e.of][e.Number] = true
	}
	return gone
}

// removeSpares removes entries that are no longer in the ledger. Those that must stay by now,
// because another process needs them, it adds again.
func (s *Store) removeSpares(ctx context.Context, limits Limits, l *ledger, gone map[uint64]bool) (removed []*Entry, err error) {
	if len(gone) == 0 {
		return nil, nil
	}
	err = s.locked(ctx, func(c *chain) (err error) {
		still := map[uint64]bool{}
		spares, stay := s.spares(c, limits)
		for _, e := range spares {
			still[e.Number] = gone[e.Number]
		}
		for _, e := range stay {
			if gone[e.Number] {
				l.use(e)
			}
		}
		removed, err = s.remove(c, fmt.Sprintf("%s%d bytes", thinnedWhy, limits.Bytes), func(e *Entry) bool { return still[e.Number] })
		return err
	})
	return removed, err
}

// A marking has the first and the last entries of sessions and tasks.
type marking struct {
	begin       map[string]uint64 // the first entry of a session
	first, last map[task]uint64   // the first entry before a task, and the last one after it
}

type task struct{ session, task string }

func markingOf(entries []*Entry) marking {
	m := marking{map[string]uint64{}, map[task]uint64{}, map[task]uint64{}}
	for _, e := range entries {
		m.begin[e.Session] = cmp.Or(m.begin[e.Session], e.Number)
		switch t := (task{e.Session, e.Task}); e.Reason {
		case BeforeTask:
			m.first[t] = cmp.Or(m.first[t], e.Number)
		case AfterTask:
			m.last[t] = e.Number
		}
	}
	return m
}

// turn returns the group of an entry. Entries of the lowest group are removed first.
func (m marking) turn(e *Entry, limits Limits) int {
	t := task{e.Session, e.Task}
	switch {
	case e.Session != "" && limits.Unfinished != nil && !limits.Unfinished(e.Session):
		return 0
	case m.first[t] != e.Number && m.last[t] != e.Number && m.begin[e.Session] != e.Number:
		return 1
	case m.begin[e.Session] != e.Number:
		return 2
	}
	return 3 // a rewind needs it to know what existed before the session's first task
}

// spares returns the entries of a chain that may be removed, and those that must stay.
func (s *Store) spares(c *chain, limits Limits) (list []spare, stay []*Entry) {
	all := slices.DeleteFunc(slices.Clone(c.entries), func(e *Entry) bool { return e.Removed != "" })
	m := markingOf(all)
	working := map[uint64]bool{}
	if e := c.newest(); e != nil {
		for _, a := range e.Active {
			working[a.Begun], working[m.first[task{a.Session, a.Task}]] = true, true
		}
	}
	keep := func(*Entry) bool { return false }
	if limits.Keep != nil {
		keep = limits.Keep(slices.Clone(c.entries))
	}
	var since time.Time
	newest := max(0, len(all)-2)
	for _, e := range all[:newest] {
		if e.At.After(since) {
			since = e.At
		}
		if !e.Pinned && !working[e.Number] && !keep(e) {
			list = append(list, spare{of: s, Entry: e, marks: m, since: since})
		} else {
			stay = append(stay, e)
		}
	}
	return list, append(stay, all[newest:]...)
}
