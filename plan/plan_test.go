package plan_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lopen-dev/lopen/plan"
)

const sample = `# Plan: auth

Some prose.

## Auth Controller

- [x] Add a login form
- [ ] Add JWT validation
  Use RS256, see [Tokens](SPECIFICATION.md#tokens).
  - [x] Read the key
  - [ ] Refuse expired tokens <!-- after: auth-controller/add-a-login-form, session-store -->

## [Session Store](SPECIFICATION.md#store)

### Tasks

1. [ ] Keep sessions
`

// outline prints each task as "kind id line depth component <- after".
func outline(p *plan.Plan) []string {
	var out []string
	for _, t := range p.Tasks() {
		s := fmt.Sprintf("%s %s %d", t.Kind, t.ID, t.Line)
		if t.Checked {
			s += " done"
		}
		if len(t.After) > 0 {
			s += " after " + strings.Join(t.After, " ")
		}
		out = append(out, s)
	}
	return out
}

func TestParse(t *testing.T) {
	t.Parallel()
	p := plan.Parse([]byte(sample))
	require.Equal(t, "Plan: auth", p.Title())
	require.Equal(t, []string{"auth-controller", "session-store"}, p.Roots())
	require.Equal(t, []string{
		"component auth-controller 5",
		"task auth-controller/add-a-login-form 7 done",
		"task auth-controller/add-jwt-validation 8",
		"subtask auth-controller/add-jwt-validation/read-the-key 10 done",
		"subtask auth-controller/add-jwt-validation/refuse-expired-tokens 11 after auth-controller/add-a-login-form session-store",
		"component session-store 13",
		"task session-store/keep-sessions 17",
	}, outline(p))
	jwt, ok := p.Task("auth-controller/add-jwt-validation")
	require.True(t, ok)
	require.Equal(t, plan.Task{
		ID: "auth-controller/add-jwt-validation", Kind: plan.KindTask, Name: "Add JWT validation", Line: 8, Box: strings.Index(sample, "] Add JWT") - 1,
		Details: "Use RS256, see [Tokens](SPECIFICATION.md#tokens).", Links: []string{"SPECIFICATION.md#tokens"},
		Parent: "auth-controller", Component: "auth-controller", Depth: 1,
		Children: []string{"auth-controller/add-jwt-validation/read-the-key", "auth-controller/add-jwt-validation/refuse-expired-tokens"},
	}, jwt)
	sub, _ := p.Task("auth-controller/add-jwt-validation/read-the-key")
	require.Equal(t, jwt.Links, sub.Links)
	keep, _ := p.Task("session-store/keep-sessions")
	require.Equal(t, []string{"SPECIFICATION.md#store"}, keep.Links)
	done, total := p.Progress()
	require.Equal(t, []int{2, 4}, []int{done, total})
	_, ok = p.Task("nothing")
	require.False(t, ok)
}

