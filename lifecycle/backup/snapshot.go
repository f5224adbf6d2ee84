package backup

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/envelope"
)

// A Snapshot is what the folder has of one moment. Its file is snapshots/{number}.json.
type Snapshot struct {
	Number   uint64    `json:"number"` // from 1
	At       time.Time `json:"at"`
	Project  string    `json:"project"` // path of the project that it is of
	Sessions int       `json:"sessions"`
	Files    int       `json:"files"`   // entries that are no objects
	Objects  int       `json:"objects"` // objects of the checkpoints
	Bytes    int64     `json:"bytes"`   // sum of the sizes of all entries
	Added    int64     `json:"added"`   // bytes of the contents that were new to the folder
	Err      error     `json:"-"`       // why the file cannot be read; then only Number is set
}

// snapshotFile is the content of a snapshot's file.
type snapshotFile struct {
	Snapshot
	Header  ref `json:"header"`
	Entries ref `json:"entries"`
}

// sealed is the format of the folder's files that are no objects.
var sealed = envelope.Format{Key: "backup", Version: 1, Max: 64 << 10, File: true}

const snapshotSuffix = ".json"

func snapshotName(n uint64) string { return fmt.Sprintf("%08d", n) + snapshotSuffix }

// List returns the snapshots, the oldest first. One that cannot be read has an Err.
func (f *Folder) List() ([]Snapshot, error) {
	entries, err := f.files.ReadDir(snapshotsDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, writer.NewError("list backups", f.path(snapshotsDir), writer.NotCommitted, err)
	}
	var all []Snapshot
	for _, e := range entries {
		stem, ok := strings.CutSuffix(e.Name(), snapshotSuffix)
		n, err := strconv.ParseUint(stem, 10, 63)
		if !ok || err != nil || n == 0 || snapshotName(n) != e.Name() {
			continue
		}
		s, err := f.snapshot(n)
		if errors.Is(err, fs.ErrNotExist) {
			continue // pruned meanwhile
		}
		if err != nil {
			s.Snapshot = Snapshot{Number: n, Err: err}
		}
		all = append(all, s.Snapshot)
	}
	slices.SortFunc(all, func(a, b Snapshot) int { return int(a.Number) - int(b.Number) })
	return all, nil
}

// snapshot reads the file of a snapshot.
func (f *Folder) snapshot(n uint64) (s snapshotFile, err error) {
	name := snapshotsDir + "/" + snapshotName(n)
	if err := readSealed(f.files, name, &s); err != nil {
		return snapshotFile{}, err
	}
	err = errors.Join(s.Header.check(), s.Entries.check())
	if s.Number != n {
		err = fmt.Errorf("it is that of backup %d", s.Number)
	}
	if err != nil {
		return snapshotFile{}, &writer.Error{Op: "read", Path: f.path(name), Class: writer.ClassCorrupt, Err: err}
	}
	return s, nil
}

// readSealed reads a sealed file. The error has class corrupt if it is damaged, and
// future-version if a newer lopen wrote it.
func readSealed(dir writer.FS, name string, v any) error {
	data, err := writer.ReadFile(dir, name, int64(sealed.Max))
	if err != nil {
		return err
	}
	err = sealed.Decode(data, v)
	class := writer.ClassCorrupt
	if errors.Is(err, envelope.ErrFutureVersion) {
		class = writer.ClassFutureVersion
	}
	if err != nil {
		return &writer.Error{Op: "read", Path: filepath.Join(dir.Name(), name), Class: class, Err: err}
	}
	return nil
}
