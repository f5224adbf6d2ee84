package loop

import (
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/cache"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/prompt"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/plan"
)

const spec = "# m\n\nIntro.\n\n## Login\n\nWith a password.\n\n## Other\n\nNot this.\n"

func dry(t *testing.T, src, unit string, part Selection, text string) ([]string, string) {
	t.Helper()
	tmpl, err := prompt.Parse(text)
	require.NoError(t, err)
	docs := fstest.MapFS{"docs/m/SPECIFICATION.md": {Data: []byte(spec)}}
	h, err := DryRun(Config{Module: "m", Unit: unit, Select: part,
		Check: "make test", Prompt: tmpl,
		Documents: prompt.Documents{FS: docs, Spec: "docs/m/SPECIFICATION.md", Outlines: func(name string) (*cache.Outline, error) {
			src, err := prompt.ReadSpec(docs, name)
			return cache.NewOutline(src), err
		}}}, plan.Parse([]byte(src)), nil, &lifecycle.Past{})
	require.NoError(t, err)
	return h.Order, string(h.Prompt)
}

func TestOrderOfARun(t *testing.T) {
	t.Parallel()
	const src = "# Plan\n## A\n- [ ] last <!-- after: b -->\n- [ ] p\n  - [ ] x\n  - [x] done\n  - [ ] y\n## B\n- [ ] first\n"
	order, _ := dry(t, src, "leaf", Selection{}, "")
	require.Equal(t, []string{"a/p/x", "a/p/y", "b/first", "a/last"}, order)
	order, _ = dry(t, src, "task", Selection{}, "")
	require.Equal(t, []string{"a/p/x, a/p/y", "b/first", "a/last"}, order)
	order, _ = dry(t, src, "component", Selection{}, "")
	require.Equal(t, []string{"a/p/x, a/p/y", "b/first", "a/last"}, order, "what waits for another component is left for later")
	order, _ = dry(t, src, "leaf", Selection{"a/p", "a/p"}, "")
	require.Equal(t, []string{"a/p/x", "a/p/y"}, order)
	for part, want := range map[Selection][]string{
		{From: "a/p"}:                       {"a/p/x, a/p/y", "b/first"},
		{From: "a/p/y"}:                     {"a/p/y", "b/first"},
		{Through: "a/p/x"}:                  {"a/p/x"},
		{Through: "a/p"}:                    {"a/p/x, a/p/y"},
		{From: "a/p/done", Through: "b"}:    {"a/p/y", "b/first"},
		{From: "a/last", Through: "a/p"}:    {"a/p/x, a/p/y"},
		{From: "b", Through: "a"}:           nil,
		{From: "b", Through: "none"}:        nil,
		{From: "none", Through: "b"}:        nil,
		{From: "a", Through: "b"}:           {"a/p/x, a/p/y", "b/first", "a/last"},
		{From: "a/last", Through: "a/last"}: nil,
	} {
		order, _ = dry(t, src, "component", part, "")
		require.Equal(t, want, order, "%+v", part)
	}
}

// TestSelectionAsTyped holds what a person is told to type, and what is said of a part.
func TestSelectionAsTyped(t *testing.T) {
	t.Parallel()
	for part, want := range map[Selection][2]string{
		{}:                        {"", ""},
		{From: "a", Through: "a"}: {" --task a", "a"},
		{From: "a"}:               {" --from a", "all from a on"},
		{Through: "b"}:            {" --through b", "all through b"},
		{From: "a", Through: "b"}: {" --from a --through b", "all from a through b"},
	} {
		require.Equal(t, want, [2]string{part.Flags(), part.String()})
	}
}

func TestPromptHoldsWhatTheTaskNeeds(t *testing.T) {
	t.Parallel()
	_, first := dry(t, "# Plan\n## Auth\n- [x] Before\n- [ ] Login\n  Use the form.\n", "leaf", Selection{}, "")
	require.Contains(t, first, "# Task: Login")
	require.Contains(t, first, "It belongs to: Auth")
	require.Contains(t, first, "Use the form.")
	require.Contains(t, first, "From docs/m/SPECIFICATION.md: Login")
	require.Contains(t, first, "With a password.")
	require.NotContains(t, first, "Not this.")
	require.Contains(t, first, "## Done already\n\n- Before\n")
	require.Contains(t, first, "exits 0: make test")
	require.Contains(t, first, "Leave the folder .lopen alone")
	require.NotContains(t, first, "last attempt")

	_, first = dry(t, "- [ ] Login\n", "leaf", Selection{}, "{{.Task}} in {{.Module}}, judged by {{.Check}}")
	require.Equal(t, "Login in m, judged by make test", first)
	_, err := prompt.Parse("{{.Task")
	require.Error(t, err)
}