func TestStructure(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("word ", 20)
	tests := []struct {
		name, src string
		want      []string
	}{
		{"no heading", "- [ ] a\n", []string{"task a 1"}},
		{"no tasks", "# T\n\n## A\n\n- a\n", nil},
		{"under the title", "# T\n- [ ] a\n", []string{"task a 2"}},
		{"two of level 1", "# A\n- [ ] a\n# B\n- [ ] b\n", []string{"component a 1", "task a/a 2", "component b 3", "task b/b 4"}},
		{"level 1 that is not first", "## A\n- [ ] a\n# B\n- [ ] b\n", []string{"component a 1", "task a/a 2", "component b 3", "task b/b 4"}},
		{"structural headings", "# T\n## Components\n### A\n#### Acceptance Criteria\n- [ ] a\n## 2. TASKS:\n- [ ] b\n",
			[]string{"component a 3", "task a/a 5", "task b 7"}},
		{"a component in a component", "## A\n### B\n- [ ] b\n### Tasks\n- [ ] a\n", []string{"component b 2", "task b/b 3", "component a 1", "task a/a 5"}},
		{"a heading without items of its own", "## A\n### B\n- [ ] b\n", []string{"component b 2", "task b/b 3"}},
		{"equal components", "## A\n- [ ] a\n## A\n- [ ] a\n", []string{"component a 1", "task a/a 2", "component a-2 3", "task a-2/a 4"}},
		{"equal siblings", "- [ ] a\n- [ ] a\n- [ ] A!\n", []string{"task a 1", "task a-2 2", "task a-3 3"}},
		{"a number by name", "- [ ] a\n- [ ] a\n- [ ] a 2\n- [ ] a\n", []string{"task a 1", "task a-3 2", "task a-2 3", "task a-4 4"}},
		{"two numbers by name", "- [ ] a 2\n- [ ] a 2\n- [ ] a\n", []string{"task a-2 1", "task a-2-2 2", "task a 3"}},
		{"equal under different parents", "- [ ] a\n  - [ ] c\n- [ ] b\n  - [ ] c\n", []string{"task a 1", "subtask a/c 2", "task b 3", "subtask b/c 4"}},
		{"an item named as a component", "- [ ] A\n\n## A\n- [ ] b\n", []string{"task a 1", "component a-2 3", "task a-2/b 4"}},
		{"without text", "- [ ]\n- [ ] !\n", []string{"task item 1", "task item-2 2"}},
		{"long names are cut between words", "- [ ] " + long + "\n", []string{"task " + strings.Repeat("word-", 12) + "word 1"}},
		{"long words are cut between letters", "- [ ] " + strings.Repeat("é", 40) + "\n", []string{"task " + strings.Repeat("é", 32) + " 1"}},
		{"a long word behind a short one", "- [ ] x " + strings.Repeat("é", 40) + "\n", []string{"task x-" + strings.Repeat("é", 31) + " 1"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.want, outline(plan.Parse([]byte(tt.src))))
		})
	}
}

// words draws plans whose texts collide as often as possible.
func drawPlan(t *rapid.T) string {
	var b strings.Builder
	depth := 0
	for range rapid.IntRange(0, 30).Draw(t, "lines") {
		name := rapid.SampledFrom([]string{"a", "a 2", "a-2", "a 3", "a 2 2", "b", "", "Tasks"}).Draw(t, "name")
		if rapid.IntRange(0, 5).Draw(t, "heading") == 0 {
			fmt.Fprintf(&b, "\n%s %s\n\n", strings.Repeat("#", rapid.IntRange(1, 3).Draw(t, "level")), name)
			depth = 0
			continue
		}
		d := rapid.IntRange(0, depth).Draw(t, "depth")
		fmt.Fprintf(&b, "%s- [%s] x%s\n", strings.Repeat("  ", d), rapid.SampledFrom([]string{" ", "x"}).Draw(t, "box"), name)
		depth = d + 1
	}
	return b.String()
}

func TestTreeIsSound(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		src := drawPlan(rt)
		p := plan.Parse([]byte(src))
		seen := map[string]plan.Task{}
		for _, task := range p.Tasks() {
			require.NotContains(rt, seen, task.ID)
			if task.Parent == "" {
				require.Contains(rt, p.Roots(), task.ID)
				require.Zero(rt, task.Depth)
			} else {
				parent, ok := seen[task.Parent]
				require.True(rt, ok, "%s comes before its parent", task.ID)
				require.Contains(rt, parent.Children, task.ID)
				require.Equal(rt, parent.Depth+1, task.Depth)
				require.Equal(rt, parent.Component, task.Component)
				require.Equal(rt, task.Parent, task.ID[:strings.LastIndexByte(task.ID, '/')])
			}
			seen[task.ID] = task
		}
		require.Equal(rt, strings.Count(src, "- ["), len(seen)-components(p))
	})
}

func components(p *plan.Plan) int {
	n := 0
	for _, t := range p.Tasks() {
		if t.Kind == plan.KindComponent {
			n++
		}
	}
	return n
}

