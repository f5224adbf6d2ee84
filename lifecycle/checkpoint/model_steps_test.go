package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lopen-dev/lopen/writer/blob"
)

// steps returns what may happen, by name.
func (m *model) steps() map[string]func(*rapid.T) {
	all := map[string]func(){
		"person": m.byPerson,
		"loop":   func() { m.edits(false, m.session(func(a *actor) bool { return a.working > 0 }).id) },
		"task":   func() { m.turns(m.session(awake)) },
		"works": func() {
			if a := m.session(idle); m.turns(a) {
				m.edits(false, a.id)
				m.turns(a)
			}
		},
		"opens": m.opens,
		"says":  m.says,
		"worksInUse": func() { // a server begins to write what a task has made, and goes on while that is taken back
			if a := m.session(idle); m.turns(a) {
				before := m.working(a)
				m.edits(false, a.id)
				m.opens()
				if m.turns(a) {
					m.rewinds(a, before, m.how(), false)
				}
			}
		},
		"closes":  m.closes,
		"renames": m.renames,
		"manual":  func() { m.create(m.session(awake), Manual, 0) },
		"rewind":  func() { m.rewinds(m.session(idle), m.target(), m.how(), false) },
		"undo":    m.undoes,
		"restore": func() { m.restores(m.session(idle)) },
		"another": func() { m.another(0, nil) },
		"fork": func() {
			a := m.session(func(a *actor) bool { return len(a.line) > 0 })
			m.another(rapid.SampledFrom(a.line).Draw(m.t, "at"), a)
		},
	}
	if !m.plain {
		all["mounts"] = m.mounts
		all["worksOnVolume"] = func() {
			if a := m.session(idle); m.turns(a) {
				m.mounts()
				m.edits(false, a.id)
				m.turns(a)
			}
		}
		all["unmounts"] = m.unmounts
		all["index"] = m.index
		all["rules"] = m.rules
		all["scaffold"] = m.scaffolds
		all["repository"] = m.repository
		all["forget"] = func() { m.forgets(m.session(awake)) }
		all["kill"] = func() { m.alive[m.session(awake).id] = false }
		all["wake"] = func() { m.wake(m.session(func(a *actor) bool { return !awake(a) })) }
	}
	steps := map[string]func(*rapid.T){}
	for name, fn := range all {
		steps[name] = func(t *rapid.T) {
			m.t, m.world.t = t, t
			fn()
		}
	}
	return steps
}

func awake(a *actor) bool { return a.alive[a.id] }
func idle(a *actor) bool  { return awake(a) && a.working == 0 }

// session is one of some.
func (m *model) session(fits func(*actor) bool) *actor {
	var some []*actor
	for _, a := range m.all {
		if fits(a) {
			some = append(some, a)
		}
	}
	if len(some) == 0 {
		m.t.Skip("no session")
	}
	return some[rapid.IntRange(0, len(some)-1).Draw(m.t, "session")]
}

// turns begins or ends a task.
func (m *model) turns(a *actor) bool {
	if a.working > 0 {
		return m.create(a, AfterTask, 0) != nil
	}
	a.task++
	return m.create(a, BeforeTask, 0) != nil
}

// working is the entry before a session's task.
func (m *model) working(a *actor) *Entry {
	e, err := m.reader().At(a.working)
	require.NoError(m.t, err)
	return e
}

func (m *model) another(from uint64, parent *actor) {
	if len(m.all) == 4 {
		m.t.Skip("enough sessions")
	}
	m.begin(fmt.Sprintf("s%d", len(m.all)), from, parent)
}

func (m *model) rules() {
	file := path.Join(rapid.SampledFrom([]string{"", "d", "d/e"}).Draw(m.t, "where"), rapid.SampledFrom([]string{".gitignore", ".lopenignore"}).Draw(m.t, "file"))
	text := strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "d/", "e/", "!a", "*", "x", "!e", "/b"}), 1, 2).Draw(m.t, "rules"), "\n")
	if text += fmt.Sprintf("\n#%d", m.next()); rapid.IntRange(0, 2).Draw(m.t, "none") == 0 {
		text = "-"
	}
	m.write(rapid.Bool().Draw(m.t, "by person"), func() error { return m.change(file, text) })
}

func (m *model) repository() {
	dir := rapid.SampledFrom([]string{"d", "d/e", "g"}).Draw(m.t, "repository")
	text := rapid.SampledFrom([]string{"ref", "-", "another"}).Draw(m.t, "head")
	m.write(true, func() error { return m.change(dir+"/.git/HEAD", text) })
}

func (m *model) undoes() {
	a := m.session(func(a *actor) bool { return idle(a) && a.undo != nil })
	same := maps.Equal(m.look(), a.undone.all) && m.latest == a.undone && len(m.inUse()) == 0
	m.rewinds(a, a.undo, RewindOptions{}, same)
}

func (m *model) restores(a *actor) {
	opts := m.how()
	opts.Paths = []string{rapid.SampledFrom(append(slices.Clone(places), "d", "d/e")).Draw(m.t, "path")}
	m.rewinds(a, m.target(), opts, false)
}

