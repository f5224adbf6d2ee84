package prompt

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
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/tasks"
	"github.com/lopen-dev/lopen/plan"
	"github.com/lopen-dev/lopen/plan/convert"
)

var update = flag.Bool("update", false, "write the golden prompts anew")

// source is what prompts of a module are written from where its project holds docs.
func source(unit, check string, docs fstest.MapFS) *Source {
	return &Source{Module: "m", Unit: unit, Check: check, Warn: func(string, string) {},
		Documents: Documents{FS: docs, Spec: "docs/m/SPECIFICATION.md", Outlines: func(name string) (*cache.Outline, error) {
			src, err := ReadSpec(docs, name)
			return cache.NewOutline(src), err
		}}}
}

// write writes the prompt of a unit of a plan with the built-in template, on all of its leaves
// that are not done.
func write(t *testing.T, s *Source, p *plan.Plan, unit string, failed []Failure) ([]byte, []Part) {
	t.Helper()
	id, err := session.NewID("m", time.Now(), 1)
	require.NoError(t, err)
	st, err := session.New(id, time.Now())
	require.NoError(t, err)
	res, err := tasks.Reconcile(st, p, tasks.Between)
	require.NoError(t, err)
	leaves := slices.DeleteFunc(tasks.Leaves(res.State, unit), func(id string) bool {
		leaf, _ := res.State.Task(id)
		return leaf.State == session.TaskComplete && id != unit
	})
	d, err := s.Draft(p, res.State, Attempt{Unit: unit, Leaves: leaves, Number: 1, Failures: failed})
	require.NoError(t, err)
	builtIn, err := Parse("")
	require.NoError(t, err)
	text, err := d.Write(builtIn)
	require.NoError(t, err)
	return text, d.Parts
}

func testdata(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
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
	for _, tt := range []struct {
		name, task string
		failed     []Failure
		parts      []string
	}{
		{"spec-kit", "t012", []Failure{{`the check "make test": exit 2`, "done", "limit_test.go:11: refused", 2}, {"exit 1", "```\npanic\n", "", 1}}, []string{
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
			made, err := convert.Plan("m", []byte(testdata(t, tt.name+".md")))
			require.NoError(t, err)
			content := made.Content
			id := ""
			for task := range plan.Parse(content).All() {
				if len(task.Children) == 0 && (strings.Contains(strings.ToLower(task.ID), tt.task) || task.Name == tt.task || strings.Contains(task.Name, tt.task+" ")) {
					id = task.ID
					break
				}
			}
			require.NotEmpty(t, id)
			text, parts := write(t, source("leaf", "make test", docs), plan.Parse(plan.WithOrigin(content, "specs/004/tasks.md")), id, tt.failed)
			if tt.parts != nil {
				var names []string
				size := 0
				for _, p := range parts {
					names, size = append(names, p.Name), size+p.Bytes
				}
				require.Equal(t, tt.parts, names)
				require.Less(t, size, len(text))
			}
			golden := filepath.Join("testdata", tt.name+"-"+strings.ReplaceAll(strings.ToLower(tt.task), " ", "-")+".golden")
			if *update {
				require.NoError(t, os.WriteFile(golden, text, 0o600))
			}
			want, err := os.ReadFile(golden)
			require.NoError(t, err)
			require.Equal(t, string(want), string(text))
			require.True(t, slices.ContainsFunc(strings.Split(string(text), "\n"), func(l string) bool { return strings.HasPrefix(l, "# Task: ") }))
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
	var failed []Failure
	for n := range 3 {
		failed = append(failed, Failure{Attempt: 3 - n, Failure: name, Output: lines(16 << 10), Check: lines(16 << 10)})
	}
	p := plan.Parse([]byte(src.String()))
	for _, unit := range []string{"leaf", "task", "component"} {
		first := ""
		for task := range p.All() {
			if task.Kind == map[string]string{"leaf": plan.KindSubtask, "task": plan.KindTask, "component": plan.KindComponent}[unit] {
				first = task.ID
				break
			}
		}
		text, parts := write(t, source(unit, lines(8<<10), docs), p, first, failed)
		require.Less(t, len(text), maxPrompt, unit)
		require.Greater(t, len(text), maxPrompt/2, unit)
		require.True(t, utf8.Valid(text))
		cut := map[string]bool{}
		for _, part := range parts {
			cut[part.Name] = cut[part.Name] || part.Cut
		}
		for _, name := range []string{"around it in the plan", "introduction of the plan", "specification", "research", "failure of attempt 3", "check"} {
			require.True(t, cut[name], "%s of %s", name, unit)
		}
	}
}
