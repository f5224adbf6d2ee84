package checkpoint

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/lopen-dev/lopen/writer/blob"
)

// Limits bound the checkpoints of a work tree.
type Limits struct {
	Bytes int64 // limit of the bytes that the objects take; 0 means no limit
	// Keep, given all entries, returns which of them stay: those that undo and the sessions
	// need. It is called again under the chain's lock, with the entries as they are then.
	Keep func(all []*Entry) func(*Entry) bool
	// Unfinished reports whether a session is not complete: entries of other sessions are
	// removed first.
	Unfinished func(session string) bool
}

// Thinned is what Thin did.
type Thinned struct {
	Removed []*Entry
	Bytes   int64 // bytes of the remaining objects; an upper bound if nothing was removed
	Over    int64 // bytes above the limit that cannot be removed; 0 within the limit
}

// Thin removes, durably, entries until the rest is within the limit, which is one for all work
// trees: entries of their chains count and are removed alike. Imported chains do neither. It removes
// entries of complete sessions first. Of the others it removes first those that are neither the first one
// before nor the last one after a task, then the rest, and the first entry of each session
// last. Within each group it begins with the oldest. Pinned entries stay, and so do the newest
// two, the first one before each active task, and those of Keep.
//
// It reads trees only if the objects may take more than the limit. It removes entries until the
// objects take seven eighths of the limit, so that the next checkpoints need not do so again.
// The objects are removed by a later sweep.
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
		s.objects = n
		s.grown.Store(0)
	}
	if most := s.objects + s.grown.Load(); most <= limits.Bytes {
		return Thinned{Bytes: most}, nil
	}
	trees, err := s.worktrees()
	if err != nil {
		return Thinned{}, err
	}
	l := &ledger{tree: s.Tree(blob.Hash{}), uses: map[node]use{}}
	var list []spare
	for _, t := range trees {
		c, err := t.load()
		if err == nil {
			err = l.keep(c.entries, func(e *Entry) bool { return e.Removed == "" })
		}
		if err != nil {
			return Thinned{}, err
		}
		list = append(list, t.spares(c, limits)...)
	}
	gone := l.remove(list, limits.Bytes)
	var out Thinned
	for _, t := range trees {
		if gone[t] == nil {
			continue
		}
		removed, err := t.removeSpares(ctx, limits, gone[t])
		if out.Removed = append(out.Removed, removed...); err != nil {
			return out, err
		}
		for _, e := range removed {
			delete(gone[t], e.Number)
		}
		c, err := t.load()
		if err == nil {
			err = l.keep(c.entries, func(e *Entry) bool { return gone[t][e.Number] }) // those that stay
		}
		if err != nil {
			return out, err
		}
	}
	out.Bytes, out.Over = l.total, max(0, l.total-limits.Bytes)
	s.objects = l.total
	s.grown.Store(0)
	return out, nil
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
	group int
	since time.Time // not before that of an older entry of its chain, whatever the clock was
}

// removeSpares removes entries that still may be removed: another process may need some by now.
func (s *Store) removeSpares(ctx context.Context, limits Limits, gone map[uint64]bool) (removed []*Entry, err error) {
	err = s.locked(ctx, func(c *chain) (err error) {
		still := map[uint64]bool{}
		for _, e := range s.spares(c, limits) {
			still[e.Number] = gone[e.Number]
		}
		removed, err = s.remove(c, fmt.Sprintf("checkpoints took more than %d bytes", limits.Bytes), func(e *Entry) bool { return still[e.Number] })
		return err
	})
	return removed, err
}

// remove releases entries until the rest takes at most seven eighths of the limit, if it took
// more than the limit. It returns their numbers in each chain.
func (l *ledger) remove(list []spare, limit int64) map[*Store]map[uint64]bool {
	slices.SortStableFunc(list, func(a, b spare) int { return cmp.Or(cmp.Compare(a.group, b.group), a.since.Compare(b.since)) })
	gone, goal := map[*Store]map[uint64]bool{}, limit
	for _, e := range list {
		if l.total <= goal {
			break
		}
		goal = limit - limit/8
		if gone[e.of] == nil {
			gone[e.of] = map[uint64]bool{}
		}
		gone[e.of][e.Number] = true
		for _, n := range e.nodes() {
			l.release(n)
		}
	}
	return gone
}

// keep adds the entries for which which returns true.
func (l *ledger) keep(entries []*Entry, which func(*Entry) bool) error {
	for _, e := range entries {
		if !which(e) {
			continue
		}
		for _, n := range e.nodes() {
			if err := l.add(n); err != nil {
				return err
			}
		}
	}
	return nil
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
	case limits.Unfinished != nil && !limits.Unfinished(e.Session):
		return 0
	case m.first[t] != e.Number && m.last[t] != e.Number && m.begin[e.Session] != e.Number:
		return 1
	case m.begin[e.Session] != e.Number:
		return 2
	}
	return 3 // a rewind needs it to know what existed before the session's first task
}

// spares returns the entries of a chain that may be removed.
func (s *Store) spares(c *chain, limits Limits) []spare {
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
	var list []spare
	var since time.Time
	for _, e := range all[:max(0, len(all)-2)] {
		if e.At.After(since) {
			since = e.At
		}
		if !e.Pinned && !working[e.Number] && !keep(e) {
			list = append(list, spare{s, e, m.turn(e, limits), since})
		}
	}
	return list
}

// A ledger adds up the sizes of objects, each once.
type ledger struct {
	tree  *Tree
	uses  map[node]use
	total int64
}

type use struct {
	by    int   // number of entries and objects that name it
	bytes int64 // that it takes on the disk
}

// add counts a use of an object and, for the first use, the objects that it names. A lost object
// has no size.
func (l *ledger) add(n node) error {
	u, there := l.uses[n]
	u.by++
	if there {
		l.uses[n] = u
		return nil
	}
	var err error
	if u.bytes, err = l.tree.blobs.Taken(n.hash); err != nil && !lost(err) {
		return err
	}
	l.uses[n] = u
	l.total += u.bytes
	below, err := l.tree.below(n)
	if err != nil && !lost(err) {
		return err
	}
	for _, sub := range below {
		if err := l.add(sub); err != nil {
			return err
		}
	}
	return nil
}

// release removes one use of an object.
func (l *ledger) release(n node) {
	u := l.uses[n]
	if u.by--; u.by > 0 {
		l.uses[n] = u
		return
	}
	delete(l.uses, n)
	l.total -= u.bytes
	below, _ := l.tree.below(n) // the same objects as in add
	for _, sub := range below {
		l.release(sub)
	}
}
