package assess

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/lopen-dev/lopen/cache/files"
	"github.com/lopen-dev/lopen/writer"
)

// ErrPattern is wrapped when a pattern is none.
var ErrPattern = errors.New("bad pattern")

// Files is the Look at the tracked files below a folder that patterns name, as
// cache/files tracks them. Patterns are doublestar's, with `**` for any number of
// folders, relative to the folder with slashes. Without patterns it is all tracked
// files.
//
// What a pattern says without wildcards is in the scope although it is ignored: a
// file or folder that is named by a whole pattern, the folder before the first
// wildcard of another. What is in such a folder is judged as ever. A pattern without
// wildcards that finds nothing or a symlink is an error of the Look: what it names,
// nobody watches.
func Files(root string, patterns []string) (Look, error) {
	s := scope{root: root}
	if len(patterns) == 0 {
		patterns = []string{"."}
	}
	for _, p := range patterns {
		p = strings.TrimPrefix(strings.TrimSuffix(p, "/"), "./")
		if !doublestar.ValidatePattern(p) {
			return nil, fmt.Errorf("%w: %q", ErrPattern, p)
		}
		folder, rest := doublestar.SplitPattern(p + "/*")
		folder, err := files.CleanPath(folder)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrPattern, err)
		}
		i := slices.IndexFunc(s.parts, func(p part) bool { return p.path == folder })
		if i < 0 {
			i, s.parts = len(s.parts), append(s.parts, part{path: folder})
		}
		s.parts[i].patterns = append(s.parts[i].patterns, strings.TrimSuffix(rest, "/*"))
		s.parts[i].whole = s.parts[i].whole || rest == "*"
	}
	return s.look, nil
}

// A scope is looked at part by part: folders in one another, of which the inner one
// is ignored, would be one to the tracker. Immutable.
type scope struct {
	root  string
	parts []part
}

// A part is what patterns name that are equal up to the folder before the first
// wildcard.
type part struct {
	path     string   // that folder, or what a pattern without wildcards names
	patterns []string // what is behind it
	whole    bool     // one of them is the path: all that is in it
}

// look is a Look. Its snapshots are those of the parts.
func (s scope) look(ctx context.Context, last []byte) ([]byte, bool, error) {
	root, err := writer.OpenFS(s.root)
	if err != nil {
		return nil, false, fmt.Errorf("look at the files of the scope: %w", err)
	}
	defer root.Close()
	before := decode(last, len(s.parts))
	all := make([]*files.Snapshot, len(s.parts))
	same, settled := true, true
	for i, p := range s.parts {
		now, err := p.take(ctx, root, before[i])
		if err != nil {
			return nil, false, fmt.Errorf("look at the files of the scope: %w", err)
		}
		all[i] = now
		equal, alike := compare(before[i], now)
		same, settled = same && equal, settled && alike
	}
	if same && settled {
		return last, true, nil
	}
	return encode(all), same, nil
}

// encode returns the snapshots' bytes, each behind its length.
func encode(all []*files.Snapshot) (b []byte) {
	for _, s := range all {
		one := s.Encode()
		b = append(binary.AppendUvarint(b, uint64(len(one))), one...)
	}
	return b
}

// decode returns the snapshots of n parts, all nil when data is not of so many.
func decode(data []byte, n int) []*files.Snapshot {
	all := make([]*files.Snapshot, 0, n)
	for len(data) > 0 {
		size, at := binary.Uvarint(data)
		if at <= 0 || size > uint64(len(data)-at) {
			return make([]*files.Snapshot, n)
		}
		s, err := files.Decode(data[at : at+int(size)])
		if err != nil {
			return make([]*files.Snapshot, n)
		}
		all, data = append(all, s), data[at+int(size):]
	}
	if len(all) != n {
		return make([]*files.Snapshot, n)
	}
	return all
}

// take looks at a part. What the tracker cannot tell of is an error: it may have
// changed. What is ignored by now is gone from the scope.
func (p part) take(ctx context.Context, root writer.FS, base *files.Snapshot) (*files.Snapshot, error) {
	s, err := files.Take(ctx, root, base, files.Options{Paths: []string{p.path}, Only: p.names, Nested: true})
	if err != nil {
		return nil, err
	}
	s.Skipped = slices.DeleteFunc(s.Skipped, func(k files.Skip) bool { return k.Reason == files.Ignored })
	for _, k := range s.Skipped {
		if k.Reason != files.Special { // it holds no content
			return nil, errors.New(strings.TrimSuffix(fmt.Sprintf("%q is %s: %s", k.Path, k.Reason, k.Err), ": "))
		}
	}
	if p.whole && p.path != "." && len(s.Files) == 0 {
		return nil, fmt.Errorf("%q names no tracked file", p.path)
	}
	if p.whole && len(s.Files) == 1 && s.Files[0].Path == p.path && s.Files[0].Mode&fs.ModeSymlink != 0 {
		return nil, fmt.Errorf("%q is a symlink: name what it leads to", p.path)
	}
	return s, nil
}

// compare says whether a part is the same, and whether the next look at it can be
// compared with before as well as with now.
func compare(before, now *files.Snapshot) (same, alike bool) {
	if before == nil || !slices.Equal(before.Paths, now.Paths) || !slices.Equal(before.Skipped, now.Skipped) {
		return false, false
	}
	return len(files.Compare(before, now)) == 0, before.Equal(now) && before.Settled()
}

// names says whether a pattern names a file or a folder around it.
func (p part) names(name string) bool {
	if p.whole {
		return true
	}
	rel, in := name, true
	if p.path != "." {
		rel, in = strings.CutPrefix(name, p.path+"/")
	}
	return in && slices.ContainsFunc(p.patterns, func(p string) bool {
		if doublestar.MatchUnvalidated(p, rel) {
			return true
		}
		for i, c := range rel {
			if c == '/' && doublestar.MatchUnvalidated(p, rel[:i]) {
				return true
			}
		}
		return false
	})
}
