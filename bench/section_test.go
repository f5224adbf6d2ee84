package bench

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/text"

	"github.com/lopen-dev/lopen/cache"
	"github.com/lopen-dev/lopen/cache/sections"
	"github.com/lopen-dev/lopen/plan/markdown"
)

// document makes a specification of about size bytes: headings of three levels,
// paragraphs with markup and links, lists with boxes, code.
func document(size int) []byte {
	var b bytes.Buffer
	b.WriteString("# Specification\n\n")
	for i := 0; b.Len() < size; i++ {
		fmt.Fprintf(&b, "## Component %d\n\nWhat *it* is for: see [the plan](plan.md#component-%d) and `code %d`. It goes on\nfor a second line, with **weight** and a third\nwithout anything that a parser has to look at twice.\n\n", i, i, i)
		for j := range 5 {
			fmt.Fprintf(&b, "### Part %d of it\n\n- [ ] first thing of part %d\n- [x] second thing, with `code`\n  - [ ] beneath it\n\n```go\nfunc part%d() {}\n# no heading\n```\n\nText between, on one line only, that ends the part.\n\n", j, j, j)
		}
	}
	return b.Bytes()
}

// BenchmarkParse reads a file with all offsets, or its headings alone, beside a
// bare goldmark parse of it.
func BenchmarkParse(b *testing.B) {
	for _, size := range usual(64<<10, 1<<20, 50<<20) {
		src := document(size)
		bare := func() { goldmark.DefaultParser().Parse(text.NewReader(src)) }
		b.Run(fmt.Sprintf("all/bytes=%d", size), func(b *testing.B) {
			b.SetBytes(int64(len(src)))
			beside(b, "goldmark", bare, func() { markdown.Parse(src) })
		})
		b.Run(fmt.Sprintf("sections/bytes=%d", size), func(b *testing.B) {
			b.SetBytes(int64(len(src)))
			beside(b, "goldmark", bare, func() { cache.NewOutline(src) })
		})
	}
}

// BenchmarkSectionHit is one section of a file that is in memory; /stat is a bare
// stat of the file.
func BenchmarkSectionHit(b *testing.B) {
	dir := b.TempDir()
	root, err := os.OpenRoot(dir)
	require.NoError(b, err)
	defer root.Close()
	name := filepath.Join(dir, "SPECIFICATION.md")
	require.NoError(b, os.WriteFile(name, document(64<<10), 0o600))
	old := time.Now().Add(-time.Hour)
	require.NoError(b, os.Chtimes(name, old, old))
	c := sections.Open(sections.Options{Docs: root.FS(), Root: dir})
	time.Sleep(2100 * time.Millisecond) // until the file is no longer racy
	b.Run("section", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _, err := c.Section("SPECIFICATION.md", "Component 7/Part 3 of it")
			require.NoError(b, err)
		}
	})
	b.Run("stat", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, err := os.Stat(name)
			require.NoError(b, err)
		}
	})
	require.LessOrEqual(b, c.Stats().Reads, int64(1))
}

// BenchmarkSectionsCold is 10,000 documents that are on the disk cache, or nowhere;
// /read reads them one after the other.
func BenchmarkSectionsCold(b *testing.B) {
	many := many(10_000)
	dir, store := b.TempDir(), b.TempDir()
	root, err := os.OpenRoot(dir)
	require.NoError(b, err)
	defer root.Close()
	var names []string
	for i := range many {
		names = append(names, fmt.Sprintf("%d.md", i))
		require.NoError(b, os.WriteFile(filepath.Join(dir, names[i]), document(4<<10), 0o600))
	}
	warm := func(b *testing.B) sections.Stats {
		c := sections.Open(sections.Options{Docs: root.FS(), Root: dir, Store: store})
		defer c.Close()
		require.NoError(b, c.Warm(b.Context(), names, nil))
		return c.Stats()
	}
	b.Run("nowhere", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			_, err := sections.Clear(store)
			require.NoError(b, err)
			b.StartTimer()
			require.EqualValues(b, many, warm(b).Parses)
		}
	})
	b.Run("disk", func(b *testing.B) {
		for b.Loop() {
			require.Zero(b, warm(b).Parses)
		}
	})
	b.Run("read", func(b *testing.B) {
		for b.Loop() {
			for _, name := range names {
				_, err := os.ReadFile(filepath.Join(dir, name))
				require.NoError(b, err)
			}
		}
	})
}

// beside times work and a floor in turn, so that what else the machine does hits
// both alike, and reports the median of the ratios. ns/op is of work alone.
func beside(b *testing.B, name string, floor, work func()) {
	b.Helper()
	b.ReportAllocs()
	var ratios []float64
	for b.Loop() {
		b.StopTimer()
		runtime.GC() // neither pays for the other's garbage
		start := time.Now()
		floor()
		base := time.Since(start)
		runtime.GC()
		b.StartTimer()
		start = time.Now()
		work()
		ratios = append(ratios, float64(time.Since(start))/float64(base))
	}
	slices.Sort(ratios)
	b.ReportMetric(ratios[len(ratios)/2], "x/"+name)
}
