package shelf

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"path"
	"slices"
	"sync"

	"github.com/rs/zerolog"

	"github.com/lopen-dev/lopen/writer"
)

const (
	cacheDir = "cache"
	tagName  = cacheDir + "/CACHEDIR.TAG"
	// tag is what backup programs look for: https://bford.info/cachedir/
	tag = "Signature: 8a477f597d28d172789f06886806bc55\n# Made by lopen: all of this can be derived again.\n"
)

// A Shelf keeps entries in a folder below cache/ in the store. A nil Shelf keeps
// nothing.
type Shelf struct {
	store writer.FS // the .lopen folder
	dir   string
	magic string
	bytes int64
	log   zerolog.Logger

	mu     sync.Mutex
	made   bool  // Guarded by mu: the folder is there.
	broken bool  // Guarded by mu: a write failed; this process does not try again.
	used   int64 // Guarded by mu: bytes of all entries, about; -1 until they were counted.
}

// New returns a shelf of a name. magic begins each of its entries and names their
// version; limit is what all together may take, in bytes. Nothing is touched. The
// Shelf owns store.
func New(store writer.FS, name, magic string, limit int64, log zerolog.Logger) *Shelf {
	return &Shelf{store: store, dir: cacheDir + "/" + name, magic: magic, bytes: limit, log: log, used: -1}
}

// Open is New on the store's folder of a path; nil when that cannot be opened.
func Open(path, name, magic string, limit int64, log zerolog.Logger) *Shelf {
	store, err := writer.OpenFS(path)
	if err != nil {
		log.Debug().Err(err).Msgf("%s cache: nothing is kept on the disk", name)
		return nil
	}
	return New(store, name, magic, limit, log)
}

// Close lets go of the store's folder.
func (d *Shelf) Close() error {
	if d == nil {
		return nil
	}
	return d.store.Close()
}

// File is the name of a key's entry, relative to the store.
func (d *Shelf) File(key string) string {
	h := sha256.Sum256([]byte(key))
	return d.dir + "/" + hex.EncodeToString(h[:16])
}

// Get returns the n fields of an entry, nil when there is none. One that is
// damaged is removed. Whether the fields are of this key is for the caller to say.
func (d *Shelf) Get(key string, n int) [][]byte {
	if d == nil {
		return nil
	}
	data, err := writer.ReadFile(d.store, d.File(key), d.bytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var fields [][]byte
	if err == nil {
		fields, err = decode(data, d.magic, n)
	}
	if err != nil {
		d.Drop(key, err)
		return nil
	}
	return fields
}

// Drop removes an entry of which something is wrong, as far as that goes.
func (d *Shelf) Drop(key string, why error) {
	d.log.Debug().Err(why).Str("key", key).Str("entry", d.File(key)).Msg("cache: an entry is dropped")
	_ = d.store.Remove(d.File(key)) // else it is replaced
}

// Put writes an entry, as far as that goes.
func (d *Shelf) Put(key string, fields ...[]byte) {
	if d == nil {
		return
	}
	data := encode(d.magic, fields...)
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
		err = writer.ReplaceUnsynced(d.store, d.File(key), data, 0o600) // what a power cut takes was not promised to anybody
	}
	if err == nil {
		err = d.bound(int64(len(data)))
	}
	if err != nil {
		d.broken = true
		d.log.Debug().Err(err).Msg("cache: nothing more is kept on the disk")
	}
}

func (d *Shelf) makeDir() error {
	if d.made {
		return nil
	}
	err := MakeDir(d.store, d.dir)
	d.made = err == nil
	return err
}

// MakeDir makes a folder of cache/ in the store, with the tag beside it.
func MakeDir(store writer.FS, dir string) error {
	for _, dir := range [...]string{cacheDir, dir} {
		if err := store.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	if _, err := store.Lstat(tagName); errors.Is(err, fs.ErrNotExist) {
		return errors.Join(writer.ReplaceUnsynced(store, cacheDir+"/.gitignore", []byte("*\n"), 0o600), writer.ReplaceUnsynced(store, tagName, []byte(tag), 0o600))
	}
	return nil
}

// bound counts an entry that was added, and when all together are too many
// removes the oldest until a quarter is free. Other processes add to the same
// folder: what they added is seen when it is counted anew.
func (d *Shelf) bound(added int64) error {
	if d.used >= 0 {
		if d.used += added; d.used <= d.bytes {
			return nil
		}
	}
	all, used, err := list(d.store, d.dir)
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
			if err := d.store.Remove(path.Join(d.dir, info.Name())); err == nil {
				used -= info.Size()
			}
		}
	}
	d.used = used
	return nil
}

// list returns what lies in a folder of entries and how many bytes it has.
// Temporary files count: a crash may have left them.
func list(store writer.FS, dir string) (all []fs.FileInfo, used int64, err error) {
	entries, err := store.ReadDir(dir)
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
