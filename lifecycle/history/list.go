package history

import (
	"cmp"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/lopen-dev/lopen/writer"
)

// An Unread is a snapshot that cannot be read.
type Unread struct {
	ID  ID
	Err error // of class corrupt
}

// List returns the manifests of all snapshots that can be read, and those that cannot, in
// ascending order of the records. It reads no more than their first lines. The error is
// that of listing the folder.
func List(dir writer.FS) (all []Manifest, unread []Unread, err error) {
	ids, err := IDs(dir)
	for _, id := range ids {
		m, err := ReadManifest(dir, id)
		if err != nil {
			unread = append(unread, Unread{id, &writer.Error{Op: "read snapshot", Path: Path(dir, id), Class: writer.ClassCorrupt, Err: err}})
			continue
		}
		all = append(all, m)
	}
	return all, unread, err
}

// IDs are those of all snapshots, in ascending order of the records.
func IDs(dir writer.FS) (ids []ID, err error) {
	entries, err := dir.ReadDir(Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, writer.NewError("list snapshots", filepath.Join(dir.Name(), Dir), writer.NotCommitted, err)
	}
	for _, e := range entries {
		if id, ok := parseName(e.Name()); ok {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b ID) int { return cmp.Or(cmp.Compare(a.Seq, b.Seq), cmp.Compare(a.Epoch, b.Epoch)) })
	return ids, nil
}

// Prune drops the oldest snapshots of each reason beyond n; 0 drops none. Those of
// large changes and of iterations, which were asked for by name, stay. Only the holder of
// the session's lease may call it.
func Prune(dir writer.FS, n int) error {
	if n <= 0 {
		return nil
	}
	all, _, err := List(dir)
	if err != nil {
		return err
	}
	count := map[Reason]int{}
	for _, m := range slices.Backward(all) {
		if m.Reason == Large || m.Reason == Iteration {
			continue
		}
		if count[m.Reason]++; count[m.Reason] <= n {
			continue
		}
		if err := dir.Remove(m.ID().Name()); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return writer.NewError("drop snapshot", Path(dir, m.ID()), writer.NotCommitted, err)
		}
	}
	return nil
}
