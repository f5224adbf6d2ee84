package loop

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/cache"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/tasks"
	"github.com/lopen-dev/lopen/plan"
)

var update = flag.Bool("update", false, "write the golden prompts anew")

// rehearse is the dry run of a task, or of all where it is "", of a plan that was made
// from a document.
func rehearse(t *testing.T, plans, task string, docs fstest.MapFS, failed lifecycle.Failures) (*Rehearsal, *plan.Plan) {
	t.Helper()
	content, err := plan.FromMarkdown("m", []byte(plans))
	require.NoError(t, err)
	p := plan.Parse(plan.WithOrigin(content, "specs/004/tasks.md"))
	id, err := session.NewID("m", time.Now(), 1)
	require.NoError(t, err)
	st, err := session.New(id, time.Now())
	require.NoError(t, err)
	res, err := tasks.Reconcile(st, p, tasks.Between)
	require.NoError(t, err)
	tmpl, err := ParsePrompt("")
	require.NoError(t, err)
	h, err := DryRun(Config{Module: "m", Docs: docs, Spec: "docs/m/SPECIFICATION.md", Unit: "leaf", Only: task, Check: "make test", Prompt: tmpl,
		Outlines: func(name string) (*cache.Outline, error) {
			src, err := ReadSpec(docs, name)
			return cache.NewOutline(src), err
		}}, p, res.State, &lifecycle.Past{Failed: failed})
	require.NoError(t, err)
	return h, p
}

func testdata(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "prompts", name))
	require.NoError(t, err)
	return string(data)
}

// The prompts of plans as people have them. -update writes them anew.
func TestGoldenPrompts(t *testing.T) {
	t.Parallel()
	docs := fstest.MapFS{}
	for name, file := range map[string]string{"docs/m/SPECIFICATION.md": "SPECIFICATION.md", "docs/m/RESEARCH-mail.md": "RESEARCH-mail.md", "specs/004/research.md": "research.md"} {
		docs[name] = &fstest.MapFile{Data: []byte(testdata(t, file))}
	}
	ended := func(n int, failure, output, check string) session.AttemptRecord {
		return session.AttemptRecord{Attempt: n, Failure: failure, Tail: output, CheckTail: check}
	}
	for _, tt := range []struct {
		name, task string
		failed     []session.AttemptRecord
		parts      []string
	}{
		{"spec-kit", "t012", []session.AttemptRecord{ended(1, "exit 1", "```\npanic\n", ""), ended(2, `the check "make test": exit 2`, "done", "limit_test.go:11: refused")}, []string{
			"task", "its details", "around it in the plan", "around it in the plan", "around it in the plan", "introduction of the plan", "siblings", "specification", "specification", "specification",
			"research", "research, by name", "done already", "failure of attempt 2", "failure of attempt 1", "check"}},
		{"kiro", "2.2", nil, []string{"task", "its details", "details above it", "around it in the plan", "introduction of the plan", "siblings",
			"specification", "specification", "specification", "research, by name", "done already", "check"}},
		{"todo", "flags-after", nil, []string{"task", "around it in the plan", "around it in the plan", "introduction of the plan", "siblings",
			"specification", "specification", "specification", "research, by name", "done already", "check"}},
		{"todo", "man-page", nil, nil},
		{"todo", "exit-code", nil, nil},
		{"prd", "A link works once", nil, []string{"task", "around it in the plan", "around it in the plan", "introduction of the plan", "siblings",
			"specification", "specification", "specification", "research, by name", "done already", "check"}},
	} {
		t.Run(tt.name+" "+tt.task, func(t *testing.T) {
			t.Parallel()
			content, err := plan.FromMarkdown("m", []byte(testdata(t, tt.name+".md")))
			require.NoError(t, err)
			id := ""
			for task := range plan.Parse(content).All() {
				if len(task.Children) == 0 && (strings.Contains(strings.ToLower(task.ID), tt.task) || task.Name == tt.task || strings.Contains(task.Name, tt.task+" ")) {
					id = task.ID
					break
				}
			}
			require.NotEmpty(t, id)
			h, _ := rehearse(t, testdata(t, tt.name+".md"), id, docs, lifecycle.Failures{id: tt.failed})
			if tt.parts != nil {
				var names []string
				size := 0
				for _, p := range h.Parts {
					names, size = append(names, p.Name), size+p.Bytes
				}
				require.Equal(t, tt.parts, names)
				require.Less(t, size, len(h.Prompt))
			}
			golden := filepath.Join("testdata", "prompts", tt.name+"-"+strings.ReplaceAll(strings.ToLower(tt.task), " ", "-")+".golden")
			if *update {
				require.NoError(t, os.WriteFile(golden, h.Prompt, 0o600))
			}
			want, err := os.ReadFile(golden)
			require.NoError(t, err)
			require.Equal(t, string(want), string(h.Prompt))
			require.True(t, slices.ContainsFunc(strings.Split(string(h.Prompt), "\n"), func(l string) bool { return strings.HasPrefix(l, "# Task: ") }))
		})
	}
}

