package carry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lopen-dev/lopen/lifecycle/folder"
	"github.com/lopen-dev/lopen/lifecycle/history"
	"github.com/lopen-dev/lopen/lifecycle/output"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/journal"
)

// A frozen is the folder of a session as it was at one moment, while its holder goes on. All
// that the State rests on was opened at once, so that it stays readable when the holder
// rewrites or removes it, and the log ends where it ended. Only reading works.
//
// The other files are those of the folder: inherited logs do not change, snapshots that no
// record rests on may go, and the output may grow.
type frozen struct {
	writer.FS                   // the session's folder
	held      map[string]*held  // by path
	snapshots map[string]bool   // the names in history/
	late      map[string]uint64 // the records of the snapshots that may be of later records than the log
	contents  *folder.Contents  // what was loaded from it
}

// A held is a file as it was when the folder was frozen.
type held struct {
	f    writer.File // nil once released
	info fs.FileInfo // always the same one, by which writer.SameFile knows it
	size int64       // how much of it counts, in bytes
}

// readable are the files that are made from the log, for people.
var readable = []string{folder.StateFile, folder.MetricsFile, "messages.jsonl", "transcript.jsonl"}

// freeze opens and loads a session. busy reports whether a process holds it: then a folder that
// does not fit together was changed meanwhile, and is frozen again, for ten seconds at most.
func freeze(ctx context.Context, dir writer.FS, id session.ID, busy func() bool) (z *frozen, err error) {
	ctx, cancel := writer.WithPatience(ctx)
	defer cancel()
	for tries, alone := 1, 0; ; tries++ {
		if z, err = freezeOnce(dir, id); err == nil {
			return z, nil
		}
		if !busy() {
			alone++ // its holder may have ended meanwhile
		}
		if alone == 2 || tries >= folder.Tries && ctx.Err() != nil {
			return nil, err
		}
	}
}

func freezeOnce(dir writer.FS, id session.ID) (*frozen, error) {
	z := &frozen{FS: dir, held: map[string]*held{}, snapshots: map[string]bool{}, late: map[string]uint64{}}
	if err := z.take(id); err != nil {
		z.release()
		return nil, err
	}
	return z, nil
}

