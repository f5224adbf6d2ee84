package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lopen-dev/lopen/plan"
	"github.com/lopen-dev/lopen/plan/markdown"
)

// said is what Criteria says of a specification, a line each: a criterion with its details, and a line with a reason.
func said(src string) (all []string) {
	doc := markdown.Parse([]byte(src))
	found, left := plan.Criteria([]byte(src), doc)
	for _, c := range found {
		line := fmt.Sprintf("%d %s", c.Line, c.Text)
		if c.Parent >= 0 {
			line = fmt.Sprintf("%d < %s", c.Line, c.Text)
		}
		if c.Checked {
			line += " done"
		}
		if c.Component >= 0 {
			line += " @" + doc.Headings()[c.Component].Text
		}
		if c.Details != "" {
			line += " [" + strings.ReplaceAll(c.Details, "\n", "/") + "]"
		}
		all = append(all, line)
	}
	for _, r := range left {
		all = append(all, fmt.Sprintf("%d: %s", r.Line, r.Text))
	}
	return all
}

// The forms of acceptance criteria in specifications.
func TestCriteria(t *testing.T) {
	t.Parallel()
	const (
		prose   = "it is prose, no list item, row of a table or scenario"
		outside = "what its section calls criteria stands elsewhere"
	)
	ac := "## Acceptance Criteria\n"
	for name, c := range map[string]struct {
		src  string
		want []string
	}{
		"headings with more words": {
			"# S\n## Acceptance Criteria (Given/When/Then)\n- a\n## 3. Acceptance criteria for login\n- b\n## Acceptance Criteria - strict\n- c\n## Acceptance scenarios\n- d\n## Login: acceptance criteria\n- e\n## Acceptance\n- no\n## Verify acceptance criteria\n- no\n",
			[]string{"3 a", "5 b", "7 c", "9 d", "11 e @Login: acceptance criteria"},
		},
		"Spec Kit": {
			"### US 1\n\n**Why this priority**: x\n\n**Acceptance Scenarios**:\n\n1. **Given** a, **When** b, **Then** c\n2. **Given** d, **Then** e\n   more\n\n---\n\n- no\n\n### Edge Cases\n\n- no\n\n## Success Criteria\n\n- **SC-001**: no\n",
			[]string{"7 Given a, When b, Then c @US 1", "8 Given d, Then e @US 1 [more]", "19: success criteria are for who judges the whole, and no tasks"},
		},
		"a paragraph of that name": {
			"## A\n- no\n\nAcceptance criteria:\n- a\n\n**Notes**: no\n\n- no\n\n__Acceptance Criteria (all):__\n\n* b\n\n**Acceptance criteria** are good.\n\n**Acceptance Criteria:** c works\n\n**Tasks**:\n- no\n\nAcceptance criteria: must hold\n- d\n",
			[]string{"5 a @A", "13 b @A", "17 c works @A", "23 d @A", "15: " + prose, "22: " + prose},
		},
		"a list item of that name": {
			"## A\n- Story\n  - Priority: no\n  - **Acceptance Criteria**:\n    - a\n      - more\n    - b\n- Story 2\n  - Acceptance criteria: c\n- Story 3\n  - Acceptance criteria:\n    - [x] d\n      - [ ] e\n",
			[]string{"5 a @A [- more]", "7 b @A", "9 c @A", "12 d done @A", "13 < e @A"},
		},
		"stories and their criteria": {
			"## User Stories & Acceptance Criteria\n\ntext\n\n### US-1\n\nAs a user\n\n- Priority: high\n\nAcceptance criteria:\n\n- a\n\n### US-2\n\nAs a user\n\n#### Acceptance Criteria\n- b\n",
			[]string{"13 a @US-1", "20 b @US-2", "3: " + outside, "7: " + outside, "9: " + outside, "17: " + outside},
		},
		"tables": {
			ac + "| ID | Criterion | Priority |\n|---|:-:|---|\n| AC-1 | a \\| b | high |\n| AC-2 | c | |\n\n| Done | Given | When | Then |\n|--|--|--|--|\n| [x] | d | e | f |\n\n| A criterion | By |\n|-|-|\n\n## Other\n| Story | Acceptance Criteria |\n|-|-|\n| US-1 | g |\n\n| a | b |\n|-|-|\n| no | no |\n",
			[]string{"4 AC-1: a | b [Priority: high]", "5 AC-2: c", "9 Given d When e Then f done", "17 US-1: g @Other", "11: it is a table without rows"},
		},
		"paragraphs": {
			ac + "These hold:\n\n**AC-1**: a\nmore\n\n- detail\n\ntext\n\n**AC-2** b\n\nAC3: c\nAC-4: d\n\n1.1 e\n\n☐ f\n\nTerm\n: g\n\n**Speed**: h\n\n**Priority**: high\n\nScenario: i\nGiven j\n\nthe end\n",
			[]string{"4 AC-1: a [more//- detail//text]", "11 AC-2 b", "13 AC3: c", "14 AC-4: d", "16 1.1 e", "18 ☐ f", "20 Term : g", "23 Speed: h", "27 Scenario: i [Given j//the end]", "2: " + prose, "25: \"Priority\" begins no criterion"},
		},
		"steps": {
			ac + "Given a\nWhen b\nThen c\n\nGiven d\n\nThen e\n\n- Given f\n- When g\n- Then h\n- And i\n- Given j\n- Then k\n- l\n- Given m, n\n- Given o, p\n",
			[]string{"2 Given a When b Then c", "6 Given d [Then e]", "10 Given f [- When g/- Then h/- And i]", "14 Given j [- Then k]", "16 l", "17 Given m, n", "18 Given o, p"},
		},
		"Gherkin": {
			ac + "```gherkin\nFeature: F\n  Background:\n    Given x\n\n  @slow @ui\n  Scenario: a\n    Given b\n    * c\n  Scenario Outline: d\n    Given <e>\n    Examples:\n      | e |\n```\n\n```\nGiven f\nThen g\n```\n\n    Scenario: h\n      Then i\n\n```js\nfoo()\n```\n",
			[]string{"7 Scenario: a @slow @ui [Given b/* c]", "11 Scenario Outline: d [Given <e>/Examples:/  | e |]", "18 Given f Then g", "22 Scenario: h [Then i]", "3: it is no scenario: Feature: F", "4: it is no scenario: Background:", "26: it is code, and no scenario"},
		},
		"headings below": {
			ac + "### AC-1 a\n\ntext\n\n- detail\n\n### Group\n- b\n\n### Login\n- Given c\n- Then d\n\n### Speed\nIt is fast.\n\n### Empty\n\n### Out of scope\n- no\n\n### Scenario: e\n#### AC-2\n\n### AC-3\n- [ ] f\n",
			[]string{"2 AC-1 a [text//- detail]", "9 b @Group", "11 Login [- Given c/- Then d]", "15 Speed [It is fast.]", "23 Scenario: e [#### AC-2]", "27 f @AC-3", "18: nothing stands below it", "20: \"Out of scope\" and what is below it are no criteria"},
		},
		"boxes": {
			ac + "- [x] a\n  - [ ] b\n- c\n- group\n  more\n  - [x] d\n    - [x] e\n1. [ ] f\n\n### Below\n- g\n\n-\n",
			[]string{"2 a done", "3 < b", "4 c", "5 group done [more]", "7 < d done", "8 < e done", "9 f", "12 g @Below", "14: it has no text"},
		},
		"in the middle of a paragraph or item": {
			"As a user\n**Acceptance Criteria:**\n- a\n\n- [ ] **US-2** Log out\n  **Acceptance criteria:**\n  - b\n",
			[]string{"3 a", "7 b", "5: " + prose},
		},
		"a word more": {
			"**Acceptance Criteria** _(mandatory)_\n- a\n\n## B\n**Acceptance criteria** for login\n- b\n\n## C\nAcceptance scenarios\n\n- c\n\n## Acceptance & Test Criteria\n- d\n## Criteria for acceptance\n- e\n## Not acceptance criteria\n- no\n## AcceptanceCriteria\n<b>Acceptance Criteria</b>\n- f\n",
			[]string{"2 a", "6 b @B", "11 c @C", "14 d", "16 e", "21 f"},
		},
		"what comes behind them": {
			"**US-1**\n\n**Acceptance Criteria:**\n- a\n\n**Files to modify:**\n- no\n\n**US-2: Log out** as a user\n\n**Acceptance Criteria:**\n- b\n- Out of scope:\n  - no\n- [ ]\n- [ ] ~~no~~\n",
			[]string{"4 a", "12 b", "13: \"Out of scope:\" and what is in it are no criteria", "15: it has no text", "16: it is struck out"},
		},
		"codes of letters": {ac + "### AC-US7-01: a\n\n**Priority**: P1\n\n### AC-LOGIN-01\n- b\n", []string{"2 AC-US7-01: a [**Priority**: P1]", "6 AC-LOGIN-01 [- b]"}},
		"tables that call a column or a row so": {
			"| Story | Role | Acceptance Criteria |\n|-|-|-|\n| US-1 | admin | a |\n| US-2 | user | |\n\n| Field | Value |\n|-|-|\n| Priority | high |\n| Acceptance criteria | b |\n",
			[]string{"3 US-1: a [Role: admin]", "9 b", "4: it has no text"},
		},
		"quotes and HTML": {
			"## A\n> **Acceptance Criteria**\n> - a\n>   > b\n\n<details><summary>Acceptance Criteria</summary>\n\n- c\n\n</details>\n\n<!-- comment -->\n\n<ul><li>d</li></ul>\n\n- ```gherkin\n  Scenario: e\n  ```\n- ![](f)\n",
			[]string{"3 a @A [> b]", "8 c @A", "17 Scenario: e @A", "14: it is HTML, no list item, row of a table or scenario", "19: it has no text"},
		},
		"carriage returns": {"## Acceptance Criteria\r\n\r\nAC-1: a\r\nb\r\n\r\n| c |\r\n|-|\r\n| d |\r\n", []string{"3 AC-1: a [b]", "8 d"}},
		"front matter":     {"\ufeff---\na: b\n---\n" + ac + "**AC-1**: c\n", []string{"5 AC-1: c"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.want, said(c.src))
		})
	}
}

