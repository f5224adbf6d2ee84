package files

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/lopen-dev/lopen/writer"
)

// ignoreFiles hold the rules, a later one's over an earlier one's of the same folder.
var ignoreFiles = []string{".gitignore", lopenIgnore}

// lopenIgnore holds for what is tracked as well.
const lopenIgnore = ".lopenignore"

const (
	// maxIgnore bounds the ignore files that hold for a path, those of all folders above
	// it together, in bytes: every name is compared with all their patterns. Of a file
	// that would exceed it nothing holds, and it is noted as unreadable.
	maxIgnore = 256 << 10
	// maxRules bounds all ignore files of a tree together, in bytes: a Snapshot keeps them.
	maxRules = 32 << 20
)

// never says of which names nothing is ever taken. git as well refuses them in any
// case, because there are file systems that do.
func never(name string) bool { return isGit(name) || strings.EqualFold(name, ".lopen") }

func isGit(name string) bool { return strings.EqualFold(name, ".git") }

// isRepository says whether a folder with these names is a repository for git: it has .git, which is
// .GIT as well where the file system does not tell them apart.
func isRepository(dir folder, names []string) bool {
	if !slices.ContainsFunc(names, isGit) {
		return false
	}
	_, err := dir.stat(".git", ".git")
	return !errors.Is(err, fs.ErrNotExist)
}

// A level is the rules of one folder and of the ones above. Immutable.
type level struct {
	above    *level
	prefix   int // length of the folder's path with its '/'
	patterns []pattern
	own      int  // where those of .lopenignore begin
	size     int  // of the ignore files of this folder and of those above, in bytes
	fold     bool // see FoldPath
}

// FoldPath is the Path of an IgnoreFile from outside that holds no patterns: where it is among the others,
// letters from a to z match both cases, as for git with core.ignorecase.
const FoldPath = "//core.ignorecase"

// add returns the rules of a folder below, which has these ignore files.
func (l *level) add(dir string, files []IgnoreFile) *level {
	sub := &level{above: l, size: l.bytes(), fold: l != nil && l.fold}
	folds := slices.ContainsFunc(files, func(f IgnoreFile) bool { return f.Path == FoldPath })
	sub.fold = sub.fold || folds
	if dir != "." && dir != "" {
		sub.prefix = len(dir) + 1
	}
	for _, f := range files {
		if f.Path != FoldPath && sub.size+len(f.Data) <= maxIgnore {
			sub.size += len(f.Data)
			sub.patterns = append(sub.patterns, parseIgnore(folded(string(f.Data), sub.fold))...)
			if path.Base(f.Path) != lopenIgnore {
				sub.own = len(sub.patterns)
			}
		}
	}
	if sub.patterns == nil && !folds {
		return l
	}
	return sub
}