// target draws an entry that was not removed.
func (m *model) target() *Entry {
	entries, _, err := m.reader().List()
	require.NoError(m.t, err)
	if entries = slices.DeleteFunc(entries, func(e *Entry) bool { return e.Removed != "" }); len(entries) == 0 {
		m.t.Skip("no checkpoint")
	}
	return entries[rapid.IntRange(0, len(entries)-1).Draw(m.t, "target")]
}

func (m *model) how() (opts RewindOptions) {
	how := rapid.IntRange(0, 5).Draw(m.t, "how")
	return RewindOptions{Contested: how == 1, Force: how == 2}
}

// rewinds begins a rewind. undoes says that it undoes a rewind since which nothing happened.
func (m *model) rewinds(a *actor, target *Entry, opts RewindOptions, undoes bool) {
	last := a.last
	before := m.create(a, BeforeRewind, target.Number)
	if before == nil {
		return
	}
	g := &going{target: target, before: before, last: last, opts: opts, undoes: undoes && m.beyond == nil, alone: true, stays: map[string]string{}}
	now := m.latest
	for file, text := range now.all {
		if strings.HasPrefix(path.Base(file), tempPrefix) {
			continue // what a process that was killed had staged was never durable
		}
		if m.mustStay(a, file, text, target.Number, last, now, opts) {
			g.stays[file] = text
		}
	}
	a.going = g
	m.noteLate()
	m.finish(a)
}

// mustStay reports whether a rewind must leave a path as it is. last is the session's newest
// entry: a path that others' rewinds brought back to what it was there is not a change of theirs.
func (m *model) mustStay(a *actor, file, text string, target, last uint64, now *moment, opts RewindOptions) bool {
	then := m.moments[target]
	if then.all[file] == text || slices.Contains(strings.Split(file, "/"), ".git") || !within(opts, file) || m.mountedSince(file, then) {
		return true
	}
	events := now.events[file]
	newest := events[len(events)-1]
	had := m.moments[last]
	byRewind := !newest.known // one that was cut off: one that ends leaves the events of its target
	back := had != nil && had.all[file] == text && (byRewind || slices.Equal(had.events[file], events))
	if list := m.touched[file]; !opts.Force && !opts.Contested && !back && m.foreign(a, list[len(list)-1], target) {
		return true
	}
	loose := opts.Force || opts.Contested && (!m.plain || newest.alone == 0 || a.own[newest.alone] > 0)
	return newest.at > target && !slices.Contains(then.events[file], newest) && m.since(a, file, target) && newest.foreign(a) && !loose
}

// since reports whether a path changed since the target other than by the session's rewinds.
func (m *model) since(a *actor, file string, target uint64) bool {
	return slices.ContainsFunc(m.touched[file], func(t touch) bool {
		return t.number > target && !t.of(a)
	})
}

// foreign reports whether a touch was made since the target by another session's rewind.
func (m *model) foreign(a *actor, t touch, target uint64) bool {
	return t.number > target && t.by != nil && !t.of(a)
}

func within(opts RewindOptions, file string) bool {
	return opts.Paths == nil || slices.ContainsFunc(opts.Paths, func(in string) bool { return file == in || strings.HasPrefix(file, in+"/") })
}

// finish does the rest of a rewind.
func (m *model) finish(a *actor) {
	g := a.going
	now, then := m.moments[g.before.Number], m.moments[g.target.Number]
	var plan *Plan
	var done Applied
	inUse := m.inUse()
	m.draws(false)
	ok := m.attempt(a, func() (err error) {
		plan, err = a.cps.Plan(context.Background(), g.target, g.before, a.cps.Tree(g.before.Root), g.last, g.opts)
		if err == nil {
			done, err = a.cps.Apply(context.Background(), plan)
		}
		return err
	})
	after := m.look()
	if ok && m.beyond != nil && m.beyond.now != nil {
		m.keepsRenamed(m.beyond, plan, after)
		m.note(true, m.beyond.was, m.beyond.now)
	}
	m.keepsInUse(inUse, after, g.opts)
	for _, other := range m.all {
		if other != a && other.going != nil {
			other.going.alone = false
			maps.DeleteFunc(other.going.stays, func(file, text string) bool { return after[file] != text })
		}
	}
	for file, text := range g.stays {
		if ok || strings.HasPrefix(text, "-") || strings.HasPrefix(text, "L") { // of folders, modes may be other ones meanwhile
			require.Equal(m.t, text, after[file], "%s stays as it is: session %s, to %d from %d", file, a.id, g.target.Number, g.before.Number)
		}
	}
	if !ok {
		return
	}
	if g.alone {
		m.holds(a, g, now, then, after, plan)
		if len(m.held) == 0 {
			require.Empty(m.t, done.Retained)
		}
	}
	for _, other := range m.all { // an entry in the middle is nothing to the rewind
		if other != a && idle(other) && rapid.IntRange(0, 3).Draw(m.t, "meanwhile") == 0 {
			m.turns(other)
		}
	}
	if !awake(a) || m.create(a, AfterRewind, g.target.Number) == nil {
		return // it is done again
	}
	reached := m.latest
	for file := range either(now.all, after) {
		if now.all[file] != after[file] && then.all[file] == after[file] {
			reached.events[file] = then.events[file]
		}
	}
	if a.undo = nil; g.alone {
		a.undo, a.undone, a.after = g.before, reached, a.last
	}
	a.going = nil
}

