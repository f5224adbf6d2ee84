package plan_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/plan"
)

// edit makes a change to a plan that nobody else edits.
func edit(src string, change plan.Change) (string, error) {
	p := plan.Parse([]byte(src))
	next, err := change(p, p)
	if err != nil {
		return "", err
	}
	return string(next.Source()), nil
}

func TestEdits(t *testing.T) {
	t.Parallel()
	const nested = "## C\n\n- [ ] a\n  more of a\n  - [x] b\n\n- [ ] c <!-- after: c/a -->\n"
	tests := []struct {
		name, src string
		change    plan.Change
		want      string // "" for ErrTangled
	}{
		{"add to nothing", "", plan.Add("x", plan.Place{}), "- [ ] x\n"},
		{"add below prose", "Some\nprose", plan.Add("x", plan.Place{}), "Some\nprose\n- [ ] x"},
		{"add below a heading", "# P\n## A\n", plan.Add("x", plan.Place{}), "# P\n## A\n- [ ] x\n"},
		{"add at the end", nested, plan.Add(" *x*  ", plan.Place{}), nested + "- [ ] *x*\n"},
		{"add behind", nested, plan.Add("x", plan.Place{After: "c/a"}), strings.Replace(nested, "b\n", "b\n- [ ] x\n", 1)},
		{"add before", nested, plan.Add("x", plan.Place{Before: "c/a/b"}), strings.Replace(nested, "  - [x] b", "  - [ ] x\n  - [x] b", 1)},
		{"add under a component", nested, plan.Add("x", plan.Place{Under: "c"}), nested + "- [ ] x\n"},
		{"add under a parent", nested, plan.Add("x", plan.Place{Under: "c/a"}), strings.Replace(nested, "b\n", "b\n  - [ ] x\n", 1)},
		{"add under a leaf", nested, plan.Add("x <!-- after: c/a -->", plan.Place{Under: "c/c"}), nested + "  - [ ] x <!-- after: c/a -->\n"},
		{"add in a numbered list", "9. [ ] a\r\n10) [ ] b", plan.Add("x", plan.Place{After: "a"}), "9. [ ] a\r\n10. [ ] x\r\n10) [ ] b"},
		{"add under a numbered leaf", "10)\t[ ] b", plan.Add("x", plan.Place{Under: "b"}), "10)\t[ ] b\n   \t- [ ] x"},
		{"add in a quote", "> * [ ] a\n> * [ ] b\n", plan.Add("x", plan.Place{Under: "a"}), "> * [ ] a\n>   - [ ] x\n> * [ ] b\n"},
		{"add behind an open HTML block", "- [ ] a\n  <div>\n", plan.Add("x", plan.Place{Under: "a"}), "- [ ] a\n  <div>\n\n  - [ ] x\n"},
		{"add below an open fence", "- [ ] a\n\n```\n", plan.Add("x", plan.Place{After: "a"}), "- [ ] a\n- [ ] x\n\n```\n"},
		{"add into an open fence", "- [ ] a\n  ```\n", plan.Add("x", plan.Place{Under: "a"}), ""},
		{"add first, behind a byte order mark", "\ufeff- [ ] a\n", plan.Add("x", plan.Place{Before: "a"}), "\ufeff- [ ] x\n- [ ] a\n"},
		{"remove", nested, plan.Remove("c/a"), "## C\n\n\n- [ ] c <!-- after: c/a -->\n"},
		{"remove a child", nested, plan.Remove("c/a/b"), strings.Replace(nested, "  - [x] b\n", "", 1)},
		{"remove the last", nested, plan.Remove("c/c"), strings.Replace(nested, "- [ ] c <!-- after: c/a -->\n", "", 1)},
		{"remove what keeps an underline off", "text\n- [ ] a\n---\n- [ ] b\n", plan.Remove("a"), "text\n\n---\n- [ ] b\n"},
		{"remove what keeps an underline off a text without tasks", "- [ ] b\n\ntext\n- [ ] a\n---\n", plan.Remove("a"), "- [ ] b\n\ntext\n\n---\n"},
		{"move what keeps an underline off", "- [ ] b\n\ntext\n- [ ] a\n---\n", plan.Move("a", plan.Place{Before: "b"}), "- [ ] a\n- [ ] b\n\ntext\n\n---\n"},
		{"rename what looks as if a note followed it", "- [ ] a \\<!-- after: b -->\n", plan.Rename("a-after-b", "x"), ""},
		{"remove what shares its line", "- - [ ] a\n", plan.Remove("a"), ""},
		{"rename", nested, plan.Rename("c/c", "*d*"), strings.Replace(nested, "c <", "*d* <", 1)},
		{"rename with a hard break", "- [ ] a  \r\n  b\r\n", plan.Rename("a", "x"), "- [ ] x  \r\n  b\r\n"},
		{"rename what stands on the next line", "- [ ]\n  a\n", plan.Rename("a", "x"), ""},
		{"rename what goes on", "- [ ] a *b\n  c*\n", plan.Rename("a-b", "x"), "- [ ] x\n  c*\n"},
		{"mark", nested, plan.Marks(map[string]plan.Mark{"c/c": {State: plan.MarkFailed, Attempts: 3}}), strings.Replace(nested, "c/a -->", "c/a --> <!-- lopen: failed, 3 attempts -->", 1)},
		{"mark again", "- [ ] a <!-- lopen: failed, 1 attempt -->\n", plan.Marks(map[string]plan.Mark{"a": {State: plan.MarkInProgress}}), "- [ ] a <!-- lopen: in progress -->\n"},
		{"mark as marked", "- [ ] a <!--lopen:failed-->\n", plan.Marks(map[string]plan.Mark{"a": {State: plan.MarkFailed}}), "- [ ] a <!--lopen:failed-->\n"},
		{"unmark", "- [ ] a <!-- lopen: failed --> <!-- after: b -->  \n", plan.Marks(map[string]plan.Mark{"a": {}}), "- [ ] a <!-- after: b -->  \n"},
		{"mark beside a note at the end", "- [ ] a\n  more\n  <!-- after: b -->\n- [ ] b\n", plan.Marks(map[string]plan.Mark{"a": {State: plan.MarkFailed}}),
			"- [ ] a <!-- lopen: failed -->\n  more\n  <!-- after: b -->\n- [ ] b\n"},
		{"mark what is ticked, and a heading", nested, plan.Marks(map[string]plan.Mark{"c/a/b": {State: plan.MarkFailed}, "c": {State: plan.MarkFailed}}), nested},
		{"mark two", "- [ ] a\n- [ ] b", plan.Marks(map[string]plan.Mark{"a": {State: plan.MarkFailed}, "b": {State: plan.MarkInProgress}}),
			"- [ ] a <!-- lopen: failed -->\n- [ ] b <!-- lopen: in progress -->"},
		{"mark in code", "- [ ] `a\n  b`\n", plan.Marks(map[string]plan.Mark{"a-b": {State: plan.MarkFailed}}), ""},
		{"tick", nested, plan.Boxes(map[string]bool{"c": true, "c/c": true}), strings.Replace(nested, "[ ] c", "[x] c", 1)},
		{"tick what is marked", "- [ ] a <!-- lopen: failed -->\n- [ ] b <!-- lopen: failed -->", plan.Boxes(map[string]bool{"a": true, "b": false}),
			"- [x] a\n- [ ] b <!-- lopen: failed -->"},
		{"move behind", nested, plan.Move("c/a", plan.Place{After: "c/c"}), "## C\n\n\n- [ ] c <!-- after: c/a -->\n- [ ] a\n  more of a\n  - [x] b\n"},
		{"move before", nested, plan.Move("c/c", plan.Place{Before: "c/a"}), "## C\n\n- [ ] c <!-- after: c/a -->\n- [ ] a\n  more of a\n  - [x] b\n\n"},
		{"move out", nested, plan.Move("c/a/b", plan.Place{After: "c/a"}), strings.Replace(nested, "  - [x] b", "- [x] b", 1)},
		{"move under the one before", nested, plan.Move("c/c", plan.Place{Under: "c/a"}), "## C\n\n- [ ] a\n  more of a\n  - [x] b\n  - [ ] c <!-- after: c/a -->\n\n"},
		{"move down", nested, plan.Move("c/a", plan.Place{Under: "c/c"}), "## C\n\n\n- [ ] c <!-- after: c/a -->\n  - [ ] a\n    more of a\n    - [x] b\n"},
		{"rename what others wait for", "- [ ] a\r\n  - [ ] a b\r\n- [ ] c <!-- after: a, a/a-b ,d -->\r\n  - [ ] e\r\n    text\r\n    <!-- After:  a -->\r\n- [ ] d\r\n", plan.Rename("a", "f g"),
			"- [ ] f g\r\n  - [ ] a b\r\n- [ ] c <!-- after: f-g, f-g/a-b ,d -->\r\n  - [ ] e\r\n    text\r\n    <!-- After:  f-g -->\r\n- [ ] d\r\n"},
		{"rename what waits for itself", "- [ ] a <!-- after: b -->\n- [ ] b <!-- after: a -->\n", plan.Rename("a", "c"), "- [ ] c <!-- after: b -->\n- [ ] b <!-- after: c -->\n"},
		{"move what others wait for", "## A\n- [ ] a\n## B\n- [ ] b <!-- lopen: failed --> <!-- after: a/a -->\n", plan.Move("a/a", plan.Place{Under: "b/b"}), "## A\n## B\n- [ ] b <!-- lopen: failed --> <!-- after: a/a -->\n  - [ ] a\n"},
		{"move to another heading what others wait for", "## A\n- [ ] a\n- [ ] z\n## B\n- [ ] b <!-- lopen: failed --> <!-- after: a/a -->\n", plan.Move("a/a", plan.Place{After: "b/b"}), "## A\n- [ ] z\n## B\n- [ ] b <!-- lopen: failed --> <!-- after: b/a -->\n- [ ] a\n"},
		{"remove one of two", "- [ ] a\n- [ ] a\n- [ ] b <!-- after: a-2 -->\n", plan.Remove("a"), "- [ ] a\n- [ ] b <!-- after: a -->\n"},
		{"rename what is named in code as well", "- [ ] a\n- [ ] b <!-- after: a -->\n\n      <!-- after: a -->\n", plan.Rename("a", "c"), "- [ ] c\n- [ ] b <!-- after: a -->\n\n      <!-- after: a -->\n"},
		{"move into a numbered list", "10. [ ] a\n\n- [ ] b\n\tcode\n", plan.Move("b", plan.Place{After: "a"}), "10. [ ] a\n11. [ ] b\n      code\n\n"},
		{"move to where it is", nested, plan.Move("c/c", plan.Place{}), nested},
		{"move from an unended last line", "- [ ] a\n- [ ] b", plan.Move("b", plan.Place{Before: "a"}), "- [ ] b\n- [ ] a\n"},
		{"move to an unended last line", "- [ ] a\n- [ ] b", plan.Move("a", plan.Place{After: "b"}), "- [ ] b\n- [ ] a"},
		{"move within a quote", "> - [ ] a\n> - [ ] b\n", plan.Move("a", plan.Place{After: "b"}), "> - [ ] b\n> - [ ] a\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := edit(tt.src, tt.change)
			if tt.want == "" {
				require.ErrorIs(t, err, plan.ErrTangled)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tt.want, got)
		})
	}
}

