package files

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/blob"
)

// A Fingerprint is what is remembered of one path.
type Fingerprint struct {
	// Path is relative to the root, with '/' between its parts; any bytes but NUL.
	Path string
	// Mode is the type (regular, ModeDir or ModeSymlink) with the permission bits, and
	// never setuid, setgid or sticky; a symlink has its type only. A folder is recorded
	// when it is empty and when something in it is recorded or skipped, and has no more
	// than Path and Mode.
	Mode fs.FileMode
	Size int64 // in bytes
	// ModTime and ChangeTime are mtime and ctime in nanoseconds since 1970. ChangeTime
	// and Inode are 0 where the system has none.
	ModTime    int64
	ChangeTime int64
	Inode      uint64
	Hash       blob.Hash // of the content; of Target for a symlink
	Target     string    // of a symlink, as it is written
}

// Content is the hash of the content in hex, "" of nothing, and of a folder and what is hidden,
// which have none.
func (f *Fingerprint) Content() string {
	if _, hidden := f.Hidden(); f == nil || hidden || f.Mode.IsDir() {
		return ""
	}
	return f.Hash.String()
}

// sameContent says whether both are of one type and content.
func (f *Fingerprint) sameContent(g *Fingerprint) bool {
	return f.Mode.Type() == g.Mode.Type() && f.Hash == g.Hash
}

// sameStat says whether all is equal that a look from outside shows.
func (f *Fingerprint) sameStat(g *Fingerprint) bool {
	return f.Mode.Type() == g.Mode.Type() && f.Size == g.Size && f.ModTime == g.ModTime &&
		f.ChangeTime == g.ChangeTime && f.Inode == g.Inode
}

// A Reason says why something was skipped.
type Reason string

// The reasons.
const (
	Special    Reason = "special"    // a FIFO, a socket or a device
	TooLarge   Reason = "too-large"  // more than Options.MaxBytes
	TooDeep    Reason = "too-deep"   // more than 256 folders deep
	Unreadable Reason = "unreadable" // Err says why
	Unstable   Reason = "unstable"   // it changed at every attempt to read it
	Symlinked  Reason = "symlinked"  // a path of Options.Paths leads through a symlink
	Ignored    Reason = "ignored"    // ignored now, and known to the base snapshot
	Mounted    Reason = "mounted"    // something was mounted there since, or unmounted
	Nested     Reason = "repository" // the folder is a repository of its own, or a submodule
	Hidden     Reason = "hidden"     // ignored by rules that are not in force, and not recorded; see Reveal
)

// A Skip is a path that exists and of which a Snapshot knows nothing, nor of what
// is beneath it. An ignore file that could not be read for its rules is in Skipped, and
// may be in Files as well.
type Skip struct {
	Path   string
	Reason Reason
	Err    string // of Unreadable
	// State is a hash of what Options.Repository says of a repository, zero if that is not known.
	// Of what is too large it is one of size and mtime.
	State   blob.Hash
	Listing // of Hidden
}

// HasState reports whether a Skip of this reason may have a State.
func (r Reason) HasState() bool { return r == Nested || r == TooLarge }

// stated returns what stands for a path in a Change that has a State only, or nil if that is not known.
func (k *Skip) stated() *Fingerprint {
	if !k.Reason.HasState() || k.State == (blob.Hash{}) {
		return nil
	}
	return &Fingerprint{Path: k.Path, Mode: fs.ModeIrregular, Hash: k.State, Target: string(k.Reason)}
}

// A Snapshot is what a tree was. It is immutable.
type Snapshot struct {
	At      time.Time     // before the first look at the tree
	Files   []Fingerprint // sorted by Path, each path once
	Skipped []Skip        // sorted by Path
	Paths   []string      // what it is of: Options.Paths, sorted; nil is the whole tree
	Mounts  []string      // the mount points among what was taken, sorted
	// Unstable are the folders that changed at every look, sorted; "." is the root. What is
	// recorded was there, and of what is not recorded in them nothing is known.
	Unstable []string
	// Older are paths that the base did not have, although what is there was there before the base was
	// taken: it came from where nothing is recorded. Sorted; not encoded, and only with Options.Keep.
	Older []string
	Rules *Rules // that were found, those from outside included; nil with Paths, and not encoded
	// Stored is the root of the tree of objects that this was stored as, zero when it is
	// not known. Take leaves it zero; who stores the Snapshot sets it before sharing it.
	Stored blob.Hash

	candidates []candidate // sorted; for Reveal, and not encoded
	taken      *walker     // that took it, if there are candidates

	inodesOnce sync.Once
	inodes     map[uint64]struct{} // of Files

	once  sync.Once
	index map[string]int32 // into Files, for Take
}

