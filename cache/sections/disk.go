package sections

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/lopen-dev/lopen/cache"
	"github.com/lopen-dev/lopen/writer"
)

const (
	cacheDir = "cache"
	dirName  = cacheDir + "/sections"
	tagName  = cacheDir + "/CACHEDIR.TAG"
	// tag is what backup programs look for: https://bford.info/cachedir/
	tag = "Signature: 8a477f597d28d172789f06886806bc55\n# Made by lopen: all of this can be derived again.\n"
)

// A disk keeps entries in a folder. A nil disk keeps nothing.
type disk struct {
	store writer.FS // the .lopen folder
	bytes int64
	log   zerolog.Logger

	mu     sync.Mutex
	made   bool  // Guarded by mu: the folder is there.
	broken bool  // Guarded by mu: a write failed; this process does not try again.
	used   int64 // Guarded by mu: bytes of all entries, about; -1 until they were counted.
}

func newDisk(store writer.FS, limit int64, log zerolog.Logger) *disk {
	return &disk{store: store, bytes: limit, log: log, used: -1}
}

func fileOf(name string) string {
	h := sha256.Sum256([]byte(name))
	return dirName + "/" + hex.EncodeToString(h[:16])
}

// get returns the outline of src if an entry has it, else nil.
func (d *disk) get(name string, sum [32]byte, src []byte) *cache.Outline {
	if d == nil {
		return nil
	}
	file := fileOf(name)
	data, err := writer.ReadFile(d.store, file, d.bytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var table []byte
	ok := false
	if err == nil {
		table, ok, err = decodeEntry(data, name, sum)
	}
	var o *cache.Outline
	if err == nil && ok {
		o, err = cache.OutlineOf(src, table)
	}
	if err != nil {
		d.log.Debug().Err(err).Str("file", name).Str("entry", file).Msg("section cache: an entry is dropped")
		_ = d.store.Remove(file) // else it stays, and is replaced
		return nil
	}
	return o
}

// put writes an entry, as far as that goes.
func (d *disk) put(name string, sum [32]byte, o *cache.Outline) {
	if d == nil {
		return
	}
	data := encodeEntry(name, sum, o.AppendTable(nil))
	if int64(len(data)) > d.bytes/2 {
		return // it would push everything else out
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.broken {
		return
	}
	err := d.makeDir()
	if err == nil {
		err = d.replace(fileOf(name), data)
	}
	if err == nil {
		err = d.bound(int64(len(data)))
	}
	if err != nil {
		d.broken = true
		d.log.Debug().Err(err).Msg("section cache: nothing more is kept on the disk")
	}
}

func (d *disk) makeDir() error {
	if d.made {
		return nil
	}
	for _, dir := range [...]string{cacheDir, dirName} {
		if err := d.store.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	if _, err := d.store.Lstat(tagName); errors.Is(err, fs.ErrNotExist) {
		if err := d.replace(tagName, []byte(tag)); err != nil {
			return err
		}
	}
	d.made = true
	return nil
}

// replace is writer.ReplaceFile without its two syncs: an entry that a power cut
// takes was not promised to anybody.
func (d *disk) replace(name string, data []byte) error {
	temp := writer.TempName(name)
	f, err := d.store.OpenFile(temp, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err == nil {
		err = d.store.Rename(temp, name)
	}
	if err != nil {
		_ = d.store.Remove(temp)
	}
	return err
}

// bound counts an entry that was added, and when all together are too many
// removes the oldest until a quarter is free. Other processes add to the same
// folder: what they added is seen when it is counted anew.
func (d *disk) bound(added int64) error {
	if d.used >= 0 {
		if d.used += added; d.used <= d.bytes {
			return nil
		}
	}
	all, used, err := list(d.store)
	if err != nil {
		return err
	}
	if used > d.bytes {
		slices.SortFunc(all, func(a, b fs.FileInfo) int {
			return cmp.Or(a.ModTime().Compare(b.ModTime()), cmp.Compare(a.Name(), b.Name()))
		})
		for _, info := range all {
			if used <= d.bytes/4*3 {
				break
			}
			if err := d.store.Remove(path.Join(dirName, info.Name())); err == nil {
				used -= info.Size()
			}
		}
	}
	d.used = used
	return nil
}

// list returns what lies in the folder of entries and how many bytes it has.
// Temporary files count: a crash may have left them.
func list(store writer.FS) (all []fs.FileInfo, used int64, err error) {
	entries, err := store.ReadDir(dirName)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || info.IsDir() {
			continue // gone meanwhile, or not ours
		}
		all = append(all, info)
		used += info.Size()
	}
	return all, used, nil
}

// Usage is what the entries of a store take.
type Usage struct {
	Entries int
	Bytes   int64
	Oldest  time.Time // of the entries; zero when there are none
}

// Use says what the entries below a store's folder take.
func Use(store string) (u Usage, err error) {
	dir, err := writer.OpenFS(store)
	if err != nil {
		return u, err
	}
	defer dir.Close()
	all, used, err := list(dir)
	if err != nil {
		return u, writer.NewError("list cache", path.Join(dir.Name(), dirName), writer.NotCommitted, err)
	}
	for _, info := range all {
		if u.Oldest.IsZero() || info.ModTime().Before(u.Oldest) {
			u.Oldest = info.ModTime()
		}
	}
	u.Entries, u.Bytes = len(all), used
	return u, nil
}

// Clear removes the entries below a store's folder and says what they took.
func Clear(store string) (u Usage, err error) {
	if u, err = Use(store); err != nil {
		return u, err
	}
	dir, err := writer.OpenFS(store)
	if err != nil {
		return u, err
	}
	defer dir.Close()
	if err := dir.RemoveAll(dirName); err != nil {
		return u, writer.NewError("clear cache", path.Join(dir.Name(), dirName), writer.NotCommitted, err)
	}
	return u, nil
}