func TestEditsRefused(t *testing.T) {
	t.Parallel()
	const src = "## C\n- [ ] a\n  - [x] b\n> - [ ] q\n"
	tests := []struct {
		name   string
		change plan.Change
		want   error
		text   string
	}{
		{"no text", plan.Add("", plan.Place{}), plan.ErrText, `add task: a task's text is one line, not empty, without control characters: ""`},
		{"a comment is no text", plan.Add("<!-- x -->", plan.Place{}), plan.ErrText, ""},
		{"two lines", plan.Rename("c/a", "x\ny"), plan.ErrText, ""},
		{"control characters", plan.Rename("c/a", "x\x1b[31m"), plan.ErrText, ""},
		{"an unknown place", plan.Add("x", plan.Place{Under: "d"}), plan.ErrUnknownTask, `add task: no such task: "d"`},
		{"two places", plan.Add("x", plan.Place{Under: "c", After: "c/a"}), plan.ErrPlace, ""},
		{"beside a heading", plan.Add("x", plan.Place{After: "c"}), plan.ErrPlace, ""},
		{"an unknown task", plan.Remove("d"), plan.ErrUnknownTask, ""},
		{"a heading", plan.Remove("c"), nil, "remove task: c is a heading: edit the plan"},
		{"beneath itself", plan.Move("c/a", plan.Place{Before: "c/a/b"}), plan.ErrPlace, "move task: it cannot go there: that is beneath itself"},
		{"under itself", plan.Move("c/a", plan.Place{Under: "c/a"}), plan.ErrPlace, ""},
		{"out of a quote", plan.Move("c/q", plan.Place{Before: "c/a"}), plan.ErrPlace, "move task: it cannot go there: into or out of a quote"},
		{"no mark", plan.Marks(map[string]plan.Mark{"c/a": {State: "a --> b"}}), nil, `mark tasks: "a --> b" is no mark`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := edit(src, tt.change)
			require.Error(t, err)
			require.Empty(t, got)
			if tt.want != nil {
				require.ErrorIs(t, err, tt.want)
			}
			if tt.text != "" {
				require.EqualError(t, err, tt.text)
			}
		})
	}
}

