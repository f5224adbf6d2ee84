package checkpoint

import (
	"pgregory.net/rapid"

	"github.com/lopen-dev/lopen/cache/files"
)

// index changes what git tracks, or takes git away. The names are of files that rules ignore or not, of folders
// and of nothing.
func (m *model) index() {
	names := rapid.SliceOfN(rapid.SampledFrom(append([]string{"d", "none"}, places...)), 0, 4).Draw(m.t, "tracked")
	m.outside = []files.IgnoreFile{{Path: files.TrackedPath, Data: files.TrackedNames(names)}}
	switch rapid.IntRange(0, 3).Draw(m.t, "git") {
	case 0:
		m.outside[0].Data = nil // it cannot be asked
	case 1:
		m.outside = nil
	}
}
