package checkpoint

import (
	"flag"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lopen-dev/lopen/writer/blob"
	"github.com/lopen-dev/lopen/writer/crashfs"
)

// Every run has the same examples; -rapid.seed 0 draws others.
func init() { _ = flag.Set("rapid.seed", "1") }

// TestModel makes random histories of a project: edits by sessions in their tasks and by
// people, rules, repositories, rewinds, undos, restores, forks, what is thinned, processes
// that are killed and power cuts at any call. A person renames files and folders, also while a
// checkpoint is made or a rewind is applied. The model looks at the disk alone and knows
// nothing of trees, chains and rules. After each rewind it holds that
//
//   - what a person or another session wrote, or brought back, since the target stands;
//   - each path is what it was before, or what it was at the target;
//   - what is on a mount that was not there at the target stands;
//   - what somebody has open for writing is neither replaced nor removed;
//   - what somebody renames meanwhile stays as it is, and is not made a second time;
//   - what stood before the session's first task stands;
//   - nothing in a repository's .git is touched, nor what is not among the given paths;
//   - undo gives the tree before, byte for byte;
//   - what the session's tasks alone wrote is brought back, in the plain histories.
func TestModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := &model{world: newWorld(t), t: t, moments: map[uint64]*moment{}, wrote: map[string]*event{}, acked: map[uint64]bool{}, mounted: map[string]bool{}, touched: map[string][]touch{}, plain: rapid.Bool().Draw(t, "plain")}
		m.moments[0] = &moment{all: map[string]string{}, events: map[string][]*event{}}
		m.latest = m.moments[0]
		m.hides()
		for range rapid.IntRange(0, 3).Draw(t, "first") {
			m.byPerson()
		}
		m.begin("s", 0, nil)
		t.Repeat(m.steps())
		m.finishAll()
	})
}

// An event says that a path changed between two entries.
type event struct {
	person bool   // one wrote it
	alone  uint64 // the entry before the task that was the only one at work all the time, 0 where there is none
	known  bool   // it was written by an edit, not left by a rewind that was cut off
	at     uint64 // the entry at the end of its interval
}

// of reports whether a task of the session made the event, alone.
func (e *event) of(a *actor) bool { return e.known && e.alone > 0 && e.at <= a.own[e.alone] }

// foreign reports whether the session must keep the result of the event.
func (e *event) foreign(a *actor) bool {
	return e.known && !e.of(a) && (e.alone > 0 || e.person)
}

// A moment holds the whole tree, including ignored files, and what happened to each path.
type moment struct {
	all    map[string]string
	events map[string][]*event
	// mounted are the mount points.
	mounted map[string]bool
}

// A touch says that a path differs between an entry and the entry before it.
type touch struct {
	number uint64
	by     *actor // whose rewind made the difference; nil if no rewind did
	within *actor // whose rewind was at work before the entry, though a person may have made the difference
	rewind *going
	event  *event
}

// of reports whether a rewind on the session's line made the difference.
func (t touch) of(a *actor) bool {
	return t.by == a || t.by != nil && slices.Contains(a.line, t.rewind.end)
}

type model struct {
	*world
	t       *rapid.T
	plain   bool // no rules, no repositories, nothing removed, no crashes
	calm    bool // no crashes any more
	n       int  // of contents
	moments map[uint64]*moment
	latest  *moment         // at the newest entry
	acked   map[uint64]bool // entries that a session knows of
	touched map[string][]touch
	wrote   map[string]*event // since then
	all     []*actor
	held    []held          // by other processes
	mounted map[string]bool // mount points
	beyond  *renaming       // what a person renames in the next attempt, or did in the last one
	reads   bool            // it is a look
	late    bool            // it came after the look
}

// An actor is a session.
type actor struct {
	*worker
	line    []uint64
	own     map[uint64]uint64 // up to which entry a task is its own, by the entry before it
	working uint64            // the entry before the task at work, 0 for none
	undo    *Entry            // before the newest rewind
	undone  *moment           // what that one left
	after   uint64            // its entry
	going   *going
}

// going is a rewind that is not finished.
type going struct {
	target, before *Entry
	last           uint64
	opts           RewindOptions
	stays          map[string]string // what must stand afterwards
	undoes         bool              // it must give the target exactly
	alone          bool              // nothing else has happened since it began
	end            uint64            // the entry after it
}