func TestMarks(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]plan.Mark{
		"failed, 3 attempts":     {State: plan.MarkFailed, Attempts: 3},
		"failed, 1 attempt":      {State: plan.MarkFailed, Attempts: 1},
		"in progress":            {State: plan.MarkInProgress},
		"failed , many attempts": {State: plan.MarkFailed},
		"failed, -1 attempts":    {State: plan.MarkFailed},
		"skipped":                {State: plan.MarkSkipped},
		"passed over":            {},
		"":                       {},
	} {
		task, ok := plan.Parse([]byte("- [ ] a <!-- lopen: " + text + " --> <!-- after: b -->\n")).Task("a")
		require.True(t, ok)
		require.Equal(t, want, task.Mark, text)
		require.Equal(t, []string{"b"}, task.After)
	}
}

// What happened between base and now decides whether a change is made.
func TestConflicts(t *testing.T) {
	t.Parallel()
	const base = "- [ ] a\n  - [ ] b\n- [ ] c\n- [ ] c\n"
	tests := []struct {
		name, now string
		change    plan.Change
		want      string // what the file holds, or the error's text
	}{
		{"another line", "Hello\n\n" + base, plan.Remove("a"), "Hello\n\n- [ ] c\n- [ ] c\n"},
		{"the task is gone", "- [ ] c\n- [ ] c\n", plan.Rename("a/b", "x"), "rename task: no longer in the plan: a/b"},
		{"what is removed was edited", strings.Replace(base, "b\n", "b, well\n", 1), plan.Remove("a"), "remove task: changed by somebody else meanwhile: a"},
		{"what is beneath a renamed task was edited", strings.Replace(base, "b\n", "b, well\n", 1), plan.Rename("a", "x"), "- [ ] x\n  - [ ] b, well\n- [ ] c\n- [ ] c\n"},
		{"one of two equal siblings is gone", "- [ ] a\n  - [ ] b\n- [ ] c\n", plan.Rename("c", "x"), "rename task: changed by somebody else meanwhile: c"},
		{"an equal sibling came", "- [ ] c\n" + base, plan.Boxes(map[string]bool{"c": true, "a": true}), "set boxes: changed by somebody else meanwhile: c"},
		{"an equal one above came", "- [ ] a\n" + base, plan.Marks(map[string]plan.Mark{"a/b": {State: plan.MarkFailed}}), "mark tasks: no longer in the plan: a/b"},
		{"the place is gone", "- [ ] a\n", plan.Add("x", plan.Place{After: "c"}), "add task: no longer in the plan: c"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			fsys, name := folder(t, tt.now)
			p, err := plan.Apply(fsys, file, plan.Parse([]byte(base)), tt.change)
			if err != nil {
				var conflict *plan.ConflictError
				require.ErrorAs(t, err, &conflict)
				require.EqualError(t, err, tt.want)
				if p == nil {
					require.Equal(t, tt.now, read(t, name))
				}
				return
			}
			require.Equal(t, tt.want, read(t, name))
			require.Equal(t, tt.want, string(p.Source()))
		})
	}
}

