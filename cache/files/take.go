package files

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/blob"
)

const (
	// DefaultMaxFiles bounds a snapshot: a million fingerprints take about 200 MB.
	DefaultMaxFiles = 1_000_000
	// DefaultMaxBytes bounds one file, in bytes: what is larger is no work of a person.
	DefaultMaxBytes = 4 << 30
	// maxDepth bounds how many folders are open at once, times the workers.
	maxDepth = 256
	// attempts is how often a file that changes while it is read is read.
	attempts = 3
	// granularity is that of the coarsest clock of a file system in use (FAT). What
	// was modified so shortly before a snapshot may have been modified again without
	// a new time.
	granularity = 2 * time.Second
)

// errContext is the error of a call without a context.
var errContext = &writer.Error{Op: "look at files", Class: writer.ClassInvalid, Err: errors.New("the context is nil")}

// ErrTooMany says that a tree has more files than Options.MaxFiles.
var ErrTooMany = errors.New("too many files; leave some out in .lopenignore")

// Options of Take; the zero value takes everything within the default bounds.
type Options struct {
	// Paths are the files and folders to take, relative to the root; none is the whole
	// tree. One that is named is taken although it is ignored; what is in it is judged
	// as ever. One that is not there is covered, like a deleted file.
	Paths []string
	// Only chooses among the files and symlinks by path; with it, folders are not
	// recorded. nil takes all. It is called by several goroutines at once.
	Only     func(path string) bool
	MaxFiles int   // fingerprints; above it Take fails with ErrTooMany. 0 is DefaultMaxFiles
	MaxBytes int64 // of one file, above which it is skipped as TooLarge. 0 is DefaultMaxBytes
	// Hash reads a regular file to its end and returns the SHA-256 and the number of
	// bytes: who wants to keep the content does it there. nil only hashes. It is called
	// for files that are new or not the base's by their stat, several at once, and
	// again for one that changed meanwhile. An error of it that is not of r ends Take.
	Hash func(ctx context.Context, path string, r io.Reader) (blob.Hash, int64, error)

	// Outside are ignore files from outside of the tree, the weakest first: git's
	// core.excludesFile, then its info/exclude. All others are stronger. One at TrackedPath
	// has the names that git tracks.
	Outside []IgnoreFile
	// InForce are rules that hold in addition to those that are found, in the tree and in Outside;
	// nil is none. A path that they ignore is left out. One that only the rules found
	// ignore is left out as well, unless Keep says that it is to be taken.
	InForce *Rules
	// Hide leaves the paths that only the rules found ignore to [Reveal]. Hidden are those that
	// were hidden before: unless they are tracked or InForce ignores them they stay so, whatever
	// rules were found.
	Hide   bool
	Hidden map[string]bool
	// Keep says of a path whether it was taken before. nil says it of none. With it, what is
	// left out is in Skipped where Keep says so; without it, where the base knows it. It is
	// called by several goroutines at once.
	Keep func(path string) bool
	// Nested goes into repositories within the tree: folders with a .git. Without it they
	// are skipped, unless Keep says that they are to be taken.
	Nested bool
	// Repository returns a text that changes with a repository within the tree that is skipped, or "" if
	// its state is not known. nil knows of none. It is called by several goroutines at once.
	Repository func(ctx context.Context, path string) string
	// Mounts are the mount points in force. Mount is asked about a path that is a mount point and
	// not in Mounts, and about one in Mounts that is none any more (mounted is false); what is
	// there is left out as Mounted if it returns false. nil is never asked, and takes all. It is
	// called by several goroutines at once.
	Mounts map[string]bool
	Mount  func(path string, mounted bool) bool

	whole  bool              // the rules found do not apply
	now    func() time.Time  // of tests
	tick   func() int64      // of tests: see tickNow
	wait   func()            // of tests: see waitTick
	looked func(path string) // of tests: a folder's names were read
}

