package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"slices"

	"github.com/lopen-dev/lopen/cache/files"
	"github.com/lopen-dev/lopen/writer"
)

// A history has for each path that changed the newest of its changes.
//
// The changes of a path are a list that grows at its head. What a rewind brings back has
// the owners that it had at the rewind's target: a search for owners continues from there.
// So what happened to a path between two moments are the changes that lead to one of them
// and not to the other.
type history map[string]*change

// A change is what happened to a path between two entries.
type change struct {
	span
	at        *Entry // at the end of the interval: it has what came of the change
	before    *change
	uncovered bool    // it made nothing, but showed what had been ignored
	rewind    *Entry  // an entry of the rewind that made it: the span is what need not have been that
	then      *change // of a rewind: the newest change at its target
}

// A span is who was at work in a time.
type span struct {
	who    []Active
	nobody bool // there was a time without a task
	doubt  bool // several at once, or one that was cut off
}

func (x *span) quiet() bool { return len(x.who) == 0 && !x.nobody && !x.doubt }

// made is what led to a value before a change.
func (c *change) made() *change {
	if c.rewind != nil {
		return c.then
	}
	return c.before
}

// settled is the newest change that no rewind made of what led to a value.
func (c *change) settled() *change {
	for c != nil && c.rewind != nil {
		c = c.then
	}
	return c
}

// newest is the newest change of a path but for rewinds that brought back what it was in
// had, which is nil where that is not known.
func (h history) newest(had history, path string) *change {
	c := h[path]
	for had != nil && c != had[path] && c != nil && c.rewind != nil && c.quiet() {
		c = c.before
	}
	if had != nil && c == had[path] && c.settled() == h[path].settled() {
		return c
	}
	return h[path]
}

// since are the changes that made what a path is here and not what it was then, the
// newest first. What a rewind did says nothing where own says that it is the session's, and
// is somebody else's change otherwise, unless rewinds brought back what the session had.
// undone says that since then nothing but the session's rewinds touched it.
func (h history) since(then, had history, path string, own func(*Entry) bool) (list []*change, undone bool) {
	known := map[*change]bool{}
	for c := then[path]; c != nil; c = c.made() {
		known[c] = true
	}
	for c := h.newest(had, path); c != nil; c = c.made() {
		if !known[c] && !(c.quiet() && (c.rewind == nil || own(c.rewind))) {
			list = append(list, c)
		}
	}
	undone = true
	for c := h[path]; c != then[path] && undone; c = c.before {
		undone = c.rewind != nil && c.quiet() && own(c.rewind)
	}
	return list, undone
}

// add adds the interval that an entry ends.
func (x *span) add(e *Entry, cut map[Active]bool) {
	x.nobody = x.nobody || len(e.By) == 0
	x.doubt = x.doubt || e.Contested()
	for _, a := range e.By {
		x.doubt = x.doubt || cut[a]
		if !slices.Contains(x.who, a) {
			x.who = append(x.who, a)
		}
	}
}

// A historian goes through the chain.
type historian struct {
	s       *Store
	entries []*Entry // up to the one that the history is wanted of
	tree    *Tree    // of the last one
	rewinds []rewinding
	lost    map[*Entry]bool
	cut     map[Active]bool // tasks that were cut off, nobody knows when

	now  history
	then map[uint64]history // at the targets of rewinds, and at those wanted
}

// histories are those at the target, at the entry of the number own, nil where that is not
// known, and at the last of the entries, which has the tree.
func (s *Store) histories(ctx context.Context, entries []*Entry, target *Entry, own uint64, tree *Tree) (then, had, now history, err error) {
	h := historian{s: s, entries: entries, tree: tree, rewinds: rewindings(entries), lost: map[*Entry]bool{}, cut: map[Active]bool{}}
	for _, e := range entries {
		for _, a := range e.By {
			if e.Cut && !slices.Contains(e.Active, a) {
				h.cut[a] = true
			}
		}
	}
	last := entries[len(entries)-1]
	for {
		damaged, err := h.walk(ctx, target.Number, own)
		if err == nil {
			return h.then[target.Number], h.then[own], h.now, nil
		}
		if damaged == nil || damaged.Number == target.Number || damaged == last {
			return nil, nil, nil, err
		}
		h.lost[damaged] = true
	}
}

