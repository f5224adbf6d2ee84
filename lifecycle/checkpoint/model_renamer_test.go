package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lopen-dev/lopen/cache/files"
	"github.com/lopen-dev/lopen/writer/crashfs"
)

// A renaming is what a person renames while something else is at work.
type renaming struct {
	from, to string
	at       int // after so many calls
	was, now map[string]string
}

// renames has a person rename a file or a folder.
func (m *model) renames() {
	r := m.renaming()
	if r == nil {
		m.t.Skip("nothing to rename")
	}
	m.write(true, func() error { return m.rename(r.from, r.to) })
}

// renaming draws what a person renames, to a name that nothing had. It returns nil if there is nothing.
func (m *model) renaming() *renaming {
	all := m.look()
	fixed := map[string]bool{} // repositories, what is mounted or open, and the folders of these
	fix := func(name string) {
		for ; name != "."; name = parent(name) {
			fixed[name] = true
		}
	}
	for name := range m.mounted {
		fix(name)
	}
	for name := range m.inUse() {
		fix(name)
	}
	names, dirs := []string{}, []string{"."}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if strings.Contains("/"+name+"/", "/.git/") || m.mountedAbove(name) != "" || strings.HasSuffix(name, "ignore") || strings.Contains(name, tempPrefix) {
			fix(name)
		} else if all[name][0] == 'd' && !m.mounted[name] {
			dirs = append(dirs, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if !fixed[name] {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	r := &renaming{
		from: rapid.SampledFrom(names).Draw(m.t, "rename"),
		to:   path.Join(rapid.SampledFrom(dirs).Draw(m.t, "into"), fmt.Sprintf("renamed%d", m.next())),
		at:   rapid.IntRange(0, 40).Draw(m.t, "after"),
	}
	if strings.HasPrefix(r.to, r.from+"/") {
		return nil
	}
	return r
}

// rename renames a path durably. What the tree does not allow is not done.
func (m *model) rename(from, to string) error {
	if _, err := m.tree.Lstat(to); err == nil {
		return fs.ErrExist
	}
	if err := m.tree.Rename(from, to); err != nil {
		return err
	}
	return errors.Join(m.tree.SyncDir(parent(to)), m.tree.SyncDir(parent(from)))
}

// beside runs fn, and after some of its calls r. Those that count change the disk; with reads those that
// list a folder of the tree.
func (m *model) beside(r *renaming, reads bool, fn func() error) error {
	var mu sync.Mutex
	n, done, inside := 0, false, false
	m.disk.SetHook(func(op crashfs.Op) crashfs.Fault {
		mu.Lock()
		now := !done && !inside && n >= r.at
		if now {
			done, inside = true, true
		} else if !inside && (op.N > 0 && op.Call != "close" || reads && op.Call == "readdir") {
			n++
		}
		mu.Unlock()
		if now {
			r.was = m.look()
			if m.rename(r.from, r.to) == nil {
				r.now = m.look()
			}
			mu.Lock()
			inside = false
			mu.Unlock()
		}
		return crashfs.Fault{}
	})
	err := fn()
	m.disk.SetHook(nil)
	return err
}

// keepsRenamed requires of a rewind beside which something was renamed that all of that is as it was, and
// that of what the plan took from where it had been there are no more copies than the plan makes.
func (m *model) keepsRenamed(r *renaming, plan *Plan, after map[string]string) {
	for name, text := range r.now {
		rest, is := strings.CutPrefix(name, r.to)
		if !is || rest != "" && rest[0] != '/' || strings.Contains(name, tempPrefix) || text[0] == 'd' {
			continue
		}
		require.Equal(m.t, text, after[name], "%s was renamed from %s", name, r.from)
		old := r.from + rest
		if i := slices.IndexFunc(plan.Changes, func(c Change) bool { return c.Path == old && c.Old != nil }); i >= 0 {
			more := copies(after, text) - copies(r.now, text)
			require.LessOrEqual(m.t, more, max(0, plan.gains(plan.Changes[i].Old)), "copies of %s, summary %v", name, summary(plan))
		}
	}
}

// copies returns at how many paths a content is.
func copies(all map[string]string, text string) (n int) {
	for name, of := range all {
		if textOf(of) == textOf(text) && !strings.Contains(name, tempPrefix) {
			n++
		}
	}
	return n
}

// gains returns at how many more paths a content is after the plan.
func (p *Plan) gains(of *files.Fingerprint) (n int) {
	for _, c := range p.Changes {
		if c.Old != nil && contentOf(c.Old) == contentOf(of) {
			n--
		}
		if c.New != nil && contentOf(c.New) == contentOf(of) {
			n++
		}
	}
	return n
}

// draws draws what a person renames in the next attempt, if anything. With reads that is a look.
func (m *model) draws(reads bool) {
	m.beyond, m.reads = nil, reads
	if !m.calm && rapid.IntRange(0, 3).Draw(m.t, "renamer") == 0 {
		m.beyond = m.renaming()
	}
}

// maybeBeside runs a part of a process's work, and what a person renames meanwhile.
func (m *model) maybeBeside(fn func() error) error {
	if m.beyond == nil {
		return fn()
	}
	return m.beside(m.beyond, m.reads, fn)
}

// renamedIn reports whether what was renamed in a look comes after the entry. All of it is in the entry
// where it was, or all where it is.
func (m *model) renamedIn(number uint64) (late bool) {
	r := m.beyond
	if r == nil || r.now == nil {
		m.beyond = nil
		return false
	}
	entries, _, err := m.reader().List()
	require.NoError(m.t, err)
	e := entries[slices.IndexFunc(entries, func(e *Entry) bool { return e.Number == number })]
	tree := m.reader().Tree(e.Root)
	here, there, gone := 0, 0, false
	for name := range r.now {
		rest, is := strings.CutPrefix(name, r.to)
		if !is || rest != "" && rest[0] != '/' {
			continue
		}
		old, known, err := tree.Find(r.from + rest)
		require.NoError(m.t, err)
		next, _, err := tree.Find(name)
		require.NoError(m.t, err)
		if old != nil {
			here++
		}
		gone = gone || old == nil && known
		if next != nil {
			there++
		}
		require.False(m.t, old != nil && next != nil, "%s is in the checkpoint twice", name)
		require.False(m.t, m.plain && old == nil && next == nil && e.Unstable == 0, "%s is in no folder of the checkpoint", name)
	}
	require.False(m.t, here > 0 && there > 0, "a folder is in the checkpoint in part")
	return here > 0 || there == 0 && !gone // either path may be in a repository, of which nothing is recorded
}

// noteLate notes what was renamed after a look, in the interval that the look begins.
func (m *model) noteLate() {
	if m.late {
		m.late = false
		m.note(true, m.beyond.was, m.beyond.now)
	}
}
