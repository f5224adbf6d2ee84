package plan_test

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/plan"
)

func TestTurn(t *testing.T) {
	t.Parallel()
	none := plan.Turn{Priority: math.MaxInt}
	for front, want := range map[string]plan.Turn{
		"": none,
		"---\npriority: 2\nafter: [auth, db]\n---": {Priority: 2, After: []string{"auth", "db"}},
		"---\nafter: auth\nowner: me\n---":         {Priority: math.MaxInt, After: []string{"auth"}},
		"---\nafter:\n  - a\n  - b\n---":           {Priority: math.MaxInt, After: []string{"a", "b"}},
		"---\npriority: -1\nafter:\n---":           {Priority: -1},
		"---\npriority: 99999999999\n---":          {Priority: math.MaxInt32},
		"---\nno key\n---":                         none, // a thematic break and a heading
	} {
		got, err := plan.Parse([]byte(front + "\n# P\n\n- [ ] a\n")).Turn()
		require.NoError(t, err, front)
		require.Equal(t, want, got, front)
	}
	for front, want := range map[string]string{
		"---\npriority: high\n---":           "priority: high is no whole number",
		"---\npriority: 1.5\n---":            "priority: 1.5 is no whole number",
		"---\nafter: [1]\n---":               "after: 1 is no name",
		"---\nafter: {a: b}\n---":            "is no name",
		"---\nafter: [a\n---":                "read front matter",
		"---\na: &x [1]\nafter: *x\n---":     "anchors and aliases are not read",
		"---\nafter: [a]\nafter: [b]\n---\n": "read front matter",
	} {
		_, err := plan.Parse([]byte(front + "\n# P\n\n- [ ] a\n")).Turn()
		require.ErrorContains(t, err, want, front)
	}
}

// Front matter is the person's: no edit of the plan changes a byte of it, whatever it says.
func TestEditsLeaveFrontMatter(t *testing.T) {
	t.Parallel()
	const front = "---\r\npriority:   1 # first\nafter: [ auth ,db]\n- [ ] no task\n---\n"
	p := plan.Parse([]byte(front + "# P\n\n- [ ] a\n- [ ] b\n"))
	require.Len(t, p.Tasks(), 2)
	for name, change := range map[string]plan.Change{
		"box":    plan.Boxes(map[string]bool{"a": true}),
		"mark":   plan.Marks(map[string]plan.Mark{"a": {State: plan.MarkFailed, Attempts: 3}}),
		"rename": plan.Rename("a", "c"),
		"remove": plan.Remove("b"),
	} {
		next, err := change(p, p)
		require.NoError(t, err, name)
		require.True(t, strings.HasPrefix(string(next.Source()), front), "%s: %q", name, next.Source())
	}
}
