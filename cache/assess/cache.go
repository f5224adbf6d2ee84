package assess

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sync/singleflight"

	"github.com/lopen-dev/lopen/cache/files"
	"github.com/lopen-dev/lopen/cache/internal/shelf"
)

// DefaultTTL is how long a result counts where nothing else is set.
const DefaultTTL = 15 * time.Minute

// diskBytes bounds what all entries take. A file of a scope takes about 250 bytes.
const diskBytes = 256 << 20

// Options of a cache.
type Options struct {
	Store  string         // the .lopen folder; "" or a folder that is not there remembers nothing
	Logger zerolog.Logger // debug lines about entries; the zero value logs nothing
	// Memory has the hashes of the entries, so that one that somebody else wrote counts as missing. nil
	// believes every entry.
	Memory files.Memory
	now    func() time.Time
}

// A Cache remembers results.
type Cache struct {
	opts   Options
	disk   *shelf.Shelf
	flight singleflight.Group
}

// A Key names an assessment. One result is stored for each Name: that of the last Input.
type Key struct {
	Name  string
	Input []string // what else decides the result: the command, the patterns of the scope
}

// sum is of everything that Key says.
func (k Key) sum() [32]byte {
	b := binary.AppendUvarint(nil, uint64(len(k.Name)))
	b = append(b, k.Name...)
	for _, s := range k.Input {
		b = binary.AppendUvarint(b, uint64(len(s)))
		b = append(b, s...)
	}
	return sha256.Sum256(b)
}

// A Result is what was found out.
type Result struct {
	Data []byte
	At   time.Time // when the computation began
}

// A Look looks at a scope: it returns a snapshot of it, and whether last, which an
// earlier Look returned, is of the same. An empty or damaged last is of nothing; a
// whole one spares the reading of what did not change since.
type Look func(ctx context.Context, last []byte) (now []byte, same bool, err error)

// Open makes a cache. It touches the disk only to open the store's folder, and
// works without it where that fails. Close it after use.
func Open(opts Options) *Cache {
	c := &Cache{opts: opts}
	if opts.now == nil {
		c.opts.now = time.Now
	}
	if opts.Store != "" {
		c.disk = shelf.Open(opts.Store, shelfName, magic, diskBytes, opts.Logger)
	}
	return c
}

// Close lets go of the store's folder.
func (c *Cache) Close() error { return c.disk.Close() }

// noResult is the time of an entry without a result: the last computation failed, and
// of the scope it read only what changed need be read again.
var noResult = time.Unix(0, 0)

// A computed is what a computation led to.
type computed struct {
	result Result
	err    error
	before []byte // the scope when it began; nil when it could not be determined
}

// GetOrCompute returns the result of a key. hit says that this call computed
// nothing. A ttl of zero or less remembers nothing. compute's error is returned as
// it is, and no result is stored then; an error of look costs the entry, not the call.
// A call that waits for another one's computation ends with its own ctx.
func (c *Cache) GetOrCompute(ctx context.Context, key Key, ttl time.Duration, look Look, compute func(context.Context) ([]byte, error)) (r Result, hit bool, err error) {
	for {
		r, last, ok := c.fresh(ctx, key, ttl, look)
		if ok {
			return r, true, nil
		}
		if err := ctx.Err(); err != nil {
			return Result{}, false, err
		}
		var mine atomic.Bool
		sum := key.sum()
		ch := c.flight.DoChan(string(sum[:]), func() (any, error) {
			mine.Store(true)
			return c.compute(ctx, key, ttl, look, last, compute), nil
		})
		var got computed
		select {
		case res := <-ch:
			got = res.Val.(computed)
		case <-ctx.Done():
			if !mine.Load() {
				return Result{}, false, ctx.Err()
			}
			got = (<-ch).Val.(computed) // compute has the same ctx and ends
		}
		if mine.Load() {
			return got.result, false, got.err
		}
		// Somebody else's: it counts if the scope is what it was when that began,
		// and if it did not end because that caller was cancelled.
		if errors.Is(got.err, context.Canceled) || errors.Is(got.err, context.DeadlineExceeded) || got.before == nil {
			continue
		}
		if _, same, err := look(ctx, got.before); err == nil && same {
			return got.result, true, got.err
		}
	}
}

