package convert_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/plan/convert"
)

var update = flag.Bool("update", false, "write the plans in testdata anew")

// Lists as their tools write them, with the plans that are made of them. -update writes
// these anew.
func TestCorpus(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*-*.*[nd]")
	require.NoError(t, err)
	lists := 0
	for _, file := range files {
		if filepath.Ext(file) == ".golden" {
			continue
		}
		lists++
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			src, err := os.ReadFile(file)
			require.NoError(t, err)
			requireWhole(t, src)
			made, err := convert.Plan("m", src)
			require.NoError(t, err)
			var b strings.Builder
			fmt.Fprintf(&b, "%s, %d boxes\n", made.Kind, made.Boxes)
			for _, r := range made.Left {
				fmt.Fprintf(&b, "%d: no task: %s\n", r.Line, r.Text)
			}
			for _, r := range made.Notes {
				fmt.Fprintf(&b, "%d: %s\n", r.Line, r.Text)
			}
			fmt.Fprintf(&b, "--- plan.md\n%s", made.Content)
			golden := file + ".golden"
			if *update {
				require.NoError(t, os.WriteFile(golden, []byte(b.String()), 0o600))
			}
			want, err := os.ReadFile(golden)
			require.NoError(t, err)
			require.Equal(t, string(want), b.String())
		})
	}
	require.Equal(t, 21, lists)
}
