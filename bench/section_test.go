package bench

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/text"

	"github.com/lopen-dev/lopen/bench/turns"
	"github.com/lopen-dev/lopen/bench/workload"
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
		bare := turns.Side{Name: "goldmark", Before: runtime.GC, Do: func() { goldmark.DefaultParser().Parse(text.NewReader(src)) }}
		b.Run(fmt.Sprintf("all/bytes=%d", size), func(b *testing.B) {
			b.SetBytes(int64(len(src)))
			turns.Run(b, turns.Side{Name: "lopen", Before: runtime.GC, Do: func() { markdown.Parse(src) }}, bare)
		})
		b.Run(fmt.Sprintf("sections/bytes=%d", size), func(b *testing.B) {
			b.SetBytes(int64(len(src)))
			turns.Run(b, turns.Side{Name: "lopen", Before: runtime.GC, Do: func() { cache.NewOutline(src) }}, bare)
		})
	}
}

// BenchmarkSection is one section of a specification: hit of a file that is in memory,
// miss of one that has not been seen before. stat is a bare stat of the file, goldmark
// the bare parser on its bytes.
func BenchmarkSection(b *testing.B) {
	const file, part = "SPECIFICATION.md", "Part 150"
	dir := b.TempDir()
	root, err := os.OpenRoot(dir)
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, root.Close()) })
	spec, name := workload.Specification(200), filepath.Join(dir, file)
	require.NoError(b, os.WriteFile(name, spec, 0o600))
	require.NoError(b, os.Chtimes(name, hourAgo, hourAgo))
	time.Sleep(2100 * time.Millisecond) // a file's change time cannot be set
	opts := sections.Options{Docs: root.FS(), Root: dir}
	section := func(c *sections.Cache) {
		o, err := c.Outline(file)
		if err == nil {
			_, err = o.Find(part)
		}
		if err != nil {
			require.NoError(b, err)
		}
	}
	warm := sections.Open(opts)
	section(warm)
	var cold *sections.Cache
	parser := goldmark.DefaultParser()
	turns.Run(b, turns.Side{Name: "hit", Block: 100, Do: func() { section(warm) }},
		turns.Side{Name: "stat", Block: 100, Do: statFloor(b, name).Do},
		turns.Side{Name: "miss", Before: func() { cold = sections.Open(opts) }, Do: func() { section(cold) }},
		turns.Side{Name: "goldmark", Do: func() { parser.Parse(text.NewReader(spec)) }})
	require.LessOrEqual(b, warm.Stats().Reads, int64(1))
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