// folded returns a text with the letters from A to Z in lower case, if that is asked for.
func folded(text string, fold bool) string {
	isUpper := func(r rune) bool { return 'A' <= r && r <= 'Z' }
	if !fold || !strings.ContainsFunc(text, isUpper) {
		return text
	}
	b := []byte(text)
	for i, c := range b {
		if isUpper(rune(c)) {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

func (l *level) bytes() int {
	if l == nil {
		return 0
	}
	return l.size
}

// ignored judges a path whose folders are not ignored: the last pattern that
// matches decides, those of the nearest folder first. name is the last part.
func (l *level) ignored(path, name string, isDir bool) bool {
	return l.decide(path, name, isDir, false)
}

// ownIgnored judges a path by the patterns of .lopenignore files alone.
func (l *level) ownIgnored(path, name string, isDir bool) bool {
	return l.decide(path, name, isDir, true)
}

// decide judges a path by all patterns, or by those of .lopenignore files alone.
func (l *level) decide(path, name string, isDir, own bool) bool {
	if l != nil && l.fold {
		path, name = folded(path, true), folded(name, true)
	}
	for ; l != nil; l = l.above {
		patterns := l.patterns
		if own {
			patterns = patterns[l.own:]
		}
		for i := len(patterns) - 1; i >= 0; i-- {
			if p := &patterns[i]; p.match(path[l.prefix:], name, isDir) {
				return !p.negated
			}
		}
	}
	return false
}

// A ruling is what rules say beneath a folder.
type ruling struct {
	*level
	only bool // a folder above is ignored: what is not tracked is, too
}

// ignores judges a path in the folder, given what is tracked, and returns the ruling beneath it. Only a path
// that the rules ignore is looked up.
func (r ruling) ignores(path, name string, isDir bool, names ...tracked) (ruling, bool) {
	if !r.only && !r.ignored(path, name, isDir) {
		return r, false
	}
	r.only = true
	isTracked := slices.ContainsFunc(names, func(t tracked) bool { return t.has(path, isDir) })
	return r, !isTracked || r.ownIgnored(path, name, isDir)
}

// A judge says what is left out of a folder, by the rules that were found in the tree
// and by those that are in force. They are one where their files have the same bytes.
type judge struct {
	found, force ruling
}

// enter returns the judge of a folder that has these ignore files; "" is outside.
func (j judge) enter(dir string, found, force []IgnoreFile) judge {
	if j.found == j.force && slices.EqualFunc(found, force, IgnoreFile.equal) {
		j.found.level = j.found.add(dir, found)
		return judge{j.found, j.found}
	}
	j.found.level, j.force.level = j.found.add(dir, found), j.force.add(dir, force)
	return j
}

// A fate is what becomes of a path.
type fate int

const (
	taken fate = iota
	left
	hidden // left to Reveal
)

// judge decides a path. One that only the rules that were found ignore is taken where Options.Keep
// says so; what is beneath it is ignored by them all the same. What is tracked, as was found or by
// the rules in force, is judged by .lopenignore files alone.
func (w *walker) judge(at *place, name string, mode fs.FileMode) fate {
	isDir := mode.IsDir()
	one := at.found == at.force
	force, ignored := at.force.ignores(at.path, name, isDir, w.tracked...)
	if ignored {
		return left
	}
	at.force = force
	if w.opts.Hidden[at.path] && !w.isTracked(at.path, isDir) {
		return hidden
	}
	if one || w.opts.whole {
		at.found = at.force
		return taken
	}
	at.found, ignored = at.found.ignores(at.path, name, isDir, w.tracked...)
	switch {
	case !ignored || w.keeps(at.path):
		return taken
	case w.opts.Hide && (isDir || mode.IsRegular() || mode.Type() == fs.ModeSymlink):
		return hidden
	}
	return left
}

func (w *walker) isTracked(path string, isDir bool) bool {
	return slices.ContainsFunc(w.tracked, func(t tracked) bool { return t.has(path, isDir) })
}

// hide leaves a path to Reveal.
func (w *walker) hide(path string) {
	if !w.opts.Hidden[path] {
		w.noteOlder(path)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.candidates = append(w.candidates, candidate{path, w.opts.Hidden[path]})
}

func (w *walker) keeps(path string) bool { return w.opts.Keep != nil && w.opts.Keep(path) }

// enter reads the ignore files among a folder's names, and returns its judge. As git
// since 2.32 does, it takes a symlink for no ignore file.
func (w *walker) enter(at place, names []string) (judge, error) {
	var found []IgnoreFile
	force := w.opts.InForce.of(at.path)
	left := maxIgnore - at.found.bytes()
	for _, name := range ignoreFiles {
		if !slices.Contains(names, name) {
			continue
		}
		file := path.Join(at.path, name)
		info, err := w.root.Lstat(file)
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		data, err := writer.ReadFile(w.root, file, int64(left))
		if err != nil {
			if writer.ClassOf(err) == writer.ClassInvalid {
				err = fmt.Errorf("of %d KiB for the ignore files along a path %d bytes are left: %w", maxIgnore>>10, left, err)
			}
			if !errors.Is(err, fs.ErrNotExist) {
				w.skip(file, Unreadable, err)
			}
			continue
		}
		left -= len(data)
		f := IgnoreFile{file, data}
		if i := slices.IndexFunc(force, f.equal); i >= 0 {
			f = force[i] // one copy in memory
		}
		found = append(found, f)
	}
	if len(found) == 0 && len(force) == 0 {
		return at.judge, nil
	}
	return at.enter(at.path, found, force), w.keepRules(found)
}

// keepRules keeps what is found for Snapshot.Rules.
func (w *walker) keepRules(found []IgnoreFile) error {
	if w.opts.Paths != nil {
		return nil // they would be found for each path
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rules = append(w.rules, found...)
	for _, f := range found {
		w.ruleBytes += len(f.Data)
	}
	if w.ruleBytes > maxRules {
		return fmt.Errorf("the ignore files have more than %d MiB together: %w", maxRules>>20, ErrTooMany)
	}
	return nil
}
