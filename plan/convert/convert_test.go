package convert_test

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lopen-dev/lopen/plan"
	"github.com/lopen-dev/lopen/plan/convert"
	"github.com/lopen-dev/lopen/plan/markdown"
)

func TestPlan(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, src, want string }{
		{"TODO", "prose\n\n* [ ] a\n  b\n\n   c\n1) [X] **d** <!-- after: a -->\n",
			"# Plan: m\n\nprose\n\n- [ ] a\n  b\n\n   c\n- [x] **d** <!-- after: a -->\n"},
		{"Spec Kit", "---\ndescription: \"x\"\n---\n# Tasks: F\n\n## Format: `[ID]`\n- plain\n\n## Phase 1: Setup\n\n- [ ] T001 Create `src/`\n- [x] T002 [P] Init\n\n---\n\n### Tests\n- [ ] T003 t\n## Notes\n",
			"# Plan: m\n\nTasks: F\n\n## Format: `[ID]`\n\n- plain\n\n## Phase 1: Setup\n\n- [ ] T001 Create `src/`\n- [x] T002 Init\n  Spec Kit: [P]\n\n---\n\n### Tests\n\n- [ ] T003 t\n\n## Notes\n"},
		{"items in a list without boxes", "- Group\n  - [ ] a\n    b\n\n  more\n- Other\n  - [ ] c\n",
			"# Plan: m\n\n- Group\n\n- [ ] a\n  b\n\nmore\n- Other\n\n- [ ] c\n"},
		{"prose between items", "a\r\n\r\n- [ ] b\r\n\r\nc\r\n\r\n- [ ] d\r\n\r\ne", "# Plan: m\n\na\n\n- [ ] b\n\nc\n\n- [ ] d\n\ne\n"},
		{"prose that would be an item", "- [ ] a\n\n# x\n\n    - [ ] code\n\n<!-- open\n", "# Plan: m\n\n- [ ] a\n\nx\n\n    - [ ] code\n\n<!-- open\n"},
		{"a title that would be an item", "# - [ ] t\n\n- [ ] a\n", "# Plan: m\n\n```text\n- [ ] t\n```\n\n- [ ] a\n"},
		{"Kiro", "# Implementation Plan\n\n- [x] 1. Set up\n  - Create it\n  - _Requirements: 1.1_\n\n  - [-] 1.1 Now\n    - d\n  - [ ]* 1.2 Tests\n- [ ] 2. Next\n",
			"# Plan: m\n\nImplementation Plan\n\n- [x] 1. Set up\n  - Create it\n  - _Requirements: 1.1_\n\n  - (optional) 1.2 Tests\n  - [ ] 1.1 Now\n    - d\n- [ ] 2. Next\n"},
		{"two titles", "# A\n- [ ] a\n# B\n###### C\n- [ ] b\n",
			"# Plan: m\n\n## A\n\n- [ ] a\n\n## B\n\n###### C\n\n- [ ] b\n"},
		{"carriage returns, tabs and quotes", "T\r\n-\r\n> -\t[ ] a\r\n>\tb\r\n", "# Plan: m\n\n## T\n\n- [ ] a\n  b\n"},
		{"details that would be an underline", "- [ ] a\n\n  ---\n", "# Plan: m\n\n- [ ] a\n\n  ---\n"},
		{"details that would be a table", "- [ ] a\n  - [ ] b | c\n\n    :- | -\n", "# Plan: m\n\n- [ ] a\n  - [ ] b | c\n\n    :- | -\n"},
		{"a fence that would swallow an item", "- [ ] a\n  - [ ] b\n\n  ```\n- [ ] c\n", "# Plan: m\n\n- [ ] a\n\n  ````text\n  ```\n  ````\n  - [ ] b\n- [ ] c\n"},
		{"what depends on nothing", "- [ ] T001 a\n- [ ] T002 does not depend on T001\n- [ ] T003 no dependencies: T001\n- [ ] T004 isn't blocked by T001\n- [ ] T005 not done, depends on T001\n",
			"# Plan: m\n\n- [ ] T001 a\n- [ ] T002 does not depend on T001\n- [ ] T003 no dependencies: T001\n- [ ] T004 isn't blocked by T001\n- [ ] T005 not done, depends on T001 <!-- after: t001-a -->\n"},
		{"an order that is noted already", "- [ ] T001 a\n- [ ] T002 b\n- [ ] T003 c depends on T001, T002 <!-- after: t002-b -->\n",
			"# Plan: m\n\n- [ ] T001 a\n- [ ] T002 b\n- [ ] T003 c depends on T001, T002 <!-- after: t002-b --> <!-- after: t001-a -->\n"},
		{"titles with marks", `[{"number": 1, "title": "a <!-- lopen: skipped -->"}, {"number": 2, "title": "b <!--LOPEN: failed -->", "body": "- [ ] c"}]`,
			"# Plan: m\n\n- [ ] #1 a \\<!-- lopen: skipped -->\n- [ ] #2 b \\<!--LOPEN: failed -->\n  - [ ] c\n"},
		{"a heading Task list", "# R\n\n- [ ] a\n\n## Task list:\n\n- [ ] b\n\n## Task breakdown:\n\n- [ ] c\n\n## Iteration plan:\n",
			"# Plan: m\n\nR\n\n- [ ] a\n\n## Task list:\n\n- [ ] b\n\n## Task breakdown:\n\n- [ ] c\n\n## Iteration plan:\n"},
		{"without text", "- [x]\n- [ ] a\n- [ ]\n  - [ ] b\n", "# Plan: m\n\n- (empty, done)\n\n- [ ] a\n- [ ]\n  - [ ] b\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := convert.Plan(" m\n", []byte(tt.src))
			require.NoError(t, err)
			require.Equal(t, tt.want, string(got.Content))
			require.Equal(t, "Plan: m", plan.Parse(got.Content).Title())
		})
	}
}