func TestReload(t *testing.T) {
	t.Parallel()
	fsys, name := folder(t, "- [ ] a\n")
	p, err := plan.Load(fsys, file, nil)
	require.NoError(t, err)
	again, err := plan.Load(fsys, file, p)
	require.NoError(t, err)
	require.Same(t, p, again, "an unchanged file is not parsed again")
	require.NoError(t, writeFile(name, "- [x] a\n"))
	again, err = plan.Load(fsys, file, p)
	require.NoError(t, err)
	require.Equal(t, plan.Parse([]byte("- [x] a\n")), again)
}

// FuzzTick: whatever a file holds, a tick changes exactly one byte, a tick of a
// marked task that and the mark.
func FuzzTick(f *testing.F) {
	f.Add([]byte(sample), 2)
	f.Add([]byte("- [ ] a <!-- lopen: failed -->\r> 1) [ ] b <!--lopen:x--> c"), 1)
	f.Add([]byte("\xef\xbb\xbf- [\t] a\n\n- [ ] [x]: y\n"), 0)
	f.Fuzz(func(t *testing.T, src []byte, n int) {
		p := plan.Parse(src)
		task, ok := pick(p, n)
		if !ok || task.Box < 0 {
			return
		}
		next, err := plan.Boxes(map[string]bool{task.ID: !task.Checked})(p, p)
		require.NoError(t, err)
		after, ok := next.Task(task.ID)
		require.True(t, ok)
		require.Equal(t, !task.Checked, after.Checked)
		require.Equal(t, plan.Parse(next.Source()), next)
		if task.Mark != (plan.Mark{}) && !task.Checked {
			return
		}
		want := bytes.Clone(src)
		want[task.Box] = next.Source()[task.Box]
		require.NotEqual(t, src[task.Box], want[task.Box])
		require.Equal(t, want, next.Source())
	})
}