// Take looks at the tree under root. base, when not nil, is an earlier snapshot of
// the same tree: what has not changed since costs one stat; without it everything
// is read. Skipped says what was left out.
//
// The error is ErrTooMany, the context's, one of Options.Hash, an invalid path, or
// a *writer.Error that says that the root cannot be read.
func Take(ctx context.Context, root writer.FS, base *Snapshot, opts Options) (*Snapshot, error) {
	if ctx == nil {
		return nil, errContext
	}
	opts.MaxFiles = cmp.Or(opts.MaxFiles, DefaultMaxFiles)
	opts.MaxBytes = cmp.Or(opts.MaxBytes, DefaultMaxBytes)
	if opts.Hash == nil {
		opts.Hash = sum
	}
	if opts.now == nil {
		opts.now = time.Now
	}
	if opts.tick == nil {
		opts.tick, opts.wait = tickNow, waitTick
	}
	if base == nil {
		base = &Snapshot{}
	}
	paths, err := cleanPaths(opts.Paths)
	if err != nil {
		return nil, err
	}
	opts.Paths = paths
	w := &walker{root: root, base: base, opts: opts, rules: slices.Clone(opts.Outside), tracked: trackedBy(opts), fresh: math.MinInt64, unchanged: make([]bool, len(base.Files))}
	if !base.At.IsZero() {
		w.fresh = base.fresh()
	}
	out := &Snapshot{At: opts.now(), Paths: paths}
	err = w.run(ctx, func(ctx context.Context) error { return w.start(ctx, paths) })
	if err == nil {
		out.Unstable, err = w.settle(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("take snapshot of %s: %w", root.Name(), err)
	}
	out.Files, out.Skipped = w.result()
	out.Files = w.hollow(out.Files, out.Skipped, out.Unstable)
	out.Older = w.olderIn(out)
	slices.Sort(w.mounts)
	out.Mounts = w.mounts
	slices.SortFunc(w.candidates, func(a, b candidate) int { return strings.Compare(a.path, b.path) })
	if out.candidates = w.candidates; len(w.candidates) > 0 {
		out.taken = w
	}
	if paths == nil {
		out.Rules = NewRules(w.rules)
	}
	return out, nil
}

// cleanPaths returns the paths sorted, without those beneath another, nil for all.
func cleanPaths(paths []string) ([]string, error) {
	var clean []string
	for _, p := range paths {
		c, err := CleanPath(p)
		if err != nil {
			return nil, err
		}
		if c == "." {
			return nil, nil
		}
		clean = append(clean, c)
	}
	slices.Sort(clean)
	var roots []string
	for _, c := range clean {
		if !slices.ContainsFunc(roots, func(k string) bool { return beneath(c, k) }) {
			roots = append(roots, c)
		}
	}
	return roots, nil
}

// CleanPath returns a path of Options.Paths in its shortest form, or an error of
// class invalid for one that Take refuses.
func CleanPath(p string) (string, error) {
	c := path.Clean(p)
	if p == "" || path.IsAbs(p) || c == ".." || strings.HasPrefix(c, "../") || strings.ContainsRune(p, 0) {
		return "", &writer.Error{Op: "take snapshot", Path: p, Class: writer.ClassInvalid, Err: errors.New("give a path inside the project, relative to it")}
	}
	for part := range strings.SplitSeq(c, "/") {
		if never(part) {
			return "", &writer.Error{Op: "take snapshot", Path: p, Class: writer.ClassInvalid, Err: fmt.Errorf("%s is never taken", part)}
		}
	}
	return c, nil
}

// A walker makes one snapshot.
type walker struct {
	root      writer.FS
	base      *Snapshot
	opts      Options
	fresh     int64  // ns: a file of the base with times from here on is read again
	unchanged []bool // the base's files that still hold; each element is written by the goroutine that looks at that path
	tracked   []tracked
	count     atomic.Int64
	group     *errgroup.Group

	mended     bool                   // a folder was read again
	before     map[string]Fingerprint // what was found in the folder that is read again
	beforeTick int64                  // the time of the file system's changes before that was read

	mu         sync.Mutex
	found      []Fingerprint // Guarded by mu.
	skips      []Skip        // Guarded by mu.
	mounts     []string      // Guarded by mu: the mount points that were taken.
	rules      []IgnoreFile  // Guarded by mu: those that were found.
	candidates []candidate   // Guarded by mu.
	older      []string      // Guarded by mu: see noteOlder.
	ruleBytes  int           // Guarded by mu: of those in the tree.
	visits     []*visit      // Guarded by mu.
}

// run calls fn, and waits for what it spawns.
func (w *walker) run(ctx context.Context, fn func(context.Context) error) error {
	w.group, ctx = errgroup.WithContext(ctx)
	w.group.SetLimit(runtime.GOMAXPROCS(0))
	w.group.Go(func() error { return fn(ctx) })
	return w.group.Wait()
}

// spawn runs fn on another goroutine when a worker is free, else at once.
func (w *walker) spawn(fn func() error) error {
	if w.group.TryGo(fn) {
		return nil
	}
	return fn()
}

// sum hashes.
func sum(_ context.Context, _ string, r io.Reader) (blob.Hash, int64, error) {
	h, buf := sha256.New(), buffers.Get().(*[bufferSize]byte)
	defer buffers.Put(buf)
	n, err := io.CopyBuffer(h, struct{ io.Reader }{r}, buf[:])
	return blob.Hash(h.Sum(nil)), n, err
}

// bufferSize is how much is read at once, of a file and of a folder.
const bufferSize = 128 << 10

var buffers = sync.Pool{New: func() any { return new([bufferSize]byte) }}

// result merges what stands of the base, which is sorted, with what was found.
func (w *walker) result() ([]Fingerprint, []Skip) {
	slices.SortFunc(w.found, func(a, b Fingerprint) int { return strings.Compare(a.Path, b.Path) })
	slices.SortFunc(w.skips, func(a, b Skip) int { return strings.Compare(a.Path, b.Path) })
	skips := slices.CompactFunc(w.skips, func(a, b Skip) bool { return a.Path == b.Path })
	if len(w.found) == 0 && !slices.Contains(w.unchanged, false) {
		return w.base.Files, skips
	}
	all := slices.Grow([]Fingerprint(nil), int(w.count.Load())) // nil when nothing is left, as of an empty tree
	found := w.found
	for i, unchanged := range w.unchanged {
		if !unchanged {
			continue
		}
		for len(found) > 0 && found[0].Path < w.base.Files[i].Path {
			all, found = append(all, found[0]), found[1:]
		}
		all = append(all, w.base.Files[i])
	}
	return append(all, found...), skips
}

func (w *walker) add(f Fingerprint) error {
	w.mu.Lock()
	w.found = append(w.found, f)
	w.mu.Unlock()
	return w.counted()
}

func (w *walker) counted() error {
	if w.count.Add(1) > int64(w.opts.MaxFiles) {
		return fmt.Errorf("more than %d: %w", w.opts.MaxFiles, ErrTooMany)
	}
	return nil
}

func (w *walker) skip(path string, why Reason, err error) {
	s := Skip{Path: path, Reason: why}
	if err != nil {
		s.Err = strings.ToValidUTF8(err.Error(), "?")
	}
	w.addSkip(s)
}

func (w *walker) skipRepository(ctx context.Context, path string) {
	s := Skip{Path: path, Reason: Nested}
	if w.opts.Repository != nil {
		if state := w.opts.Repository(ctx, path); state != "" {
			s.State = sha256.Sum256([]byte(state))
		}
	}
	w.addSkip(s)
}

func (w *walker) addSkip(s Skip) {
	w.mu.Lock()
	w.skips = append(w.skips, s)
	w.mu.Unlock()
}

// stat is what a look at a path shows, without following it.
type stat struct {
	mode             fs.FileMode
	size             int64
	modTime, chgTime int64
	inode            uint64
	mount            uint64 // of the mount that it is on
}

// modeBits are those that a fingerprint has. Setuid, setgid and sticky are not among
// them, as for git: what brings a mode back must never give a file somebody's rights.
const modeBits = fs.ModeType | fs.ModePerm

// fingerprint is that of a path, without its content.
func (s stat) fingerprint(path string) Fingerprint {
	f := Fingerprint{Path: path, Mode: s.mode & modeBits}
	switch f.Mode.Type() {
	case fs.ModeDir:
		return f
	case fs.ModeSymlink:
		f.Mode = fs.ModeSymlink
	}
	f.Size, f.ModTime, f.ChangeTime, f.Inode = s.size, s.modTime, s.chgTime, s.inode
	return f
}