// take opens the files, and loads the session from them.
func (z *frozen) take(id session.ID) (err error) {
	// In the order of a reader: the log is opened after what it vouches for, so that this is of no
	// later record, and its list before the segments, since a writer may add one in between.
	for _, name := range append(slices.Clone(readable), "meta.json", "recovery.json", journal.ListFile) {
		if err := z.hold(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := z.holdSnapshots(false); err != nil {
		return err
	}
	entries, err := z.FS.ReadDir(".")
	if err != nil {
		return err
	}
	for _, e := range entries {
		if journal.IsSegment(e.Name()) {
			if err := z.hold(e.Name()); err != nil {
				return err
			}
		}
	}
	// A record that came meanwhile may rest on a snapshot that came meanwhile.
	if err := z.holdSnapshots(true); err != nil {
		return err
	}
	if z.contents, err = folder.Load(z, id); err != nil {
		return err
	}
	z.cut()
	return nil
}

// suffices reads the whole log, and returns an error if it alone does not lead to the State.
// Here state.json may make up for a hole in it, but where the session comes to nobody believes
// that file. It is for a session that nobody holds: what is not frozen must stay.
func (z *frozen) suffices(id session.ID) (*journal.Log, error) {
	was := map[string]*held{}
	for _, name := range folder.Readable {
		if h := z.held[name]; h != nil {
			was[name] = h
			delete(z.held, name)
		}
	}
	defer maps.Copy(z.held, was)
	alone, err := folder.Load(z, id)
	if err != nil {
		return nil, err
	}
	if alone.At.Seq != z.contents.At.Seq {
		err = &writer.Error{Op: "export", Path: z.Name(), Class: writer.ClassCorrupt,
			Err: fmt.Errorf("the log alone ends at record %d, and %s is of record %d", alone.At.Seq, folder.StateFile, z.contents.At.Seq)}
	}
	return alone.Log, err
}

// hold opens a file.
func (z *frozen) hold(name string) error {
	f, info, err := writer.OpenRegular(z.FS, "export", name, os.O_RDONLY)
	if err == nil {
		z.held[name] = &held{f: f, info: info, size: info.Size()}
	}
	return err
}

// holdSnapshots opens the snapshots that records rest on and remembers the names of the others.
// Those that are late, of records which the log may not have, are not listed.
func (z *frozen) holdSnapshots(late bool) error {
	all, err := history.IDs(z.FS)
	if err != nil {
		return err
	}
	for _, id := range all {
		name := history.File(z.FS, id)
		if late && (z.held[name] != nil || z.snapshots[name]) {
			continue
		}
		m, err := history.ReadManifest(z.FS, id)
		if err == nil && m.Reason == history.Large {
			if err = z.hold(name); err == nil && late {
				z.late[name] = id.Seq
			}
		}
		if late || errors.Is(err, fs.ErrNotExist) {
			continue // it was removed, as its turn came, or no record rests on it
		}
		z.snapshots[name] = true // one that is damaged as well: the log says whether it matters
	}
	return nil
}

// cut ends the log behind the last line that counts, and removes what is of later records.
func (z *frozen) cut() {
	if name, size := z.contents.Log.Whole(); z.held[name] != nil {
		z.held[name].size = size
	}
	for name, seq := range z.late {
		delete(z.late, name)
		if seq <= z.contents.At.Seq {
			continue
		}
		_ = z.held[name].f.Close() // nothing was written to it
		delete(z.held, name)
	}
}

// release closes the files. They are opened again when they are read, and must be as they were.
func (z *frozen) release() {
	for _, h := range z.held {
		if h.f != nil {
			_ = h.f.Close() // nothing was written to it
			h.f = nil
		}
	}
}

// Close closes the files and the folder.
func (z *frozen) Close() error {
	z.release()
	return z.FS.Close()
}

// hidden reports whether a name was not there, or is nothing that is carried.
func (z *frozen) hidden(name string) bool {
	dir, _, below := strings.Cut(name, "/")
	switch {
	case name == ".", z.held[name] != nil:
		return false
	case !below:
		return dir != history.Dir && dir != output.Dir && dir != inheritedDir
	case dir == history.Dir:
		return !z.snapshots[name]
	}
	return !carried(name) && !inherited().MatchString(name)
}

func (z *frozen) missing(op, name string) error {
	return &fs.PathError{Op: op, Path: filepath.Join(z.Name(), name), Err: fs.ErrNotExist}
}

func (z *frozen) OpenFile(name string, flag int, perm fs.FileMode) (writer.File, error) {
	if z.hidden(name) || flag&(os.O_WRONLY|os.O_RDWR|os.O_CREATE) != 0 {
		return nil, z.missing("open", name)
	}
	h := z.held[name]
	if h == nil {
		return z.FS.OpenFile(name, flag, perm)
	}
	f, own := h.f, io.Closer(nil)
	if f == nil {
		again, info, err := writer.OpenRegular(z.FS, "export", name, os.O_RDONLY)
		if err != nil {
			return nil, err
		}
		if !writer.SameFile(info, h.info) || info.Size() != h.info.Size() || !info.ModTime().Equal(h.info.ModTime()) {
			_ = again.Close()
			return nil, z.missing("open", name)
		}
		f, own = again, again
	}
	return &view{File: f, r: io.NewSectionReader(f, 0, h.size), info: z.info(h), own: own}, nil
}

func (z *frozen) Lstat(name string) (fs.FileInfo, error) {
	if z.hidden(name) {
		return nil, z.missing("lstat", name)
	}
	if h := z.held[name]; h != nil {
		return z.info(h), nil
	}
	return z.FS.Lstat(name)
}

func (z *frozen) Stat(name string) (fs.FileInfo, error) { return z.Lstat(name) }

func (z *frozen) info(h *held) fs.FileInfo { return sized{h.info, h.size} }

func (z *frozen) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := z.FS.ReadDir(name)
	if err != nil {
		return nil, err
	}
	name = strings.TrimPrefix(name+"/", "./")
	entries = slices.DeleteFunc(entries, func(e fs.DirEntry) bool {
		return z.hidden(name+e.Name()) || z.held[name+e.Name()] != nil
	})
	for path, h := range z.held {
		if dir, base := filepath.Split(path); dir == name && z.late[path] == 0 {
			entries = append(entries, fs.FileInfoToDirEntry(named{z.info(h), base}))
		}
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) })
	return entries, nil
}

// sized is a file's info with the size that counts.
type sized struct {
	fs.FileInfo
	size int64
}

func (s sized) Size() int64 { return s.size }

// named is a file's info with its name.
type named struct {
	fs.FileInfo
	name string
}

func (n named) Name() string { return n.name }

// A view reads a held file from its begin.
type view struct {
	writer.File
	r    *io.SectionReader
	info fs.FileInfo
	own  io.Closer // nil if the file stays open
}

func (v *view) Read(p []byte) (int, error)             { return v.r.Read(p) }
func (v *view) ReadAt(p []byte, at int64) (int, error) { return v.r.ReadAt(p, at) }
func (v *view) Stat() (fs.FileInfo, error)             { return v.info, nil }

func (v *view) Close() error {
	if v.own == nil {
		return nil
	}
	return v.own.Close()
}
