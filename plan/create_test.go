package plan_test

import (
	"bytes"
	"fmt"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lopen-dev/lopen/plan"
	"github.com/lopen-dev/lopen/plan/markdown"
)

func TestFromMarkdown(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, src, want string }{
		{"TODO", "prose\n\n* [ ] a\n  b\n\n   c\n1) [X] **d** <!-- after: a -->\n",
			"# Plan: m\n\nprose\n\n- [ ] a\n  b\n\n   c\n- [x] **d** <!-- after: a -->\n"},
		{"Spec Kit", "---\ndescription: \"x\"\n---\n# Tasks: F\n\n## Format: `[ID]`\n- plain\n\n## Phase 1: Setup\n\n- [ ] T001 Create `src/`\n- [x] T002 [P] Init\n\n---\n\n### Tests\n- [ ] T003 t\n## Notes\n",
			"# Plan: m\n\nTasks: F\n\n## Format: `[ID]`\n\n- plain\n\n## Phase 1: Setup\n\n- [ ] T001 Create `src/`\n- [x] T002 [P] Init\n\n---\n\n### Tests\n\n- [ ] T003 t\n\n## Notes\n"},
		{"items in a list without boxes", "- Group\n  - [ ] a\n    b\n\n  more\n- Other\n  - [ ] c\n",
			"# Plan: m\n\n- Group\n\n- [ ] a\n  b\n\nmore\n- Other\n\n- [ ] c\n"},
		{"prose between items", "a\r\n\r\n- [ ] b\r\n\r\nc\r\n\r\n- [ ] d\r\n\r\ne", "# Plan: m\n\na\n\n- [ ] b\n\nc\n\n- [ ] d\n\ne\n"},
		{"prose that would be an item", "- [ ] a\n\n# x\n\n    - [ ] code\n\n<!-- open\n", "# Plan: m\n\n- [ ] a\n\nx\n\n    - [ ] code\n\n<!-- open\n"},
		{"a title that would be an item", "# - [ ] t\n\n- [ ] a\n", "# Plan: m\n\n- [ ] a\n"},
		{"Kiro", "# Implementation Plan\n\n- [x] 1. Set up\n  - Create it\n  - _Requirements: 1.1_\n\n  - [-] 1.1 Now\n    - d\n  - [ ]* 1.2 Tests\n- [ ] 2. Next\n",
			"# Plan: m\n\nImplementation Plan\n\n- [x] 1. Set up\n  - Create it\n  - _Requirements: 1.1_\n  - [ ] 1.1 Now\n    - d\n  - [ ] * 1.2 Tests\n- [ ] 2. Next\n"},
		{"two titles", "# A\n- [ ] a\n# B\n###### C\n- [ ] b\n",
			"# Plan: m\n\n## A\n\n- [ ] a\n\n## B\n\n###### C\n\n- [ ] b\n"},
		{"carriage returns, tabs and quotes", "T\r\n-\r\n> -\t[ ] a\r\n>\tb\r\n", "# Plan: m\n\n## T\n\n- [ ] a\n  b\n"},
		{"details that would be an underline", "- [ ] a\n\n  ---\n", "# Plan: m\n\n- [ ] a\n\n  ---\n"},
		{"details that would be a table", "- [ ] a\n  - [ ] b | c\n\n    :- | -\n", "# Plan: m\n\n- [ ] a\n  - [ ] b | c\n\n    :- | -\n"},
		{"a fence that would swallow an item", "- [ ] a\n  - [ ] b\n\n  ```\n- [ ] c\n", "# Plan: m\n\n- [ ] a\n  - [ ] b\n- [ ] c\n"},
		{"without text", "- [x]\n", "# Plan: m\n\n- [x]\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := plan.FromMarkdown(" m\n", []byte(tt.src))
			require.NoError(t, err)
			require.Equal(t, tt.want, string(got))
			require.Equal(t, "Plan: m", plan.Parse(got).Title())
		})
	}
}

func TestFromMarkdownWithoutBoxes(t *testing.T) {
	t.Parallel()
	_, err := plan.FromMarkdown("m", []byte("# A\n## B\n- c\n"))
	require.ErrorIs(t, err, plan.ErrNoTasks)
	require.ErrorContains(t, err, "2 headings")
	_, err = plan.FromMarkdown("m", []byte("# A\n"))
	require.ErrorContains(t, err, "1 heading")
}

func TestFromCriteria(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, src, want string }{
		{"boxes", "# Spec\n- [ ] not one\n## Acceptance Criteria\n\ntext\n- [ ] a\n  - [x] b\n- [x] c\n- plain\n## Other\n- [ ] no\n",
			"# Plan: m\n\n- [ ] a\n  - [x] b\n- [x] c\n"},
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
			got, err := plan.FromCriteria("m", []byte(tt.src))
			require.NoError(t, err)
			require.Equal(t, tt.want, string(got))
		})
	}
	_, err := plan.FromCriteria("m", []byte("# Spec\n- [ ] a\n"))
	require.ErrorIs(t, err, plan.ErrNoTasks)
	require.ErrorContains(t, err, "none of 1 heading is called Acceptance Criteria")
	_, err = plan.FromCriteria("m", []byte("# Spec\n## Acceptance Criteria\ntext\n"))
	require.ErrorIs(t, err, plan.ErrNoTasks)
	require.ErrorContains(t, err, "no list item")
}

// Whatever it is made from, a plan has the tasks of its source.
func TestFromMarkdownKeepsItems(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		src := []byte(drawPlan(rt))
		requireUnchanged(rt, src)
	})
}

var stars = regexp.MustCompile(`\]\*+`)

func FuzzFromMarkdown(f *testing.F) {
	f.Add([]byte("- [ ] a\n  - [ ] b\n\n  ```\n- [ ] c\n"))
	f.Add([]byte("# A\n\n> - [ ] a\n>   <!-- x\n> - [x] b\n\nT\n=\n1. [ ] c\n   ---\n"))
	f.Add([]byte("- [ ] <div>\n  <pre>\n- [x] b\n\t- [ ] a | b\n\t  -|-\n"))
	f.Fuzz(func(t *testing.T, src []byte) {
		// A NUL is refused, with its line. The marks [-] and [x]* are checkboxes here and nowhere
		// else; what replaces one does not make another.
		src = stars.ReplaceAll(bytes.ReplaceAll(src, []byte{0}, nil), []byte("]"))
		requireUnchanged(t, bytes.ReplaceAll(src, []byte("[-]"), []byte("[_]")))
	})
}

func requireUnchanged(t require.TestingT, src []byte) {
	var want, got []string
	out, err := plan.FromMarkdown("m", src)
	for _, it := range markdown.Parse(src).Items() {
		want = append(want, fmt.Sprint(it.Checked, it.Parent))
	}
	if err != nil {
		require.ErrorIs(t, err, plan.ErrNoTasks)
		return
	}
	for _, it := range markdown.Parse(out).Items() {
		got = append(got, fmt.Sprint(it.Checked, it.Parent))
	}
	require.Equal(t, want, got, "%s", out)
}

func ExampleFromMarkdown() {
	out, err := plan.FromMarkdown("auth", []byte("# TODO\n\nLater:\n\n## Login\n\n* [x] Form\n* [ ] JWT\n  RS256 only\n"))
	fmt.Printf("%s%v", out, err)
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
