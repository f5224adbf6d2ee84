package files

import (
	"bytes"
	"slices"
	"strings"
	"sync"
)

// An IgnoreFile is the text of a file of ignore rules.
type IgnoreFile struct {
	// Path is where it stands, relative to the root with '/' between its parts; its folder
	// is where its patterns begin. One from outside of the tree has a Path that begins with
	// "//" and holds for the root.
	Path string
	Data []byte
}

func (f IgnoreFile) outside() bool { return strings.HasPrefix(f.Path, "//") }

func (f IgnoreFile) equal(g IgnoreFile) bool {
	return f.Path == g.Path && bytes.Equal(f.Data, g.Data)
}

// Rules are what ignore files say, with git's syntax and precedence. They are immutable
// and may be used by several goroutines; nil ignores nothing. Patterns are read when they
// are asked for, and only those of the folders on the way to one path stay in memory.
type Rules struct {
	files []IgnoreFile
	in    map[string][]IgnoreFile // by folder, "" for those from outside
	names tracked

	mu  sync.Mutex
	way []ruled // Guarded by mu: the folders on the way to the path that was last asked for.
}

// ruled is a folder with its rules.
type ruled struct {
	dir   string
	rules ruling
}

// NewRules returns the rules of ignore files. Those from outside of the tree are weaker
// than all others, the first of them the weakest. Of the ignore files along a path what
// exceeds 256 KiB holds nothing. The files must not be changed afterwards.
func NewRules(all []IgnoreFile) *Rules {
	r := &Rules{files: slices.Clone(all), in: map[string][]IgnoreFile{}}
	slices.SortStableFunc(r.files, func(a, b IgnoreFile) int {
		switch {
		case a.outside() && b.outside():
			return 0
		case a.outside():
			return -1
		case b.outside():
			return 1
		}
		return strings.Compare(a.Path, b.Path)
	})
	rest, names := split(r.files)
	r.names = names
	for _, f := range rest {
		dir := parent(f.Path)
		if f.outside() {
			dir = ""
		}
		r.in[dir] = append(r.in[dir], f)
	}
	return r
}

// Files are what the Rules were made of, those from outside first, then by path. They
// must not be changed.
func (r *Rules) Files() []IgnoreFile {
	if r == nil {
		return nil
	}
	return r.files
}

// of returns the ignore files of a folder, "" for those from outside.
func (r *Rules) of(dir string) []IgnoreFile {
	if r == nil {
		return nil
	}
	return r.in[dir]
}

// Ignored says whether git would leave a path out: it or a folder above it is ignored, and it is not tracked
// or a .lopenignore file ignores it. dir says that the path is a folder. Many paths are judged fastest in the
// order of their folders.
func (r *Rules) Ignored(path string, dir bool) bool {
	if r == nil || len(r.files) == 0 {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.way) == 0 {
		r.way = append(r.way, ruled{".", ruling{level: (*level)(nil).add("", r.of("")).add(".", r.of("."))}})
	}
	from := 0
	for depth := 1; ; depth++ {
		end := strings.IndexByte(path[from:], '/')
		if end < 0 {
			_, ignored := r.way[depth-1].rules.ignores(path, path[from:], dir, r.names)
			return ignored
		}
		end += from
		at := path[:end]
		rules, ignored := r.way[depth-1].rules.ignores(at, path[from:end], true, r.names)
		if ignored {
			return true
		}
		if depth == len(r.way) || r.way[depth].dir != at {
			rules.level = rules.add(at, r.of(at))
			r.way = append(r.way[:depth], ruled{at, rules})
		}
		from = end + 1
	}
}
