package sections

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"
	"github.com/rs/zerolog"
	"golang.org/x/sync/singleflight"

	"github.com/lopen-dev/lopen/cache"
	"github.com/lopen-dev/lopen/cache/internal/identity"
	"github.com/lopen-dev/lopen/cache/internal/shelf"
	"github.com/lopen-dev/lopen/plan/markdown"
	"github.com/lopen-dev/lopen/writer/documents"
)

// DefaultBytes bounds memory, and the entries on the disk, where Options say
// nothing.
const DefaultBytes = 64 << 20

// MaxFile is the size of the largest file that is read, in bytes.
const MaxFile = 16 << 20

// ErrNotRegular says that a name is of no regular file of at most MaxFile bytes.
var ErrNotRegular = fmt.Errorf("not a file of at most %d MiB", MaxFile>>20)

// Options of a cache.
type Options struct {
	Docs   fs.FS          // the folder that names are relative to; nothing leads out of it
	Root   string         // the same folder's path, for the stat of a hit
	Store  string         // the .lopen folder; "" or a folder that is not there keeps nothing on the disk
	Bytes  int64          // bound of the memory, and of the entries on the disk; 0 is DefaultBytes
	Logger zerolog.Logger // debug lines about entries; the zero value logs nothing
	now    func() time.Time
}

// A Cache keeps outlines of the Markdown files of one folder.
type Cache struct {
	opts   Options
	mem    *otter.Cache[string, *entry]
	disk   *shelf.Shelf // nil without one
	flight singleflight.Group

	hits, reads, parses atomic.Int64
}

// An entry is what was found in a file. Immutable.
type entry struct {
	path    string // below Root, as the system writes it
	id      identity.Identity
	racy    bool // id does not say enough: the content has to be compared
	sum     [32]byte
	outline *cache.Outline
}

// Stats counts what a cache did since it was opened.
type Stats struct {
	Hits   int64 // answered after one stat
	Reads  int64 // files read and hashed
	Parses int64 // files parsed
}

// Open makes a cache. It touches the disk only to open the store's folder, and
// works without it where that fails. Close it after use.
func Open(opts Options) *Cache {
	if opts.Bytes <= 0 {
		opts.Bytes = DefaultBytes
	}
	var disk *shelf.Shelf
	if opts.Store != "" {
		disk = shelf.Open(opts.Store, shelfName, magic, opts.Bytes, opts.Logger)
	}
	return open(opts, disk)
}

func open(opts Options, disk *shelf.Shelf) *Cache {
	if opts.now == nil {
		opts.now = time.Now
	}
	c := &Cache{opts: opts, disk: disk}
	c.mem = otter.Must(&otter.Options[string, *entry]{
		MaximumWeight: uint64(opts.Bytes),
		Weigher:       weigh,
		Executor:      func(fn func()) { fn() }, // no goroutine outlives a call
	})
	return c
}

// weigh is about what an entry takes: the file's text, and for each section the
// values, strings and map slots that stand for it.
func weigh(name string, e *entry) uint32 {
	const perEntry, perSection = 512, 384
	n := len(name) + perEntry + e.outline.Len() + perSection*e.outline.Count()
	return uint32(min(n, math.MaxUint32))
}

// Outline returns the outline of a file by its name relative to the folder,
// with slashes. The error is that of opening or reading the file, or
// ErrNotRegular; nothing that is wrong with the cache is an error.
func (c *Cache) Outline(name string) (*cache.Outline, error) {
	e, err := c.entry(name)
	if err != nil {
		return nil, err
	}
	return e.outline, nil
}

// Stats returns the counts so far.
func (c *Cache) Stats() Stats {
	return Stats{Hits: c.hits.Load(), Reads: c.reads.Load(), Parses: c.parses.Load()}
}

// Close lets go of the store's folder.
func (c *Cache) Close() error { return c.disk.Close() }

func (c *Cache) entry(name string) (*entry, error) {
	known, ok := c.mem.GetIfPresent(name)
	path := ""
	if ok {
		path = known.path
	} else {
		path = filepath.Join(c.opts.Root, filepath.FromSlash(name))
	}
	// One stat by the whole path, which costs a third of one that takes care not
	// to leave the folder. It may be led astray by a symlink: then it sees another
	// inode than that of the file that was read with care.
	info, err := os.Stat(path)
	var seen identity.Identity
	if err == nil {
		seen = identity.Of(info)
	}
	if ok && err == nil && known.id == seen && !known.racy {
		c.hits.Add(1)
		return known, nil
	}
	for range 3 {
		mine := false
		v, err, _ := c.flight.Do(name, func() (any, error) {
			mine = true
			return c.load(name, path)
		})
		// What somebody else read may be older than the question: it counts only
		// for the file that was seen.
		if mine && err != nil {
			return nil, err
		}
		if err == nil && (mine || v.(*entry).id == seen) {
			return v.(*entry), nil
		}
	}
	return c.load(name, path)
}

// load reads a file and returns its outline from memory or disk, where it is of
// the same content, or parses it.
func (c *Cache) load(name, path string) (*entry, error) {
	begun := c.opts.now()
	src, id, steady, err := c.read(name)
	for try := 0; err == nil && !steady && try < 2; try++ {
		begun = c.opts.now()
		src, id, steady, err = c.read(name) // it is being written
	}
	if err != nil {
		c.mem.Invalidate(name)
		return nil, err
	}
	c.reads.Add(1)
	e := &entry{path: path, id: id, racy: !steady || id.Racy(begun), sum: sum(src)}
	if known, ok := c.mem.GetIfPresent(name); ok && known.sum == e.sum {
		e.outline = known.outline
	} else if e.outline = c.fromDisk(name, e.sum, src); e.outline == nil {
		c.parses.Add(1)
		e.outline = cache.NewOutline(src)
		c.disk.Put(name, []byte(markdown.Revision()), []byte(name), e.sum[:], e.outline.AppendTable(nil))
	}
	c.mem.Set(name, e)
	return e, nil
}

// read returns a file's content in UTF-8, its identity, and whether the file was the same
// before and after.
func (c *Cache) read(name string) (src []byte, id identity.Identity, steady bool, err error) {
	fail := func(err error) ([]byte, identity.Identity, bool, error) {
		var pe *fs.PathError
		if errors.As(err, &pe) {
			err = pe.Err
		}
		return nil, identity.Identity{}, false, &fs.PathError{Op: "read", Path: name, Err: err}
	}
	info, err := fs.Stat(c.opts.Docs, name) // before the open, which waits where the name is of a FIFO
	if err != nil {
		return fail(err)
	}
	if !info.Mode().IsRegular() || info.Size() > MaxFile {
		return fail(ErrNotRegular)
	}
	f, err := c.opts.Docs.Open(name)
	if err != nil {
		return fail(err)
	}
	defer f.Close()
	if info, err = f.Stat(); err != nil {
		return fail(err)
	}
	if info.Size() > MaxFile {
		return fail(ErrNotRegular)
	}
	src = make([]byte, info.Size()+1)
	n, err := io.ReadFull(f, src)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return fail(err)
	}
	after, err := f.Stat()
	if err != nil {
		return fail(err)
	}
	if src, err = documents.Text(src[:n]); err != nil {
		return fail(err)
	}
	id = identity.Of(info)
	return src, id, id == identity.Of(after) && int64(n) == info.Size(), nil
}
