package bench

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/text"

	"github.com/lopen-dev/lopen/bench/workload"
	"github.com/lopen-dev/lopen/cache"
)

// BenchmarkSections divides a specification of 200 sections and finds one; /goldmark
// is the parser alone.
func BenchmarkSections(b *testing.B) {
	spec := workload.Specification(200)
	b.Run("lopen", func(b *testing.B) {
		b.SetBytes(int64(len(spec)))
		for b.Loop() {
			_, err := cache.NewOutline(spec).Find("Part 150")
			require.NoError(b, err)
		}
	})
	b.Run("goldmark", func(b *testing.B) {
		b.SetBytes(int64(len(spec)))
		parser := goldmark.DefaultParser()
		for b.Loop() {
			require.True(b, parser.Parse(text.NewReader(spec)).HasChildren())
		}
	})
}
