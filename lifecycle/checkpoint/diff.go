package checkpoint

import (
	"sort"
	"strings"

	"github.com/lopen-dev/lopen/cache/files"
)

// Diff returns what differs from a to b, sorted by path: [files.Compare] without
// what is only touched, and without the folders that come and go with what is in
// them.
func Diff(a, b *files.Snapshot) []files.Change {
	var diff []files.Change
	for _, c := range files.Compare(a, b) {
		switch {
		case c.Kind == files.Touched:
		case c.Kind == files.Created && c.New.Mode.IsDir() && !empty(b, c.Path):
		case c.Kind == files.Deleted && c.Old.Mode.IsDir() && !empty(a, c.Path):
		default:
			diff = append(diff, c)
		}
	}
	return diff
}

// empty says whether a snapshot has nothing in a folder.
func empty(s *files.Snapshot, dir string) bool {
	i := sort.Search(len(s.Files), func(i int) bool { return s.Files[i].Path > dir+"/" })
	return i == len(s.Files) || !strings.HasPrefix(s.Files[i].Path, dir+"/")
}
