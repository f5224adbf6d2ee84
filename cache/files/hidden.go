package files

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/blob"
)

// A Listing is what the names, types, sizes and times of a path and of all beneath it say. No
// content is read for it.
type Listing struct {
	Folder bool
	// Fixed says that the path cannot be moved as a whole: it has a repository, a .lopen, something
	// that is mounted or a folder that cannot be read in it.
	Fixed bool
	Files int       // but for folders
	Bytes int64     // of the regular files
	Hash  blob.Hash // of the path, and of all paths in it with their types, sizes and times
}

// String returns the numbers, as in "41,233 files, 310 MB".
func (l Listing) String() string {
	files, n := "files", strconv.Itoa(l.Files)
	for i := len(n) - 3; i > 0; i -= 3 {
		n = n[:i] + "," + n[i:]
	}
	if l.Files == 1 {
		files = "file"
	}
	size, unit := l.Bytes, 0
	for ; size >= 10_000 && unit < 4; unit++ {
		size /= 1000
	}
	return fmt.Sprintf("%s %s, %d %s", n, files, size, []string{"bytes", "kB", "MB", "GB", "TB"}[unit])
}

// ModeHidden is the Mode of a Fingerprint that stands for what is hidden. Its Size is the number of
// bytes, its Inode that of files, its Hash that of the Listing, and its Target "/" for a folder.
const ModeHidden = fs.ModeIrregular | fs.ModeTemporary

// Hidden returns the Listing of a Fingerprint with ModeHidden.
func (f *Fingerprint) Hidden() (Listing, bool) {
	if f == nil || f.Mode&^1 != ModeHidden {
		return Listing{}, false
	}
	return Listing{Folder: f.Target == "/", Fixed: f.Mode&1 != 0, Files: int(f.Inode), Bytes: f.Size, Hash: f.Hash}, true
}

// Fingerprint returns the Fingerprint that stands for a hidden path.
func (l Listing) Fingerprint(path string) *Fingerprint {
	f := &Fingerprint{Path: path, Mode: ModeHidden, Size: l.Bytes, Inode: uint64(l.Files), Hash: l.Hash}
	if l.Folder {
		f.Target = "/"
	}
	if l.Fixed {
		f.Mode |= 1
	}
	return f
}

// Unstored returns the numbers of a change of what is hidden, as [Listing.String] does, and the path
// with a slash at the end of a folder; numbers is "" for other changes.
func (c *Change) Unstored() (path, numbers string) {
	f := cmp.Or(c.New, c.Old)
	l, hidden := f.Hidden()
	if !hidden {
		if l, hidden = c.Old.Hidden(); !hidden {
			return c.Path, ""
		}
	}
	if l.Folder {
		return c.Path + "/", l.String()
	}
	return c.Path, l.String()
}

// A Budget bounds what is stored although rules that are not in force ignore it.
type Budget struct {
	Files int   `json:"files"`
	Bytes int64 `json:"bytes"`
}

// covers reports whether a listing fits.
func (b Budget) covers(l Listing) bool { return l.Files <= b.Files && l.Bytes <= b.Bytes }

// Less returns what is left of a Budget.
func (b Budget) Less(used Budget) Budget { return Budget{b.Files - used.Files, b.Bytes - used.Bytes} }

// A candidate is the topmost path that rules ignore that are not in force, and that was not recorded.
type candidate struct {
	path string
	was  bool // it was hidden before
}

// Measure lists a path as if it were at the path as: a listing stays the same when it is moved. file,
// unless nil, is called with each regular file at or beneath it, by what follows the path, and its
// inode number.
func Measure(ctx context.Context, root writer.FS, path, as string, file func(rel string, inode uint64)) (Listing, error) {
	if ctx == nil {
		return Listing{}, errContext
	}
	top, _, err := openTop(root)
	if err != nil {
		return Listing{}, err
	}
	defer top.close()
	l, _, err := measure(ctx, top, path, as, file)
	return l, err
}

// measure is Measure in an open folder. nested says that the path is a repository itself.
func measure(ctx context.Context, dir folder, path, as string, file func(string, uint64)) (l Listing, nested bool, err error) {
	for name, rest, below := strings.Cut(path, "/"); below; name, rest, below = strings.Cut(path, "/") {
		sub, err := dir.open(name, name)
		if err != nil {
			return Listing{}, false, err
		}
		defer sub.close()
		dir, path = sub, rest
	}
	st, err := dir.stat(path, path)
	if err != nil {
		return Listing{}, false, err
	}
	m := measurer{ctx: ctx, file: file, mount: st.mount, l: Listing{Folder: st.mode.IsDir()}}
	m.text = binary.AppendUvarint(m.text, uint64(len(as)))
	m.text = append(m.text, as...)
	err = m.add(dir, path, "", st, 0)
	m.flush()
	m.l.Hash = m.sum
	return m.l, m.nested, err
}

// A measurer adds up a Listing.
type measurer struct {
	ctx    context.Context
	file   func(rel string, inode uint64) // may be nil
	mount  uint64                         // that the path is on
	l      Listing
	nested bool
	text   []byte    // of the names since the last flush
	sum    blob.Hash // of the text before
}

