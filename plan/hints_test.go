package plan_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/plan"
)

func TestLookalikes(t *testing.T) {
	t.Parallel()
	for src, want := range map[string][]int{
		"- [ ] a\n- [x] b\n":                                 nil,
		"- [ ]a\n- [x]b\n":                                   {1, 2},
		"-[ ] a\n\n- [] b\n\n1.[x] c\n\n* [ x ] d\n":         {1, 3, 5, 7},
		"- [ ] a\r\n- [ ]b\r\n":                              {2},
		"- [-] a\n":                                          {1},
		"- [x](u)\n- [x][r]\n- [x]: y\n- \\[ ] z\n- [y] z\n": nil,
		"```\n- [ ]a\n-[ ] b\n```\n    -[ ] c\n":             nil,
		"<!--\n- [ ]a\n-->\n- [ ]b\n":                        {4},
		"> - [ ]a\n\n- b\n  - [ ]c\n":                        {1, 4},
		"---\nx: y\n---\n- [ ]a\n":                           {4},
		"text\n[ ] a\n":                                      nil,
	} {
		require.Equal(t, want, plan.Parse([]byte(src)).Lookalikes(), src)
	}
}

func TestMissing(t *testing.T) {
	t.Parallel()
	p := plan.Parse([]byte("## C\n- [ ] a <!-- after: c/b, nope, c -->\n- [ ] b <!-- after: x -->\n"))
	require.Equal(t, []plan.Missing{{Task: "c/a", For: "nope", Line: 2}, {Task: "c/b", For: "x", Line: 3}}, p.Missing())
}

func TestUnusable(t *testing.T) {
	t.Parallel()
	for src, want := range map[string]string{
		"- [ ] a\n- [ ] b\x00c\n": "line 2: a NUL byte",
		"\n\n\x00":                "line 3: a NUL byte",
		"# T\n- [ ] a\n- [ ] " + strings.Repeat("x", 40000) + "\n": "line 3: a text of 40000 bytes",
		"- [ ] a\n- [ ] b\n" + strings.Repeat("  - c\n", 50_000):   "line 2: a list item or block of more than 100000 lines",
	} {
		dir, _ := folder(t, "")
		require.NoError(t, plan.CreateFile(dir, "p.md", []byte(src)))
		_, err := plan.Load(dir, "p.md", nil)
		require.ErrorContains(t, err, want)
		require.ErrorIs(t, err, plan.ErrUnusable)
	}
}
