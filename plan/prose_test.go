package plan_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/plan"
)

const prosePlan = `---
x: y
---
# Title

<!-- lopen:from specs/001/tasks.md -->

**Input**: a design

## Format

- plain

## Phase 1

**Goal**: set up

- [ ] one
  of one

Now the client:

- [ ] two
- [ ] three
  - [ ] four

A word on three.

- [ ] five

**Checkpoint**: it runs

### Deeper

Files: b.go

- [ ] six

## Notes

Nobody is told.
`

func linesOf(all []plan.Passage) (lines []string) {
	for _, a := range all {
		lines = append(lines, fmt.Sprintf("%d-%d %s", a.Line, a.End, strings.ReplaceAll(a.Text, "\n", "|")))
	}
	return lines
}

func TestProse(t *testing.T) {
	t.Parallel()
	const head = "14-16 ## Phase 1||**Goal**: set up"
	const end = "31-31 **Checkpoint**: it runs"
	for _, eol := range []string{"\n", "\r\n", "\r"} {
		p := plan.Parse([]byte(strings.ReplaceAll(prosePlan, "\n", eol)))
		require.Equal(t, "specs/001/tasks.md", p.Origin())
		require.Equal(t, "specs/001", p.Folder())
		require.Equal(t, []string{"8-12 **Input**: a design||## Format||- plain"}, linesOf([]plan.Passage{p.Intro()}))
		for id, want := range map[string][]string{
			"phase-1":            {head, end},
			"phase-1/one":        {head, "21-21 Now the client:", end},
			"phase-1/two":        {head, "21-21 Now the client:", end},
			"phase-1/three":      {head, "21-21 Now the client:", "27-27 A word on three.", end},
			"phase-1/three/four": {head, "21-21 Now the client:", "27-27 A word on three.", end},
			"phase-1/five":       {head, "27-27 A word on three.", end},
			"deeper/six":         {head, end, "33-35 ### Deeper||Files: b.go"},
			"none":               nil,
		} {
			require.Equal(t, want, linesOf(p.Around(id)), "%s %q", id, eol)
		}
	}
}

func TestProseOfOtherPlans(t *testing.T) {
	t.Parallel()
	tests := []struct {
		src, id, origin, intro string
		around                 []string
	}{
		{"- [ ] a\n", "a", "", "", nil},
		{"x\n\n- [ ] a\n", "a", "", "1-1 x", nil},
		{"\ufeff# T\n\nx\n\n- [ ] a\n\ny\n", "a", "", "3-3 x", []string{"7-7 y"}},
		{"# T\n\n<!-- lopen:from a.md -->\n\n- [ ] a\n", "a", "a.md", "", nil},
		{"# T\n\n## Tasks\n\nx\n\n- [ ] a\n", "a", "", "", []string{"3-5 ## Tasks||x"}},
		{"# A\n\nx\n\n- [ ] a\n\n# B\n\ny\n\n- [ ] b\n", "b/b", "", "", []string{"7-9 # B||y"}},
		{"- Group\n  - [ ] a\n  - [ ] b\n", "b", "", "1-1 - Group", nil},
		{"- [ ] a\n\n---\n\n- [ ] b\n", "b", "", "", nil},
		{"# T\n\ntext\n\n<!-- lopen:from a.md -->\n\n- [ ] a\n", "a", "", "3-5 text||<!-- lopen:from a.md -->", nil},
		{"text\n", "a", "", "", nil},
		{"\xff\n\nx\xff\n\n- [ ] a\n", "a", "", "1-3 \ufffd||x\ufffd", nil},
	}
	for _, tt := range tests {
		p := plan.Parse([]byte(tt.src))
		require.Equal(t, tt.origin, p.Origin(), "%q", tt.src)
		intro := ""
		if i := p.Intro(); i != (plan.Passage{}) {
			intro = linesOf([]plan.Passage{i})[0]
		}
		require.Equal(t, tt.intro, intro, "%q", tt.src)
		require.Equal(t, tt.around, linesOf(p.Around(tt.id)), "%q", tt.src)
	}
}

func TestOrigin(t *testing.T) {
	t.Parallel()
	made := []byte("# Plan: m\n\nT\n\nx\n\n- [ ] a\n")
	with := plan.WithOrigin(made, "a b/tasks.md")
	require.Equal(t, "# Plan: m\n\n<!-- lopen:from a b/tasks.md -->\n\nT\n\nx\n\n- [ ] a\n", string(with))
	require.Equal(t, "a b/tasks.md", plan.Parse(with).Origin())
	for _, none := range []string{"", "a--b", "a\nb", "\xff", "a\x1bb"} {
		require.Equal(t, string(made), string(plan.WithOrigin(made, none)), "%q", none)
	}
}

// A passage is what its lines hold, whatever the plan is.
func FuzzProse(f *testing.F) {
	f.Add([]byte(prosePlan))
	f.Add([]byte("> - [ ] a\n> b\n\n- - [ ] c\n# d\n"))
	f.Fuzz(func(t *testing.T, src []byte) {
		p := plan.Parse(src)
		all := []plan.Passage{p.Intro()}
		for task := range p.All() {
			all = append(all, p.Around(task.ID)...)
		}
		lines := strings.Split(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(string(src)), "\n")
		for _, a := range all {
			if a == (plan.Passage{}) {
				continue
			}
			have := strings.ToValidUTF8(strings.Join(lines[a.Line-1:a.End], "\n"), "\ufffd")
			require.Equal(t, strings.TrimRight(have, " \t\n"), strings.TrimRight(a.Text, " \t\n"))
		}
	})
}
