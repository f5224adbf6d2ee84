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

func dry(t *testing.T, src, unit, only, text string) ([]string, string) {
	t.Helper()
	tmpl, err := prompt.Parse(text)
	require.NoError(t, err)
	docs := fstest.MapFS{"docs/m/SPECIFICATION.md": {Data: []byte(spec)}}
	h, err := DryRun(Config{Module: "m", Unit: unit, Only: only,
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
	order, _ := dry(t, src, "leaf", "", "")
	require.Equal(t, []string{"a/p/x", "a/p/y", "b/first", "a/last"}, order)
	order, _ = dry(t, src, "task", "", "")
	require.Equal(t, []string{"a/p/x, a/p/y", "b/first", "a/last"}, order)
	order, _ = dry(t, src, "component", "", "")
	require.Equal(t, []string{"a/p/x, a/p/y", "b/first", "a/last"}, order, "what waits for another component is left for later")
	order, _ = dry(t, src, "leaf", "a/p", "")
	require.Equal(t, []string{"a/p/x", "a/p/y"}, order)
}

func TestPromptHoldsWhatTheTaskNeeds(t *testing.T) {
	t.Parallel()
	_, first := dry(t, "# Plan\n## Auth\n- [x] Before\n- [ ] Login\n  Use the form.\n", "leaf", "", "")
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

	_, first = dry(t, "- [ ] Login\n", "leaf", "", "{{.Task}} in {{.Module}}, judged by {{.Check}}")
	require.Equal(t, "Login in m, judged by make test", first)
	_, err := prompt.Parse("{{.Task")
	require.Error(t, err)
}