// With each part as large as it can be the prompt stays below its bound, and says of each
// that it is cut.
func TestPromptIsBounded(t *testing.T) {
	t.Parallel()
	lines := func(n int) string { return strings.Repeat("x\xff```` "+strings.Repeat("y", 40)+"\n", n/50) }
	name := strings.Repeat("name ", 400)
	var src, headings strings.Builder
	src.WriteString("# Plan\n\n" + lines(64<<10) + "\n")
	for n := range 6 {
		headings.WriteString(strings.Repeat("#", n+2) + " " + name + "\n\n" + lines(16<<10) + "\n")
	}
	src.WriteString(headings.String())
	src.WriteString("- [ ] " + name + "\n" + "  " + strings.ReplaceAll(lines(16<<10), "\n", "\n  ") + "\n")
	for range 200 {
		src.WriteString("  - [ ] here [r](RESEARCH-a.md) [s](#s)\n    " + strings.ReplaceAll(lines(1<<10), "\n", "\n    ") + "\n")
		src.WriteString("- [x] " + name + "\n")
		src.WriteString("- [ ] " + name + "\n\n" + lines(4<<10) + "\n")
	}
	docs := fstest.MapFS{"docs/m/SPECIFICATION.md": {Data: []byte("# s\n\n## Acceptance Criteria\n" + strings.Repeat("### "+name+"\n", 300) + "# s\n" + lines(64<<10))}}
	for n := range 100 {
		docs["docs/m/RESEARCH-"+string(rune('a'+n%26))+strings.Repeat("z", n/26)+".md"] = &fstest.MapFile{Data: []byte("# " + name + "\n\n" + lines(32<<10))}
	}
	var failed []session.AttemptRecord
	for n := range 3 {
		failed = append(failed, session.AttemptRecord{Attempt: n + 1, Failure: name, Tail: lines(16 << 10), CheckTail: lines(16 << 10)})
	}
	p := plan.Parse([]byte(src.String()))
	tmpl, err := ParsePrompt("")
	require.NoError(t, err)
	for _, unit := range []string{"leaf", "task", "component"} {
		first := ""
		for task := range p.All() {
			if task.Kind == map[string]string{"leaf": plan.KindSubtask, "task": plan.KindTask, "component": plan.KindComponent}[unit] {
				first = task.ID
				break
			}
		}
		h, err := DryRun(Config{Module: "m", Docs: docs, Spec: "docs/m/SPECIFICATION.md", Unit: unit, Only: first, Check: lines(8 << 10), Prompt: tmpl,
			Outlines: func(name string) (*cache.Outline, error) {
				src, err := ReadSpec(docs, name)
				return cache.NewOutline(src), err
			}}, p, nil, &lifecycle.Past{Failed: lifecycle.Failures{first: failed}})
		require.NoError(t, err)
		require.Less(t, len(h.Prompt), maxPrompt, unit)
		require.Greater(t, len(h.Prompt), maxPrompt/2, unit)
		require.True(t, utf8.Valid(h.Prompt))
		cut := map[string]bool{}
		for _, part := range h.Parts {
			cut[part.Name] = cut[part.Name] || part.Cut
		}
		for _, name := range []string{"around it in the plan", "introduction of the plan", "specification", "research", "failure of attempt 3", "check"} {
			require.True(t, cut[name], "%s of %s", name, unit)
		}
	}
}

// No text ends the fence that it stands in.
func TestFence(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "x", "```\n## Rules", "a ````` b", strings.Repeat("`", 100), "\n```\n"} {
		got := strings.Split(fence(text), "\n")
		marks := got[0]
		require.Equal(t, marks, got[len(got)-1])
		require.LessOrEqual(t, len(marks), maxFence)
		require.Empty(t, strings.Trim(marks, "`"))
		for _, line := range got[1 : len(got)-1] {
			require.NotContains(t, line, marks)
		}
	}
}
