package checkpoint

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/lopen-dev/lopen/writer/blob"
)

// Limits bound the checkpoints of a work tree.
type Limits struct {
	Bytes int64 // that the objects may take on the disk; 0 is no limit
	// Keep names, of all entries, those that stay: what undo needs, and what sessions last
	// knew. It is asked again under the chain's lock, of the entries as they are then.
	Keep func(all []*Entry) func(*Entry) bool
	// Unfinished says that a session is not complete: entries of others go first.
	Unfinished func(session string) bool
}

// Thinned is what Thin did.
type Thinned struct {
	Removed []*Entry
	Bytes   int64 // that the objects of what is left take, or at most take where nothing was removed
	Over    int64 // bytes above the limit that what must stay takes; 0 within it
}

// Thin removes durably what the limit does not keep: first entries of sessions that are
// complete, then of the others what is neither the first before nor the last after of a
// task, then the rest, and their first ones at last; of each the oldest first. Pinned entries stay, the newest two, the
// first before of each task in progress, and what Keep names.
//
// It reads trees only where the objects may take more than the limit, and removes until
// they take seven eighths of it, so that not every checkpoint has to. Objects go with the
// sweep that the caller makes.
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
	c, err := s.load()
	if err != nil {
		return Thinned{}, err
	}
	l, err := s.ledger(c)
	if err != nil {
		return Thinned{}, err
	}
	gone := l.remove(c.expendable(limits), limits.Bytes)
	var out Thinned
	if len(gone) > 0 {
		err = s.locked(ctx, func(c *chain) (err error) {
			why := fmt.Sprintf("checkpoints took more than %d bytes", limits.Bytes)
			still := map[uint64]bool{} // others may have gone on meanwhile
			for _, e := range c.expendable(limits) {
				still[e.Number] = gone[e.Number]
			}
			out.Removed, err = s.remove(c, why, func(e *Entry) bool { return still[e.Number] })
			return err
		})
		if err != nil {
			return Thinned{}, err
		}
	}
	for _, e := range out.Removed {
		delete(gone, e.Number)
	}
	if err := l.keep(c.entries, func(e *Entry) bool { return gone[e.Number] }); err != nil { // they stay after all
		return out, err
	}
	out.Bytes, out.Over = l.total, max(0, l.total-limits.Bytes)
	s.objects = l.total
	s.grown.Store(0)
	return out, nil
}

// remove takes entries out until what is left takes no more than a limit, and then some, so
// that there is room for others. It returns the numbers of those that it took out.
func (l *ledger) remove(entries []*Entry, limit int64) map[uint64]bool {
	gone, goal := map[uint64]bool{}, limit
	for _, e := range entries {
		if l.total <= goal {
			break
		}
		goal = limit - limit/8
		gone[e.Number] = true
		for _, n := range e.nodes() {
			l.release(n)
		}
	}
	return gone
}

// keep takes those entries in that which wants.
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

// A marking says which entries of a chain begin and end something.
type marking struct {
	begin       map[string]uint64 // the first one of a session
	first, last map[task]uint64   // the first before, the last after
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

// turn is when an entry goes: those of the lowest go first.
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
	return 3 // a rewind asks it what was there before the session's first task
}

// expendable are the entries that may be removed, in the order in which they go.
func (c *chain) expendable(limits Limits) []*Entry {
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
	var list []*Entry
	for _, e := range all[:max(0, len(all)-2)] {
		if !e.Pinned && !working[e.Number] && !keep(e) {
			list = append(list, e)
		}
	}
	slices.SortStableFunc(list, func(a, b *Entry) int { return cmp.Compare(m.turn(a, limits), m.turn(b, limits)) })
	return list
}

// A ledger counts what objects take, each once.
type ledger struct {
	tree  *Tree
	uses  map[node]use
	total int64
}

type use struct {
	by    int   // how many entries and objects name it
	bytes int64 // of its content
}

// ledger is that of the entries that were not removed.
func (s *Store) ledger(c *chain) (*ledger, error) {
	l := &ledger{tree: s.Tree(blob.Hash{}), uses: map[node]use{}}
	return l, l.keep(c.entries, func(e *Entry) bool { return e.Removed == "" })
}

// add counts a use of an object, and at the first one what it names. One that is lost
// takes nothing.
func (l *ledger) add(n node) error {
	u, there := l.uses[n]
	u.by++
	if there {
		l.uses[n] = u
		return nil
	}
	var err error
	if u.bytes, err = l.tree.blobs.Size(n.hash); err != nil && !lost(err) {
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

// release takes one use of an object back.
func (l *ledger) release(n node) {
	u := l.uses[n]
	if u.by--; u.by > 0 {
		l.uses[n] = u
		return
	}
	delete(l.uses, n)
	l.total -= u.bytes
	below, _ := l.tree.below(n) // as it was added
	for _, sub := range below {
		l.release(sub)
	}
}