// Front matter is the tool's own, and what of it is left out is named.
func TestFrontMatterIsNamed(t *testing.T) {
	t.Parallel()
	for src, want := range map[string][]plan.Remark{
		"\ufeff---\r\na: b\r\n---\r\n- [ ] c\r\n": {{Line: 1, Text: "lines 1 to 3 are front matter, and are left out"}},
		"---\n\n- [ ] c\n":                        nil,
		"[\n{\"number\": 7, \"title\": \"t\", \"body\": \"---\\na: b\\n---\\n- [ ] c\"}]": {{Line: 2, Text: "#7, its body: lines 1 to 3 are front matter, and are left out"}},
	} {
		made, err := convert.Plan("m", []byte(src))
		require.NoError(t, err)
		require.Equal(t, want, made.Notes, src)
	}
}

func TestUnusable(t *testing.T) {
	t.Parallel()
	for src, want := range map[string]string{
		"- [ ] a\n- [ ] b\x00c\n":                                  "line 2: a NUL byte",
		"# T\n- [ ] a\n- [ ] " + strings.Repeat("x", 40000) + "\n": "line 3: a text of 40000 bytes",
		"- [ ] a\n- [ ] b\n" + strings.Repeat("  - c\n", 50_000):   "line 2: a list item or block of more than 100000 lines",
	} {
		_, err := convert.Plan("m", []byte(src))
		require.ErrorContains(t, err, want)
		require.ErrorIs(t, err, plan.ErrUnusable)
	}
	_, err := convert.FromCriteria("m", []byte("## Acceptance Criteria\n\n- a\n- b\x00\n"))
	require.ErrorContains(t, err, "line 4: a NUL byte")
}

func TestTooManyBoxes(t *testing.T) {
	t.Parallel()
	for src, line := range map[string]string{
		"a\n" + strings.Repeat("[ ]\n", 100_001):                 "line 100002: more than 100000 boxes",
		"[\n" + strings.Repeat("{},\n", 100_000) + "{}]\n":       "line 100002: more than 100000 boxes",
		`[{"title":"a","x":` + strings.Repeat("[", 70) + "\n1\n": "line 1: byte 82: a value of more than 64 levels",
	} {
		_, err := convert.Plan("m", []byte(src))
		require.ErrorContains(t, err, line)
	}
}