func (m *model) begin(id string, from uint64, parent *actor) {
	a := &actor{worker: m.worker(id, from), own: map[uint64]uint64{}}
	if parent != nil {
		for _, n := range parent.line {
			if n > from {
				break
			}
			a.line = append(a.line, n)
			if parent.own[n] > 0 {
				a.own[n] = min(parent.own[n], from)
			}
		}
	}
	m.all = append(m.all, a)
}

// active are the tasks at work now.
func (m *model) active() (all []uint64) {
	for _, a := range m.all {
		if a.working > 0 && m.alive[a.id] {
			all = append(all, a.working)
		}
	}
	return all
}

// write notes what an edit did.
func (m *model) write(person bool, edit func() error) {
	was := m.look()
	err := edit()
	now := m.look()
	if err != nil { // what the tree does not allow is not done, durably
		require.NoError(m.t, m.tree.SyncDir("."))
		for file, text := range now {
			if strings.HasPrefix(text, "d") {
				require.NoError(m.t, m.tree.SyncDir(file))
			}
		}
	}
	m.note(person, was, now)
}

// note notes that the tree was changed.
func (m *model) note(person bool, was, now map[string]string) {
	alone := uint64(0)
	if active := m.active(); len(active) == 1 {
		alone = active[0]
	}
	for file := range either(was, now) {
		if was[file] == now[file] {
			continue
		}
		if e := m.wrote[file]; e != nil {
			e.person = e.person || person
			if e.alone != alone {
				e.alone = 0
			}
		} else {
			m.wrote[file] = &event{person: person, alone: alone, known: true}
		}
		for _, a := range m.all {
			if a.going == nil {
				continue
			}
			a.going.alone = false
			if delete(a.going.stays, file); now[file] != "" && now[file][0] != 'd' && person && !strings.Contains(file, tempPrefix) { // one folder is like another
				a.going.stays[file] = now[file]
			}
		}
	}
}

func either(a, b map[string]string) map[string]bool {
	all := map[string]bool{}
	for _, m := range []map[string]string{a, b} {
		for file := range m {
			all[file] = true
		}
	}
	return all
}

// reached notes that an entry has the tree as it is now, and ends the entry's interval.
// by is the actor whose rewind made the entry, nil without one.
func (m *model) reached(number uint64, all map[string]string, by *actor) {
	next := &moment{all: all, events: maps.Clone(m.latest.events), mounted: maps.Clone(m.mounted)}
	for file := range either(all, m.latest.all) {
		if all[file] == m.latest.all[file] {
			continue
		}
		e, t := m.wrote[file], touch{number: number, within: by}
		if e == nil {
			if e, t.by = (&event{}), by; by == nil {
				t.by = m.rewinder()
			}
			if t.by != nil {
				t.rewind = t.by.going
			}
		}
		e.at, t.event = number, e
		m.touched[file] = append(m.touched[file], t)
		next.events[file] = append(slices.Clip(next.events[file]), e)
	}
	m.moments[number], m.latest, m.wrote = next, next, map[string]*event{}
}

// rewinder returns the only actor whose rewind has begun. It is nil if there is no such
// actor or more than one.
func (m *model) rewinder() (by *actor) {
	for _, a := range m.all {
		if a.going != nil && by != nil {
			return nil
		}
		if a.going != nil {
			by = a
		}
	}
	return by
}

