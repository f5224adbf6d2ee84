package plan_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lopen-dev/lopen/plan"
)

// The same examples in every run; -rapid.seed 0 draws others.
func init() { _ = flag.Set("rapid.seed", "1") }

// A written plan is one as people write them: what each line belongs to is known.
type written struct {
	lines []string // with what ends them
	owner []string // name of the item that a line belongs to, "" for none
	above map[string]string
	names []string
}

func drawWritten(t *rapid.T) written {
	w := written{above: map[string]string{}}
	eol := rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(t, "eol")
	line := func(owner, format string, args ...any) {
		w.lines = append(w.lines, fmt.Sprintf(format, args...)+eol)
		w.owner = append(w.owner, owner)
	}
	var list func(parent, lead string, depth int)
	list = func(parent, lead string, depth int) {
		marker := rapid.SampledFrom([]string{"-", "*", "1.", "7)"}).Draw(t, "marker")
		if marker == "7)" && parent != "" {
			marker = "1." // no other number begins a list below a text
		}
		for range rapid.IntRange(1, 3).Draw(t, "items") {
			name := fmt.Sprintf("t%d", len(w.names))
			w.names = append(w.names, name)
			w.above[name] = parent
			note := rapid.SampledFrom([]string{"", "", " <!-- after: t0 -->", "  "}).Draw(t, "note")
			line(name, "%s%s [%s] %s%s", lead, marker, rapid.SampledFrom([]string{" ", "x"}).Draw(t, "box"), name, note)
			deeper := lead + strings.Repeat(" ", len(marker)+1)
			if rapid.IntRange(0, 3).Draw(t, "detail") == 0 {
				line(name, "%sdetails of %s", deeper, name)
			}
			if depth < 3 && rapid.IntRange(0, 2).Draw(t, "nest") == 0 {
				list(name, deeper, depth+1)
			}
			if depth == 0 && rapid.IntRange(0, 4).Draw(t, "blank") == 0 {
				line("", "")
			}
		}
	}
	line("", "# Plan: p")
	for c := range rapid.IntRange(1, 3).Draw(t, "components") {
		line("", "")
		line("", "## Part %d", c)
		line("", "")
		line("", "Prose, not a task.")
		line("", "")
		list("", "", 0)
	}
	return w
}

func (w written) source() string { return strings.Join(w.lines, "") }

// without returns the lines that belong neither to an item nor, if whole, to one
// beneath it.
func (w written) without(name string, whole bool) (rest []string) {
	for i, l := range w.lines {
		o := w.owner[i]
		mine := o == name && (whole || strings.Contains(l, "] "+name))
		for ; whole && !mine && o != ""; o = w.above[o] {
			mine = o == name
		}
		if !mine {
			rest = append(rest, l)
		}
	}
	return rest
}

func byName(t require.TestingT, p *plan.Plan, name string) plan.Task {
	for _, task := range p.Tasks() {
		if task.Name == name {
			return task
		}
	}
	require.Fail(t, "no task", name)
	return plan.Task{}
}

func drawPlace(t *rapid.T, w written, p *plan.Plan) plan.Place {
	id := byName(t, p, rapid.SampledFrom(w.names).Draw(t, "beside")).ID
	switch rapid.IntRange(0, 4).Draw(t, "place") {
	case 0:
		return plan.Place{Before: id}
	case 1:
		return plan.Place{After: id}
	case 2:
		return plan.Place{Under: id}
	case 3:
		return plan.Place{Under: p.Roots()[rapid.IntRange(0, len(p.Roots())-1).Draw(t, "component")]}
	}
	return plan.Place{}
}

// Every edit of a plan as people write them succeeds, the tree is the model's,
// and the lines that it is not about are the same, byte for byte.
func TestEditsChangeNothingElse(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		w := drawWritten(rt)
		p := plan.Parse([]byte(w.source()))
		name := rapid.SampledFrom(w.names).Draw(rt, "task")
		task, at := byName(rt, p, name), drawPlace(rt, w, p)
		op := uint8(rapid.IntRange(0, 4).Draw(rt, "op"))
		next, err := operations(task.ID, at, "new")[op](p, p)
		switch {
		case op == 2 && errors.Is(err, plan.ErrPlace):
			return // beneath itself
		case op == 4 && task.Checked:
			require.Equal(rt, w.source(), string(next.Source()))
			return
		}
		require.NoError(rt, err)
		model := modelOf(p)
		model.apply(op, task.ID, at)
		require.Equal(rt, model.lines(op), modelOf(next).lines(op))

		lines := slices.Collect(strings.Lines(string(next.Source())))
		added := func(name string, n int) []string {
			at := byName(rt, next, name).Line - 1
			return slices.Delete(slices.Clone(lines), at, at+n)
		}
		switch op {
		case 0:
			require.Equal(rt, w.lines, added("new", 1))
		case 1:
			require.Equal(rt, w.without(name, true), lines)
		case 2:
			rest := w.without(name, true)
			require.Equal(rt, rest, added(name, len(w.lines)-len(rest)))
		case 3:
			require.Equal(rt, w.without(name, false), added("new", 1))
		case 4:
			require.Equal(rt, w.without(name, false), added(name, 1))
			require.Equal(rt, plan.Mark{State: plan.MarkFailed, Attempts: 2}, byName(rt, next, name).Mark)
			undone, err := plan.Marks(map[string]plan.Mark{task.ID: {}})(next, next)
			require.NoError(rt, err)
			require.Equal(rt, w.source(), string(undone.Source()))
		}
	})
}

// Somebody edits the file between the look and the edit: both edits are in the
// file, or the edit says that they touch and the file is theirs.
func TestEditsMerge(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		w := drawWritten(rt)
		base := plan.Parse([]byte(w.source()))
		name, other := rapid.SampledFrom(w.names).Draw(rt, "mine"), rapid.SampledFrom(w.names).Draw(rt, "theirs")
		mine, theirs := byName(rt, base, name), byName(rt, base, other)
		op, their := uint8(rapid.IntRange(0, 4).Draw(rt, "op")), uint8(rapid.IntRange(0, 4).Draw(rt, "their op"))
		at, to := drawPlace(rt, w, base), drawPlace(rt, w, base)
		edited, err := operations(theirs.ID, to, "their")[their](base, base)
		if err != nil {
			return
		}
		const file = "plan.md"
		fsys := open(rt, dir)
		defer fsys.Close()
		require.NoError(rt, fsys.put(file, edited.Source()))
		defer os.Remove(dir + "/" + file)
		next, err := plan.Apply(fsys, file, base, operations(mine.ID, at, "new")[op])
		held := fsys.get(rt, file)
		if err != nil {
			require.Equal(rt, string(edited.Source()), held)
			var conflict *plan.ConflictError
			require.True(rt, errors.As(err, &conflict) || errors.Is(err, plan.ErrPlace), err)
			apart := !related(mine, theirs) && !related(mine, placed(base, to)) && !related(theirs, placed(base, at))
			require.False(rt, errors.As(err, &conflict) && apart, "edits that do not touch are both kept: %v", err)
			return
		}
		require.Equal(rt, held, string(next.Source()))
		alone, err := operations(mine.ID, at, "new")[op](edited, edited)
		require.NoError(rt, err)
		require.Equal(rt, string(alone.Source()), held)
	})
}

func placed(p *plan.Plan, at plan.Place) plan.Task {
	t, _ := p.Task(at.Under + at.Before + at.After)
	return t
}

func related(a, b plan.Task) bool { return within(a.ID, b.ID) || within(b.ID, a.ID) }