func TestPlanWithoutBoxes(t *testing.T) {
	t.Parallel()
	_, err := convert.Plan("m", []byte("# A\n## B\n- c\n"))
	require.ErrorIs(t, err, convert.ErrNoTasks)
	require.ErrorContains(t, err, "2 headings")
	_, err = convert.Plan("m", []byte("# A\n"))
	require.ErrorContains(t, err, "1 heading")
}

func TestFromCriteria(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, src, want string }{
		{"boxes", "# Spec\n- [ ] not one\n## Acceptance Criteria\n\ntext\n- [ ] a\n  - [x] b\n- [x] c\n- plain\n## Other\n- [ ] no\n",
			"# Plan: m\n\n- [ ] a\n  - [x] b\n- [x] c\n- [ ] plain\n"},
		{"plain items", "# Spec\n## 4. Acceptance criteria\n1. a\n   - given\n   - then\n2. b\n", "# Plan: m\n\n- [ ] a\n  - given\n  - then\n- [ ] b\n"},
		{"components", "# Spec\n## A\n### Acceptance Criteria\n- [ ] a\n## B\n### Acceptance Criteria\n- b\n## C\n- [ ] no\n",
			"# Plan: m\n\n## A\n\n- [ ] a\n\n## B\n\n- [ ] b\n"},
		{"headings below", "# Spec\n## Acceptance Criteria\n### A\n- [ ] a\n  - [ ] b\n### B\n- [ ] c\n",
			"# Plan: m\n\n### A\n\n- [ ] a\n  - [ ] b\n\n### B\n\n- [ ] c\n"},
		{"nested after another section", "# Spec\n## A\n### Acceptance Criteria\n- [ ] a\n## B\n- [ ] no\n### Acceptance Criteria\n- [ ] b\n  - [ ] c\n    - [ ] d\n",
			"# Plan: m\n\n## A\n\n- [ ] a\n\n## B\n\n- [ ] b\n  - [ ] c\n    - [ ] d\n"},
		{"criteria in criteria", "# Spec\n## Acceptance Criteria\n- [ ] a\n### Acceptance Criteria\n- [ ] b\n", "# Plan: m\n\n- [ ] a\n\n- [ ] b\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := convert.FromCriteria("m", []byte(tt.src))
			require.NoError(t, err)
			require.Equal(t, tt.want, string(got))
		})
	}
	_, err := convert.FromCriteria("m", []byte("# Spec\n- [ ] a\n"))
	require.ErrorIs(t, err, convert.ErrNoTasks)
	require.ErrorContains(t, err, "none of 1 heading is called Acceptance Criteria")
	_, err = convert.FromCriteria("m", []byte("# Spec\n## Acceptance Criteria\ntext\n"))
	require.ErrorIs(t, err, convert.ErrNoTasks)
	require.ErrorContains(t, err, "no list item")
}

// The same examples in every run; -rapid.seed 0 draws others.
func init() { _ = flag.Set("rapid.seed", "1") }

// drawPlan draws headings and items, nested.
func drawPlan(t *rapid.T) string {
	var b strings.Builder
	depth := 0
	for range rapid.IntRange(0, 30).Draw(t, "lines") {
		name := rapid.SampledFrom([]string{"a", "a 2", "b", "", "Tasks"}).Draw(t, "name")
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

// Whatever a list is, each box is a task or named, and none is both.
func TestNothingIsLost(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		requireWhole(rt, []byte(drawPlan(rt)))
	})
}

