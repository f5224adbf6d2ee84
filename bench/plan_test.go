package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/plan"
	"github.com/lopen-dev/lopen/writer"
)

// planOf is a plan of n tasks in components of a hundred, with details and
// dependencies as people write them.
func planOf(n int) []byte {
	var b strings.Builder
	b.WriteString("# Plan: bench\n")
	for i := range n {
		if i%100 == 0 {
			fmt.Fprintf(&b, "\n## Component %d\n\n", i/100)
		}
		fmt.Fprintf(&b, "- [ ] Do the thing number %d\n", i)
		switch i % 10 {
		case 3:
			b.WriteString("  As [the specification](SPECIFICATION.md#things) says.\n")
		case 7:
			fmt.Fprintf(&b, "  - [ ] And a part of it, `%d`\n", i)
		}
	}
	return []byte(b.String())
}

func planFile(b *testing.B, content []byte) writer.FS {
	b.Helper()
	dir := b.TempDir()
	require.NoError(b, os.WriteFile(filepath.Join(dir, "plan.md"), content, 0o600))
	fsys, err := writer.OpenFS(dir)
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, fsys.Close()) })
	return fsys
}

// BenchmarkTick is one box of a plan in memory, ticked in its file; the floor
// reads the file and replaces it, durably.
func BenchmarkTick(b *testing.B) {
	for _, n := range sizes {
		src := planOf(n)
		b.Run(fmt.Sprintf("tasks=%d/tick", n), func(b *testing.B) {
			fsys := planFile(b, src)
			p, err := plan.Load(fsys, "plan.md", nil)
			require.NoError(b, err)
			leaf, err := p.Find(fmt.Sprintf("Do the thing number %d", n/2))
			require.NoError(b, err)
			b.ReportAllocs()
			ticked := false
			for b.Loop() {
				ticked = !ticked
				p, err = plan.Apply(fsys, "plan.md", p, plan.Boxes(map[string]bool{leaf.ID: ticked}))
				require.NoError(b, err)
			}
		})
		b.Run(fmt.Sprintf("tasks=%d/floor", n), func(b *testing.B) {
			fsys := planFile(b, src)
			for b.Loop() {
				data, err := writer.ReadFile(fsys, "plan.md", 64<<20)
				require.NoError(b, err)
				require.NoError(b, writer.ReplaceFile(fsys, "plan.md", data, 0o600))
			}
		})
	}
}

// BenchmarkPlanParse is to be linear in the plan's size, up to the 50 MB that
// the last one has.
func BenchmarkPlanParse(b *testing.B) {
	for _, n := range usual(10_000, 100_000, 1_400_000) {
		src := planOf(n)
		b.Run(fmt.Sprintf("tasks=%d", n), func(b *testing.B) {
			b.SetBytes(int64(len(src)))
			b.ReportAllocs()
			for b.Loop() {
				plan.Parse(src)
			}
		})
	}
}

// BenchmarkPlanReload is what a loop pays to learn that the plan is unchanged.
func BenchmarkPlanReload(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprintf("tasks=%d", n), func(b *testing.B) {
			fsys := planFile(b, planOf(n))
			p, err := plan.Load(fsys, "plan.md", nil)
			require.NoError(b, err)
			for b.Loop() {
				_, err := plan.Load(fsys, "plan.md", p)
				require.NoError(b, err)
			}
		})
	}
}