// fresh returns the remembered result if it counts, else the newest snapshot of the
// scope that there is.
func (c *Cache) fresh(ctx context.Context, key Key, ttl time.Duration, look Look) (r Result, last []byte, ok bool) {
	e := c.read(key)
	if age := c.opts.now().Sub(e.result.At); ttl <= 0 || e.result.At.Equal(noResult) || age < 0 || age > ttl { // below 0 a clock was set back
		return Result{}, e.scope, false
	}
	now, same, err := look(ctx, e.scope)
	if err != nil {
		return Result{}, e.scope, false
	}
	if !same {
		return Result{}, now, false
	}
	if !bytes.Equal(now, e.scope) {
		c.write(key, now, e.result) // what had to be read to be compared need not be the next time
	}
	return e.result, now, true
}

// compute computes and stores. last is a snapshot of the scope, as old as it may be.
func (c *Cache) compute(ctx context.Context, key Key, ttl time.Duration, look Look, last []byte, compute func(context.Context) ([]byte, error)) computed {
	got := computed{result: Result{At: c.opts.now()}}
	before, _, lookErr := look(ctx, last)
	if lookErr == nil {
		got.before = before
	}
	got.result.Data, got.err = compute(ctx)
	if got.err != nil && lookErr == nil && ttl > 0 && ctx.Err() == nil {
		c.write(key, before, Result{At: noResult})
	}
	if got.err != nil || ttl <= 0 {
		return got
	}
	var after []byte
	same := false
	if lookErr == nil {
		after, same, lookErr = look(ctx, before)
	}
	switch {
	case lookErr != nil && ctx.Err() == nil:
		c.opts.Logger.Warn().Err(lookErr).Str("name", key.Name).Msg("assessment is not stored")
	case !same:
		c.opts.Logger.Info().Str("name", key.Name).Msg("assessment is not stored: its scope changed meanwhile")
	default:
		c.write(key, after, got.result)
	}
	return got
}

// An entry on the disk has the fields: the SHA-256 of the key, the time that the
// computation began (nanoseconds since 1970, eight bytes, big-endian; 0 where it failed), the scope's
// snapshot (lines of cache/files, one for each part of the scope), the data.
const (
	shelfName = "assessments"
	magic     = "lopen assessment 2\n"
	numFields = 4
)

type entry struct {
	scope  []byte
	result Result
}

// read returns the entry of a key. Without a result, its scope is that of the last Input, if there is
// one: it spares reading, whatever the Input was.
func (c *Cache) read(key Key) entry {
	f := c.disk.Get(key.Name, numFields)
	if f == nil || c.opts.Memory != nil && !c.opts.Memory.Noted(memoryKey(key), hashOf(f)) {
		return entry{result: Result{At: noResult}}
	}
	if len(f[1]) != 8 {
		c.disk.Drop(key.Name, errors.New("its time has another length"))
		return entry{result: Result{At: noResult}}
	}
	if sum := key.sum(); !bytes.Equal(f[0], sum[:]) {
		return entry{scope: f[2], result: Result{At: noResult}}
	}
	at := time.Unix(0, int64(binary.BigEndian.Uint64(f[1])))
	return entry{scope: f[2], result: Result{Data: f[3], At: at}}
}

func (c *Cache) write(key Key, scope []byte, r Result) {
	sum := key.sum()
	at := binary.BigEndian.AppendUint64(nil, uint64(r.At.UnixNano()))
	f := [][]byte{sum[:], at, scope, r.Data}
	c.disk.Put(key.Name, f...)
	if c.opts.Memory != nil {
		c.opts.Memory.Note(memoryKey(key), hashOf(f))
	}
}

// memoryKey names an entry in a Memory: by its path below .lopen, with its Name.
func memoryKey(key Key) string { return "cache/" + shelfName + "/" + key.Name }

// hashOf hashes the fields of an entry, each with its length.
func hashOf(fields [][]byte) [sha256.Size]byte {
	h := sha256.New()
	for _, f := range fields {
		_, _ = h.Write(binary.AppendUvarint(nil, uint64(len(f)))) // never fails
		_, _ = h.Write(f)
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// Usage is what the entries on the disk take.
type Usage = shelf.Usage

// Use says what the entries below a store's folder take.
func Use(store string) (Usage, error) { return shelf.Use(store, shelfName) }

// Clear removes the entries below a store's folder and says what they took.
func Clear(store string) (Usage, error) { return shelf.Clear(store, shelfName) }