// holds checks the result of a rewind during which nothing else happened.
func (m *model) holds(a *actor, g *going, now, then *moment, after map[string]string, plan *Plan) {
	if g.undoes {
		require.Equal(m.t, then.all, after, "undo is exact")
	}
	first := then
	if len(a.line) > 0 {
		first = m.moments[a.line[0]]
	}
	for file := range either(now.all, after) {
		was, is, want := now.all[file], after[file], then.all[file]
		events := now.events[file]
		since := len(events) > 0 && !slices.Contains(then.events[file], events[len(events)-1])
		dir := strings.HasPrefix(was, "d") || strings.HasPrefix(is, "d")
		if strings.HasPrefix(path.Base(file), tempPrefix) {
			continue // staged in a folder that somebody renamed
		}
		if is != was && is != want {
			require.True(m.t, dir && m.above(file, was, is, then), "%s is neither what it was nor what it is to be: %q, was %q, want %q", file, is, was, want)
		}
		if was != "" && is == "" && since && m.since(a, file, g.target.Number) {
			require.Empty(m.t, first.all[file], "%s stood before the first task", file)
		}
		if !m.plain || len(m.inUse()) > 0 || !within(g.opts, file) || is == want || dir || want == "" && first.all[file] != "" {
			continue
		}
		own := !slices.ContainsFunc(m.touched[file], func(t touch) bool {
			return t.number > g.target.Number && (!t.of(a) && !t.event.of(a) || t.within != nil && t.within != a)
		})
		for _, e := range events {
			own = own && (slices.Contains(then.events[file], e) || e.of(a))
		}
		require.False(m.t, own, "%s is the session's alone and was not brought back: %q, want %q; %v", file, is, want, summary(plan))
	}
}

// above reports whether a folder may have been made or removed because of something in it.
func (m *model) above(dir, was, is string, then *moment) bool {
	if was == "" {
		return strings.HasPrefix(then.all[dir], "d")
	}
	return is == "" && then.all[dir] == ""
}

// forgets removes entries and sweeps the objects that nobody needs any more.
func (m *model) forgets(a *actor) {
	entries, _, err := a.cps.List()
	require.NoError(m.t, err)
	needed := map[uint64]bool{}
	for _, a := range m.all {
		needed[a.last] = true
		if len(a.line) > 0 {
			needed[a.line[0]] = true
		}
		if a.undo != nil {
			needed[a.undo.Number], needed[a.undo.Target], needed[a.after] = true, true, true
		}
		if a.going != nil {
			needed[a.going.before.Number], needed[a.going.target.Number], needed[a.going.last] = true, true, true
		}
	}
	goes := map[uint64]bool{}
	for _, e := range entries[:max(0, len(entries)-2)] {
		goes[e.Number] = !needed[e.Number] && rapid.Bool().Draw(m.t, "goes")
	}
	m.beyond = nil
	ok := m.attempt(a, func() error {
		if _, err := a.cps.Forget(context.Background(), "a test", func(e *Entry) bool { return goes[e.Number] }); err != nil {
			return err
		}
		_, err := a.cps.blobs.Sweep(func() (map[blob.Hash]struct{}, error) {
			into := map[blob.Hash]struct{}{}
			err := Roots(a.cps.dir, a.cps.blobs, into)
			if err == nil {
				_, err = SweepMoved(a.lopen, into)
			}
			return into, err
		})
		return err
	})
	if !ok {
		m.lost()
	}
}

var places = []string{"a", "b", "d/a", "d/b", "d/e/a", "d/e/f/x", "g/a", "x"}

func (m *model) next() int { m.n++; return m.n }

func (m *model) byPerson() { m.edits(true, "person") }

// edits makes a few changes.
func (m *model) edits(person bool, who string) {
	for range rapid.IntRange(1, 3).Draw(m.t, "edits") {
		file := rapid.SampledFrom(places).Draw(m.t, "file")
		text := fmt.Sprintf("%s %d", who, m.next())
		kinds := []string{"write", "write", "write", "remove"}
		if !m.plain {
			kinds = append(kinds, "folder", "link", "x", "move", "removes", "turns")
		}
		m.write(person, func() error {
			switch rapid.SampledFrom(kinds).Draw(m.t, "edit") {
			case "write":
				return m.change(file, text)
			case "remove":
				return m.change(file, "-")
			case "folder":
				return m.change(file+"/", "")
			case "link":
				return m.change(file, "-> "+text)
			case "x":
				return m.change(file, text+"+x")
			case "move":
				return m.change(rapid.SampledFrom(places).Draw(m.t, "to"), "<- "+file)
			case "removes": // with what is beside it
				return m.change(strings.Split(file, "/")[0], "-")
			}
			return errors.Join(m.change(file, "-"), m.change(file+"/in", text))
		})
	}
}