// attempt runs a part of a process's work. At any call the process may be killed or the
// power cut. attempt returns false if this happened and the process is gone.
func (m *model) attempt(a *actor, fn func() error) bool {
	if m.plain || m.calm || !rapid.Bool().Draw(m.t, "crashes") {
		require.NoError(m.t, m.maybeBeside(fn))
		return true
	}
	m.beyond = nil // not both
	at, power := rapid.IntRange(1, 60).Draw(m.t, "call"), rapid.IntRange(0, 2).Draw(m.t, "power") == 0
	var mu sync.Mutex
	var found *crashfs.Disk
	n := 0
	m.disk.SetHook(func(op crashfs.Op) crashfs.Fault {
		mu.Lock()
		defer mu.Unlock()
		if op.N > 0 && op.Call != "close" {
			n++
		}
		if n < at {
			return crashfs.Fault{}
		}
		if found == nil {
			found = m.disk.Snapshot()
		}
		return crashfs.Fault{Err: syscall.EIO} // of no consequence: it is another disk that is found
	})
	err := fn()
	m.disk.SetHook(nil)
	if n < at {
		require.NoError(m.t, err)
		return true
	}
	dead := []*actor{a}
	if power {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(m.t, "seed"), 0))
		cuts := found.Variants(rng, 2)
		found = found.Crash(cuts[rng.IntN(len(cuts))])
		dead = m.all
	}
	m.open(found)
	m.held = nil // they had files of the other disk open
	for _, d := range dead {
		m.alive[d.id], d.cps = false, nil
	}
	m.whole()
	if newest := m.newest(); power { // what a process that was killed left in the cache may be lost
		for number := range m.moments {
			if number > newest {
				require.NotContains(m.t, m.acked, number)
				delete(m.moments, number)
				m.latest, m.wrote = m.moments[newest], map[string]*event{}
				for file, list := range m.touched {
					m.touched[file] = slices.DeleteFunc(list, func(t touch) bool { return t.number > newest })
				}
			}
		}
		m.reboot()
	}
	return false
}

// lost is after a power cut outside of an Apply: what a rewind that was killed had left in the cache may be
// lost, and is not to stay then.
func (m *model) lost() {
	left := m.look()
	for _, a := range m.all {
		if a.going != nil {
			maps.DeleteFunc(a.going.stays, func(file, text string) bool { return left[file] != text })
		}
	}
}

// newest returns the number of the newest entry.
func (m *model) newest() uint64 {
	entries, _, err := m.reader().List() // a power cut may leave a torn line
	require.NoError(m.t, err)
	newest := uint64(0)
	for _, e := range entries {
		newest = e.Number
	}
	return newest
}

// whole requires all objects that the entries need.
func (m *model) whole() {
	s := m.reader()
	entries, _, err := s.List()
	require.NoError(m.t, err)
	for _, e := range entries {
		if e.Removed != "" {
			continue
		}
		require.NoError(m.t, s.Objects(e, func(h blob.Hash, _ int64) bool {
			has, err := s.blobs.Has(h)
			require.NoError(m.t, err)
			require.True(m.t, has, "checkpoint %d needs %s", e.Number, h)
			return true
		}))
	}
}

// create makes a checkpoint and returns its entry. It returns nil if the session does not
// know of the entry, which may be in the chain all the same.
func (m *model) create(a *actor, why Reason, target uint64) *Entry {
	all := m.look()
	var e *Entry
	m.draws(true)
	ok := m.attempt(a, func() (err error) {
		e, err = a.make(why, target)
		return err
	})
	number := m.newest()
	if !ok {
		m.lost()
		if e = nil; m.moments[number] != nil {
			return nil
		}
	} else {
		require.Equal(m.t, number, e.Number)
		m.acked[number] = true
	}
	var by *actor
	if why == AfterRewind {
		by, a.going.end = a, number
	}
	m.late = m.renamedIn(number)
	if m.beyond != nil && !m.late {
		m.note(true, m.beyond.was, m.beyond.now)
		all = m.look()
	}
	m.reached(number, all, by)
	if e != nil {
		a.line = append(a.line, number)
		switch why {
		case BeforeTask:
			a.own[number], a.working = math.MaxUint64, number
		case AfterTask:
			a.working = 0
		}
	}
	if why != BeforeRewind {
		m.noteLate()
	}
	return e
}

// reader returns a Store that makes no entries.
func (m *model) reader() *Store {
	return New(m.checkpoints, MainTree, blob.New(m.blobs), m.tree, Options{})
}

// wake starts a new process for a session that was killed, and finishes its rewind. The
// next entry that it makes ends the interval that was cut off.
func (m *model) wake(a *actor) {
	a.start()
	a.working = 0
	if a.going != nil {
		m.finish(a)
	}
}

func (m *model) finishAll() {
	m.calm = true
	for _, a := range m.all {
		if !m.alive[a.id] {
			m.wake(a)
		}
	}
}