// walk makes the histories. An error that is one entry's fault names it.
func (h *historian) walk(ctx context.Context, target, own uint64) (*Entry, error) {
	h.now, h.then = history{}, map[uint64]history{target: nil, own: nil}
	start := target
	for _, w := range slices.Backward(h.rewinds) {
		if w.end >= start && h.has(w.by) {
			start = min(start, w.by.Target)
			h.then[w.by.Target] = nil
		}
	}
	from := slices.IndexFunc(h.entries, func(e *Entry) bool { return e.Number >= start })
	var seen *Entry    // the newest whose tree can be read
	var since []*Entry // that one, with other files: that can be seen of removed ones as well
	for i, e := range h.entries[from:] {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("plan a rewind: %w", context.Cause(ctx))
		}
		if seen != nil && e.Root != h.entries[from+i-1].Root {
			since = append(since, e)
		}
		if !h.has(e) {
			continue
		}
		if seen != nil {
			if err := h.step(seen, e, since); err != nil {
				return h.blame(seen, e, err), err
			}
		}
		seen, since = e, nil
		if _, ok := h.then[e.Number]; ok {
			h.then[e.Number] = maps.Clone(h.now)
		}
	}
	return nil, nil
}

func (h *historian) has(e *Entry) bool { return e.Removed == "" && !h.lost[e] }

func (h *historian) treeOf(e *Entry) *Tree {
	if e == h.entries[len(h.entries)-1] {
		return h.tree
	}
	return h.s.Tree(e.Root)
}

// span is who was at work in the intervals that end with some entries, up to one.
func (h *historian) span(ends []*Entry, until uint64) (x span) {
	for _, e := range ends {
		if e.Number <= until {
			x.add(e, h.cut)
		}
	}
	return x
}

// during are the rewindings that the newest interval before an entry is in, and whose
// target's history is known.
func (h *historian) during(e *Entry) []rewinding {
	return slices.DeleteFunc(slices.Clone(h.rewinds), func(w rewinding) bool {
		return w.begin >= e.Number || w.end < e.Number || h.then[w.by.Target] == nil
	})
}

// step adds what changed from one entry to a later one, in the intervals that end with
// some entries.
func (h *historian) step(a, b *Entry, ends []*Entry) error {
	all, rewinds := h.span(ends, b.Number), h.during(b)
	for i, w := range rewinds {
		rewinds[i].back = h.treeOf(h.byNumber(w.by.Target))
	}
	return paths(h.treeOf(a), h.treeOf(b), func(path string, old, next *files.Fingerprint) error {
		for _, w := range rewinds {
			f, known, err := w.back.Find(path)
			if err != nil {
				return err
			}
			if known && same(f, next) { // the owner comes back with the value
				h.now[path] = &change{span: h.span(ends, w.begin), at: b, before: h.now[path], rewind: w.by, then: h.then[w.by.Target][path]}
				return nil
			}
		}
		c := &change{span: all, at: b, before: h.now[path]}
		h.now[path] = c
		if next == nil || unknown(next) || old != nil && !unknown(old) {
			return nil
		}
		if unknown(old) { // what happened to it meanwhile nobody saw
			why := files.Reason(old.Target)
			c.uncovered = why == files.Ignored || why == files.Nested
			c.doubt = true
			return nil
		}
		rules, err := h.s.Rules(a)
		c.uncovered = err == nil && rules.ignored(path, next.Mode.IsDir())
		return err
	})
}

// blame says which of the entries of a step cannot be read, nil where it is no entry's fault.
func (h *historian) blame(a, b *Entry, err error) *Entry {
	if writer.ClassOf(err) != writer.ClassCorrupt && !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	all := []*Entry{a}
	for _, w := range h.during(b) {
		all = append(all, h.byNumber(w.by.Target))
	}
	for _, e := range append(all, b) {
		if e != nil && h.has(e) && h.readable(e) != nil {
			return e
		}
	}
	return nil
}

func (h *historian) readable(e *Entry) error {
	for _, err := range h.treeOf(e).All() {
		if err != nil {
			return err
		}
	}
	_, err := h.s.Rules(e)
	return err
}

func (h *historian) byNumber(n uint64) *Entry {
	for _, e := range h.entries {
		if e.Number == n {
			return e
		}
	}
	return nil
}

// A rewinding is the time in which a rewind changed files: that of the entries after begin
// up to end. Other sessions' may be among them, and a crash.
type rewinding struct {
	by         *Entry // at its end, or at its begin where it is not finished
	begin, end uint64
	back       *Tree // at its target
}

// rewindings are those that the entries tell of, the last to end at the end.
func rewindings(entries []*Entry) (all []rewinding) {
	begun, newest := map[uint64]bool{}, map[string]*Entry{}
	for _, e := range entries {
		newest[e.Session] = e
		switch e.Reason {
		case BeforeRewind:
			begun[e.Number] = true
		case AfterRewind:
			w := rewinding{by: e, begin: e.Number - 1, end: e.Number}
			if begun[e.Parent] {
				w.begin = e.Parent
			}
			all = append(all, w)
		}
	}
	for _, e := range entries {
		if e.Reason == BeforeRewind && e == newest[e.Session] {
			all = append(all, rewinding{by: e, begin: e.Number, end: math.MaxUint64})
		}
	}
	return all
}