// An ID does not depend on tasks with other names.
func TestIDsSurviveOthers(t *testing.T) {
	t.Parallel()
	more := strings.Replace(sample, "- [x] Add a login form\n", "- [ ] Something else\n", 1)
	more = strings.Replace(more, "- [ ] Add JWT", "- [ ] Another\n- [x] Add JWT", 1)
	p := plan.Parse([]byte(more))
	for _, id := range []string{"auth-controller/add-jwt-validation/read-the-key", "session-store/keep-sessions"} {
		_, ok := p.Task(id)
		require.True(t, ok, id)
	}
}

func TestToggle(t *testing.T) {
	t.Parallel()
	src := []byte("- [ ] a\n- [X] b\n[x [y ]\n")
	require.Equal(t, "- [x] a\n- [ ] b\n[x [y ]\n", string(plan.Toggle(src, map[int]bool{3: true, 11: false})))
	require.Equal(t, string(src), string(plan.Toggle(src, map[int]bool{3: false, 11: true, 5: true, 17: false, 18: true, 19: true, 0: true, -1: true, 21: true, 99: true})))
	require.Equal(t, "- [ ] a\n- [X] b\n[x [y ]\n", string(src), "the input is left alone")
}

func TestClosure(t *testing.T) {
	t.Parallel()
	src := "## C\n- [ ] p\n  - [x] a\n  - [ ] q\n    - [ ] b\n    - [x] c\n- [x] r\n  - [x] d\n"
	p := plan.Parse([]byte(src))
	tests := []struct {
		id     string
		ticked bool
		want   map[string]bool
	}{
		{"c/p/q/b", true, map[string]bool{"c/p/q/b": true, "c/p/q": true, "c/p": true}},
		{"c/p/a", true, map[string]bool{"c/p/a": true}},
		{"c/p", true, map[string]bool{"c/p": true, "c/p/a": true, "c/p/q": true, "c/p/q/b": true, "c/p/q/c": true}},
		{"c/p/q", true, map[string]bool{"c/p": true, "c/p/q": true, "c/p/q/b": true, "c/p/q/c": true}},
		{"c/r/d", false, map[string]bool{"c/r": false, "c/r/d": false}},
		{"c/r", false, map[string]bool{"c/r": false, "c/r/d": false}},
		{"c", true, map[string]bool{"c/p": true, "c/p/a": true, "c/p/q": true, "c/p/q/b": true, "c/p/q/c": true, "c/r": true, "c/r/d": true}},
		{"nothing", true, map[string]bool{}},
	}
	for _, tt := range tests {
		require.Equal(t, tt.want, plan.Closure(p, tt.id, tt.ticked), "%s %v", tt.id, tt.ticked)
	}
}

// After a closure was applied, a box is ticked if and only if all leaves beneath
// it are, provided that it was so before.
func TestClosureKeepsParentsTrue(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		p := plan.Parse([]byte(drawPlan(rt)))
		all := p.Tasks()
		if len(all) == 0 {
			return
		}
		for _, task := range all { // begin with nothing ticked
			p = apply(p, plan.Closure(p, task.ID, false))
		}
		for range rapid.IntRange(1, 8).Draw(rt, "steps") {
			task := all[rapid.IntRange(0, len(all)-1).Draw(rt, "task")]
			ticked := rapid.Bool().Draw(rt, "ticked")
			p = apply(p, plan.Closure(p, task.ID, ticked))
			for _, leaf := range p.Tasks() {
				if within(leaf.ID, task.ID) && leaf.Box >= 0 {
					require.Equal(rt, ticked, leaf.Checked, leaf.ID)
				}
				if leaf.Box < 0 || len(leaf.Children) == 0 {
					continue
				}
				every := true
				for _, c := range leaf.Children {
					child, _ := p.Task(c)
					every = every && child.Checked
				}
				require.Equal(rt, every, leaf.Checked, leaf.ID)
			}
		}
	})
}

