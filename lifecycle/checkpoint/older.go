package checkpoint

import (
	"slices"

	"github.com/lopen-dev/lopen/cache/files"
)

// maxOlder bounds the paths of Entry.Older, and maxOlderBytes their length. What is beyond is taken
// for made since.
const (
	maxOlder      = 256
	maxOlderBytes = 16 << 10
)

// olderIn returns those of the paths that the first snapshot noted that the last one has.
func (l *looker) olderIn(s *files.Snapshot) (older []string) {
	n := 0
	for _, path := range l.older {
		there := s.Find(path) != nil || slices.ContainsFunc(s.Skipped, func(k files.Skip) bool { return k.Path == path && k.Reason == files.Hidden })
		if there && len(older) < maxOlder && n+len(path) <= maxOlderBytes {
			n += len(path)
			older = append(older, path)
		}
	}
	return older
}

// olderSince returns the paths that one of the entries after the target has in Older. Of an imported
// target nothing is known of what led from it to here.
func olderSince(entries []*Entry, target *Entry) map[string]bool {
	older := map[string]bool{}
	for _, e := range entries {
		if target.Number > 0 && e.Number > target.Number {
			for _, path := range e.Older {
				older[path] = true
			}
		}
	}
	return older
}

// olderAt returns the path at or above one that is older than the entry before it, or "".
func (p *planner) olderAt(path string) string {
	if len(p.older) == 0 {
		return ""
	}
	for i, r := range path + "/" {
		if r == '/' && p.older[path[:i]] {
			return path[:i]
		}
	}
	return ""
}