func FuzzPlan(f *testing.F) {
	f.Add([]byte("- [ ] a\n  - [ ] b\n\n  ```\n- [ ] c\n"))
	f.Add([]byte("# A\n\n> - [ ] a\n>   <!-- x\n> - [x] b\n\nT\n=\n1. [ ] c\n   ---\n"))
	f.Add([]byte("- [ ] <div>\n  <pre>\n- [x] b\n\t- [ ] a | b\n\t  -|-\n"))
	f.Add([]byte("- [-] 1. a\n  - [ ]* 1.1 b (depends on 1)\n- [>] c\n- [ ] ~~d~~\n- [ ]\n### Task 1: x\n- [ ] e [ ]\n## Success criteria\n- [x] f\n"))
	f.Add([]byte("- [ ] T001 [P] [US1] a, depends on T002-T004\n- [ ] T002 b (blocked by #1)\n- [ ] [P] T003 c <!-- after: x -->\n  <!-- after: y -->\n"))
	f.Add([]byte(`{"name":"x","userStories":[{"id":"US-1","title":"a","acceptanceCriteria":["- [ ] b"],"priority":2,"passes":true,"dependencies":["US-2"]},{"id":2,"title":"- [ ] c","description":"- [ ] d\n` + "```" + `"}]}`))
	f.Add([]byte(`[{"number":3,"title":"a","body":"# T\n- [ ] b\n\nblocked by #1\n- [-] c","state":"OPEN","labels":[{"name":"x"}]},{"number":1,"title":"b","body":null,"state":"CLOSED"}]`))
	f.Fuzz(func(t *testing.T, src []byte) { requireWhole(t, src) })
}

func requireWhole(t require.TestingT, src []byte) {
	made, err := convert.Plan("m", src)
	if err != nil && made.Boxes == 0 {
		return // refused, or nothing in it
	}
	p := plan.Parse(made.Content)
	tasks := slices.DeleteFunc(p.Tasks(), func(t plan.Task) bool { return t.Box < 0 })
	require.Len(t, tasks, made.Boxes-len(made.Left), "%s\n%v", made.Content, made.Left)
	require.Len(t, tasks, made.Tasks)
	require.NoError(t, p.Usable())
	for _, r := range made.Notes {
		if !strings.Contains(r.Text, "left out") {
			require.Contains(t, r.Text, "depends on", "no text is lost: %s", made.Content)
		}
	}
	if !made.Markdown {
		return
	}
	// What the parser takes for a task is one of the boxes.
	require.GreaterOrEqual(t, made.Boxes, markdown.Parse(src).NumItems())
	last := 0
	for _, r := range made.Left {
		require.Greater(t, r.Line, last, "a line is named once")
		require.NotEmpty(t, r.Text)
		last = r.Line
	}
}

func ExamplePlan() {
	out, err := convert.Plan("auth", []byte("# TODO\n\nLater:\n\n## Login\n\n* [x] Form\n* [ ] JWT\n  RS256 only\n"))
	fmt.Printf("%s%v", out.Content, err)
	// Output:
	// # Plan: auth
	//
	// TODO
	//
	// Later:
	//
	// ## Login
	//
	// - [x] Form
	// - [ ] JWT
	//   RS256 only
	// <nil>
}

// The tasks.json of Task Master before it had tags, and what is no list of its.
func TestTaskMaster(t *testing.T) {
	t.Parallel()
	made, err := convert.Plan("m", []byte(`{"tasks": [{"id": 1, "title": "a", "status": "done"}, {"id": 2, "title": "b", "dependencies": [1]}], "metadata": {"v": 1}}`))
	require.NoError(t, err)
	require.Equal(t, "Task Master", made.Kind)
	require.Equal(t, "# Plan: m\n\n- [x] 1: a\n- [ ] 2: b <!-- after: 1-a -->\n  Depends on: 1\n", string(made.Content))
	require.Equal(t, []plan.Remark{{Line: 1, Text: `left out: metadata: {"v":1}`}}, made.Notes)
	for src, want := range map[string]string{
		`{"tasks": [{"id": 1}]}`: "line 1: a story without a title",
		"{\"tasks\": [\n{\"id\": 1, \"title\": \"a\", \"subtasks\": \"b\"}]}": `line 2: subtasks is "b", want a list of objects`,
		`{"tasks": {}}`:                "line 1: tasks is {}, want a list of objects",
		`{"a": {"tasks": []}, "b": 1}`: "line 1: an object without userStories or tasks",
		`{"a": {"tasks": []}}`:         "nothing to make a plan of",
	} {
		_, err := convert.Plan("m", []byte(src))
		require.ErrorContains(t, err, want, src)
	}
}