func pick(p *plan.Plan, n int) (plan.Task, bool) {
	all := p.Tasks()
	if len(all) == 0 {
		return plan.Task{}, false
	}
	return all[int(uint(n)%uint(len(all)))], true
}

// FuzzEdit: whatever a file holds, an edit is refused, or what it made says what
// the model says.
func FuzzEdit(f *testing.F) {
	for op := range uint8(5) {
		f.Add([]byte(sample), op, 2, 5, uint8(0), "x")
		f.Add([]byte("\xef\xbb\xbf- [ ] a\r  ```\r\r1. [ ] b\n   <!-- after: a -->\n===\n> - [ ] \x00"), op, 1, 0, uint8(1), "a `b")
		f.Add([]byte("* [ ] a\n\t+ [x] b\n\n\n\t  c\n*\t[ ] d <!-- lopen: failed -->"), op, 1, 2, uint8(2), "[a]: b")
	}
	f.Fuzz(func(t *testing.T, src []byte, op uint8, n, to int, where uint8, text string) {
		p := plan.Parse(src)
		task, _ := pick(p, n)
		other, _ := pick(p, to)
		var at plan.Place
		switch where % 4 {
		case 0:
			at.Under = other.ID
		case 1:
			at.Before = other.ID
		case 2:
			at.After = other.ID
		}
		next, err := operations(task.ID, at, text)[op%5](p, p)
		if err != nil {
			require.True(t, next == nil || next == p)
			require.Equal(t, src, p.Source())
			return
		}
		require.Equal(t, plan.Parse(next.Source()), next)
		want := modelOf(p)
		want.apply(op%5, task.ID, at)
		require.Equal(t, want.lines(op%5), modelOf(next).lines(op%5), "%q", next.Source())
	})
}