// linesAround notes the line of each block that holds an offset.
func linesAround(all []markdown.Block, offset int, lines map[int]bool) {
	for _, b := range all {
		if b.Start <= offset && offset < b.End {
			lines[b.Line] = true
			linesAround(b.Blocks, offset, lines)
		}
	}
}

// Below a heading of criteria each line is in a criterion or named, or what is named begins above it.
func TestNoCriterionIsDropped(t *testing.T) {
	t.Parallel()
	forms := []string{
		"- %s\n", "  - %s\n", "- [ ] %s\n", "  - [x] %s\n", "%s\n\n", "\n**AC-1**: %s\n", "\n**%s**\n\n", "\n**Notes**: %s\n\n", "\n### %s\n\n", "\n#### Scenario: %s\n", "\n#### Notes %s\n",
		"\n| a | b |\n|---|---|\n| c | %s |\n", "\n```gherkin\nScenario: %s\n```\n", "\n```\n%s\n```\n", "> %s\n", "\n<div>%s</div>\n\n", "- Given %s\n", "- Then %s\n", "Given %s\n\n", "\nThen %s\n",
		"\n---\n\n%s\n", "\nAcceptance criteria: %s\n", "\n### Acceptance Criteria %s\n", "1. %s\n\n", "- **Acceptance Criteria**:\n  - %s\n", "\nterm\n: %s\n\n",
	}
	rapid.Check(t, func(t *rapid.T) {
		src, n := rapid.SampledFrom([]string{"## Acceptance Criteria\n\n", "# Stories & Acceptance Scenarios\n\n"}).Draw(t, "head"), 0
		for range rapid.IntRange(1, 12).Draw(t, "lines") {
			src += fmt.Sprintf(rapid.SampledFrom(forms).Draw(t, "form"), fmt.Sprintf("tok%dx", n))
			n++
		}
		found, left := plan.Criteria([]byte(src), markdown.Parse([]byte(src)))
		at := -1
		for _, c := range found {
			require.GreaterOrEqual(t, c.Start, at, src)
			require.GreaterOrEqual(t, c.End, c.Start, src)
			at = c.Start
		}
		headings := markdown.ParseHeadings([]byte(src)).Headings()
		for i := range n {
			tok := fmt.Sprintf("tok%dx", i)
			offset := strings.Index(src, tok)
			line := strings.Count(src[:offset], "\n") + 1
			known := false
			for _, c := range found {
				known = known || strings.Contains(c.Raw, tok) || strings.Contains(c.Details, tok) || c.Start <= offset && offset < c.End
			}
			around := map[int]bool{line: true}
			linesAround(slices.Collect(markdown.Blocks([]byte(src))), offset, around)
			for _, r := range left {
				known = known || around[r.Line]
			}
			for _, h := range headings {
				known = known || strings.Contains(h.Text, tok) // a group
				for _, r := range left {
					known = known || h.Line == r.Line && h.Start <= offset && offset < h.End
				}
			}
			require.True(t, known, "%s is dropped:\n%s\n%v", tok, src, said(src))
		}
	})
}