func within(id, above string) bool { return id == above || strings.HasPrefix(id, above+"/") }

func apply(p *plan.Plan, want map[string]bool) *plan.Plan {
	boxes := map[int]bool{}
	for id, ticked := range want {
		t, _ := p.Task(id)
		boxes[t.Box] = ticked
	}
	return plan.Parse(plan.Toggle(p.Source(), boxes))
}

func TestFind(t *testing.T) {
	t.Parallel()
	p := plan.Parse([]byte(sample + "- [ ] Keep\n- [ ] Keep more\n- [ ] :7\n"))
	for query, want := range map[string]string{
		"session-store/keep-sessions": "session-store/keep-sessions",
		"jwt":                         "auth-controller/add-jwt-validation",
		":8":                          "auth-controller/add-jwt-validation",
		":5":                          "auth-controller",
		"keep":                        "session-store/keep",
		" EXPIRED ":                   "auth-controller/add-jwt-validation/refuse-expired-tokens",
		"add-jwt-validation":          "auth-controller/add-jwt-validation",
		"Validation/Refuse":           "auth-controller/add-jwt-validation/refuse-expired-tokens",
		"controller":                  "auth-controller",
		"jwt-val":                     "auth-controller/add-jwt-validation",
	} {
		task, err := p.Find(query)
		require.NoError(t, err, query)
		require.Equal(t, want, task.ID, query)
	}
	_, err := p.Find("add")
	var many *plan.AmbiguousError
	require.ErrorAs(t, err, &many)
	require.Equal(t, []string{"auth-controller/add-a-login-form", "auth-controller/add-jwt-validation"}, many.Candidates)
	require.EqualError(t, err, `find task: "add" could be any of auth-controller/add-a-login-form, auth-controller/add-jwt-validation`)
	for query, message := range map[string]string{
		"nothing": `find task: no such task: "nothing"`,
		":9":      "find task: no such task on line 9",
		" ":       "find task: no such task: the name is empty",
	} {
		_, err := p.Find(query)
		require.ErrorIs(t, err, plan.ErrUnknownTask)
		require.EqualError(t, err, message)
	}
	many = &plan.AmbiguousError{Query: "q", Candidates: strings.Split(strings.Repeat("c ", 12), " ")[:12]}
	require.ErrorContains(t, many, "c, c and 2 more")
}

func TestValuesAreCopies(t *testing.T) {
	t.Parallel()
	src := []byte(sample)
	p := plan.Parse(src)
	src[0] = 'X'
	p.Tasks()[0].ID = "changed"
	p.Roots()[0] = "changed"
	p.Source()[1] = 'X'
	require.Equal(t, sample, string(p.Source()))
	require.Equal(t, "auth-controller", p.Tasks()[0].ID)
	require.Equal(t, "auth-controller", p.Roots()[0])
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(sample))
	f.Add([]byte("# A\n# A\n- [ ] x <!-- after: a,, b -->\r\n> - [ ] \xff"))
	f.Fuzz(func(t *testing.T, src []byte) {
		p := plan.Parse(src)
		seen := map[string]bool{}
		for _, task := range p.Tasks() {
			require.False(t, seen[task.ID], task.ID)
			seen[task.ID] = true
			require.True(t, utf8.ValidString(task.ID) && utf8.ValidString(task.Name) && utf8.ValidString(task.Details))
			require.True(t, task.Parent == "" || seen[task.Parent])
		}
	})
}

func ExamplePlan_Find() {
	p := plan.Parse([]byte("# Plan\n\n## Auth Controller\n\n- [x] Add a login form\n- [ ] Add JWT validation\n"))
	t, err := p.Find("jwt")
	fmt.Println(t.ID, err)
	_, err = p.Find("add")
	fmt.Println(err)
	// Output:
	// auth-controller/add-jwt-validation <nil>
	// find task: "add" could be any of auth-controller/add-a-login-form, auth-controller/add-jwt-validation
}