// add adds the name of a folder, which is at rel in what is listed.
func (m *measurer) add(dir folder, name, rel string, st stat, depth int) error {
	if err := m.ctx.Err(); err != nil {
		return err
	}
	m.text = binary.AppendUvarint(m.text, uint64(len(rel)))
	m.text = binary.AppendUvarint(append(m.text, rel...), uint64(st.mode.Type()))
	if len(m.text) > 32<<10 {
		m.flush()
	}
	switch {
	case !st.mode.IsDir():
		m.addFile(rel, st)
		return nil
	case st.mount != m.mount:
		return m.closed(nil)
	}
	return m.addIn(dir, name, rel, depth)
}

func (m *measurer) addFile(rel string, st stat) {
	m.l.Fixed = m.l.Fixed || st.mount != m.mount
	m.l.Files++
	if st.mode.IsRegular() {
		m.l.Bytes += st.size
		if m.file != nil {
			m.file(rel, st.inode)
		}
	}
	m.text = binary.AppendVarint(binary.AppendVarint(m.text, st.size), st.modTime)
}

// addIn adds what is in a folder.
func (m *measurer) addIn(dir folder, name, rel string, depth int) error {
	sub, err := dir.open(name, name)
	if err != nil || depth > maxDepth {
		return m.closed(err)
	}
	defer sub.close()
	names, err := sub.names()
	if err != nil {
		return m.closed(err)
	}
	slices.Sort(names)
	m.nested = m.nested || depth == 0 && isRepository(sub, names)
	for _, n := range names {
		if never(n) {
			m.l.Fixed = true
			continue
		}
		st, err := sub.stat(n, n)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = m.add(sub, n, rel+"/"+n, st, depth+1)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// closed notes a folder that cannot be looked into.
func (m *measurer) closed(err error) error {
	m.l.Fixed = true
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	m.text = append(m.text, "closed"...)
	return nil
}

func (m *measurer) flush() {
	m.sum = sha256.Sum256(append(m.sum[:], m.text...))
	m.text = m.text[:0]
}

// Reveal completes a Snapshot that [Take] took with Options.Hide, of which opts are all others. It
// takes the paths that only rules found ignore, in their order, each as a whole and as if nothing
// but Options.InForce ignored what is in it, as long as they do not exceed the budget. Those that do
// not fit, and those that were hidden before, become hidden: a Skip has their Listing. Reveal
// returns how much it took. Folders of s that changed before the last of those paths was taken become
// Unstable: what was moved meanwhile may be at both paths or at none.
func Reveal(ctx context.Context, root writer.FS, s *Snapshot, opts Options, left Budget) (_ *Snapshot, used Budget, err error) {
	if len(s.candidates) == 0 {
		return s, used, nil
	}
	top, _, err := openTop(root)
	if err != nil {
		return nil, used, writer.NewError("open folder", root.Name(), writer.NotCommitted, err)
	}
	defer top.close()
	skips := slices.Clone(s.Skipped)
	opts.Paths, opts.Hide, opts.Hidden, opts.Keep, opts.whole = nil, false, nil, nil, true
	for _, c := range s.candidates {
		l, nested, err := measure(ctx, top, c.path, c.path, nil)
		switch {
		case ctx.Err() != nil:
			return nil, used, ctx.Err()
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			skips = append(skips, Skip{Path: c.path, Reason: Unreadable, Err: strings.ToValidUTF8(err.Error(), "?")})
		case nested:
			skips = append(skips, Skip{Path: c.path, Reason: Nested})
		case !c.was && left.Less(used).covers(l):
			used.Files, used.Bytes = used.Files+l.Files, used.Bytes+l.Bytes
			opts.Paths = append(opts.Paths, c.path)
		default:
			skips = append(skips, Skip{Path: c.path, Reason: Hidden, Listing: l})
		}
	}
	out := &Snapshot{At: s.At, Files: s.Files, Paths: s.Paths, Mounts: s.Mounts, Unstable: s.Unstable, Rules: s.Rules}
	if opts.Paths != nil {
		more, err := Take(ctx, root, nil, opts)
		if err != nil {
			return nil, used, err
		}
		skips = append(skips, more.Skipped...)
		out.Mounts = slices.Sorted(slices.Values(slices.Concat(s.Mounts, more.Mounts)))
		out.Unstable = slices.Concat(s.Unstable, more.Unstable)
		moved, err := s.taken.moved()
		if err != nil {
			return nil, used, err
		}
		for _, l := range moved {
			out.Unstable = append(out.Unstable, l.at.path)
		}
		slices.Sort(out.Unstable)
		out.Unstable = slices.Compact(out.Unstable)
		out.Files = slices.SortedFunc(slices.Values(slices.Concat(s.Files, more.Files)), func(a, b Fingerprint) int { return cmp.Compare(a.Path, b.Path) })
	}
	slices.SortStableFunc(skips, func(a, b Skip) int { return cmp.Compare(a.Path, b.Path) })
	out.Skipped = slices.CompactFunc(skips, func(a, b Skip) bool { return a.Path == b.Path })
	return out, used, nil
}
