package checkpoint

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// BenchmarkApply replaces 1,000 files.
func BenchmarkApply(b *testing.B) {
	from, to := things{}, things{}
	for i := range 1000 {
		name := fmt.Sprintf("f%04d", i)
		from[name], to[name] = thing{0o644, "two " + name}, thing{0o644, "one " + name}
	}
	blobs, tree := stored(b, from, to), onDisk(b, from)
	there, back := planOf(b, blobs, from, to), planOf(b, blobs, to, from)
	s := try(tree, blobs)
	for b.Loop() {
		for _, p := range []*Plan{there, back} {
			done, err := s.Apply(tContext(), p)
			require.NoError(b, err)
			require.Empty(b, done.Retained)
		}
	}
}