// operations are all edits of a task; model.apply knows them by number.
func operations(id string, at plan.Place, text string) []plan.Change {
	return []plan.Change{
		plan.Add(text, at), plan.Remove(id), plan.Move(id, at), plan.Rename(id, text),
		plan.Marks(map[string]plan.Mark{id: {State: plan.MarkFailed, Attempts: 2}}),
	}
}

// A node is a task of the model: a tree that knows nothing of bytes.
type node struct {
	id, text string
	heading  bool
	below    []*node
}

func modelOf(p *plan.Plan) *node {
	root := &node{heading: true}
	at := map[string]*node{"": root}
	for _, t := range p.Tasks() {
		n := &node{id: t.ID, text: fmt.Sprint(t.Name, t.Checked, t.After), heading: t.Box < 0}
		at[t.ID] = n
		at[t.Parent].below = append(at[t.Parent].below, n)
	}
	return root
}

func (n *node) find(id string) (parent *node, i int) {
	for i, c := range n.below {
		if c.id == id {
			return n, i
		}
		if parent, at := c.find(id); parent != nil {
			return parent, at
		}
	}
	return nil, 0
}

func (n *node) insert(i int, c *node) {
	n.below = append(n.below[:i:i], append([]*node{c}, n.below[i:]...)...)
}

func (n *node) take(id string) *node {
	parent, i := n.find(id)
	taken := parent.below[i]
	parent.below = append(parent.below[:i:i], parent.below[i+1:]...)
	return taken
}

func (n *node) put(c *node, at plan.Place) {
	into := n
	switch {
	case at.Under != "":
		parent, i := n.find(at.Under)
		into = parent.below[i]
	case at.Before != "":
		parent, i := n.find(at.Before)
		parent.insert(i, c)
		return
	case at.After != "":
		parent, i := n.find(at.After)
		parent.insert(i+1, c)
		return
	default:
		if k := len(n.below); k > 0 && n.below[k-1].heading {
			into = n.below[k-1]
		}
	}
	into.below = append(into.below, c)
}

func (n *node) apply(op uint8, id string, at plan.Place) {
	switch op {
	case 0:
		n.put(&node{text: "new"}, at)
	case 1:
		n.take(id)
	case 2:
		if at.Under+at.Before+at.After != id {
			moved := &node{}
			parent, i := n.find(id)
			moved, parent.below[i] = parent.below[i], moved // its place stays until the new one is found
			n.put(moved, at)
			n.take("")
		}
	}
}

// lines flattens the model. A component without items is none, and a new text is
// whatever it is.
func (n *node) lines(op uint8) (all []string) {
	var walk func(n *node, depth int)
	walk = func(n *node, depth int) {
		for _, c := range n.below {
			if c.heading && len(c.below) == 0 {
				continue
			}
			if !c.heading {
				all = append(all, strings.Repeat(" ", depth)+map[bool]string{true: c.text}[op == 1 || op == 2 || op == 4])
			} else {
				all = append(all, "#"+c.text)
			}
			walk(c, depth+1)
		}
	}
	walk(n, 0)
	if op == 0 { // the new task may be the first of its component
		all = dropHeadings(all)
	}
	return all
}

func dropHeadings(lines []string) (others []string) {
	for _, l := range lines {
		if !strings.HasPrefix(l, "#") {
			others = append(others, strings.TrimLeft(l, " "))
		}
	}
	return others
}