// Equal says whether two Snapshots of the same paths found the same, times included.
func (s *Snapshot) Equal(t *Snapshot) bool {
	return slices.Equal(s.Files, t.Files) && slices.Equal(s.Skipped, t.Skipped) && slices.Equal(s.Paths, t.Paths) &&
		slices.Equal(s.Mounts, t.Mounts) && slices.Equal(s.Unstable, t.Unstable)
}

// Settled says that no file is so young that Take, with this Snapshot as its base,
// would read it although nothing changed.
func (s *Snapshot) Settled() bool {
	fresh := s.fresh()
	return !slices.ContainsFunc(s.Files, func(f Fingerprint) bool { return max(f.ModTime, f.ChangeTime) >= fresh })
}

// fresh is the time, in nanoseconds since 1970, from which on a file's times prove
// nothing of what came after the Snapshot.
func (s *Snapshot) fresh() int64 { return s.At.Add(-granularity).UnixNano() }

// Find returns the fingerprint of a path, nil when there is none.
func (s *Snapshot) Find(path string) *Fingerprint {
	i, ok := slices.BinarySearchFunc(s.Files, path, func(f Fingerprint, p string) int { return strings.Compare(f.Path, p) })
	if !ok {
		return nil
	}
	return &s.Files[i]
}

// Covers says whether the Snapshot knows of a path: without a fingerprint of it
// there was nothing that could be recorded.
func (s *Snapshot) Covers(path string) bool {
	if s.Paths != nil && !slices.ContainsFunc(s.Paths, func(p string) bool { return beneath(path, p) }) {
		return false
	}
	for p := path; p != "."; p = parent(p) {
		if s.skipped(p) {
			return false
		}
	}
	return !s.skipped(".") && !s.unsettledAt(path)
}

func (s *Snapshot) skipped(path string) bool {
	_, ok := slices.BinarySearchFunc(s.Skipped, path, func(k Skip, p string) int { return strings.Compare(k.Path, p) })
	return ok
}

// knows says whether something at or beneath a path was recorded or noted as ignored.
func (s *Snapshot) knows(path string) bool {
	at := func(n int, get func(int) string) bool {
		i := sort.Search(n, func(i int) bool { return get(i) >= path })
		if i < n && get(i) == path {
			return true
		}
		i = sort.Search(n, func(i int) bool { return get(i) >= path+"/" })
		return i < n && strings.HasPrefix(get(i), path+"/")
	}
	return at(len(s.Files), func(i int) string { return s.Files[i].Path }) ||
		at(len(s.Skipped), func(i int) string { return s.Skipped[i].Path })
}

// lookup returns the index of a path in Files. The map is made at the first call.
func (s *Snapshot) lookup(path string) (int, bool) {
	s.once.Do(func() {
		s.index = make(map[string]int32, len(s.Files))
		for i := range s.Files {
			s.index[s.Files[i].Path] = int32(i)
		}
	})
	i, ok := s.index[path]
	return int(i), ok
}

// beneath says whether path is dir or in it.
func beneath(path, dir string) bool {
	return dir == "." || strings.HasPrefix(path, dir) && (len(path) == len(dir) || path[len(dir)] == '/')
}

// parent is path.Dir for a clean relative path.
func parent(path string) string {
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		return path[:i]
	}
	return "."
}

// read reads the file of a snapshot, up to where it has nothing but zeros, so that a sparse
// file takes only as much memory as was written into it. No snapshot has so many.
func read(dir writer.FS, name string) ([]byte, error) {
	f, info, err := writer.OpenRegular(dir, "read", name, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info.Size() > MaxEncoded {
		return writer.ReadFile(dir, name, MaxEncoded) // its error says so
	}
	var data []byte
	in := io.LimitReader(f, info.Size())
	for piece := make([]byte, 64<<10); ; {
		n, err := io.ReadFull(in, piece)
		if bytes.Count(piece[:n], []byte{0}) == len(piece) {
			return data, nil
		}
		data = append(data, piece[:n]...)
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return data, nil
		case err != nil:
			return nil, writer.NewError("read", filepath.Join(dir.Name(), name), writer.NotCommitted, err)
		}
	}
}
