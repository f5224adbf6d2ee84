package fleet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"math"
	"os"
	"path"
	"regexp"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/folder"
	"github.com/lopen-dev/lopen/lifecycle/history"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
	"github.com/lopen-dev/lopen/lifecycle/wire"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/blob"
	"github.com/lopen-dev/lopen/writer/journal"
)

// pageBytes is about how many bytes of records come with one question.
const pageRecords = 1000

// Fetch writes a session's folder as the fleet has it into the folder to, which has no session: its
// log, and the files that it needs. It changes nothing in the fleet. The log is durable when Fetch
// returns nil. What comes is checked: each line by its checksum and its place, all of them by the
// sum of the last one, and the session is loaded. The error is a [*SessionError] if that fails.
func (f *Fleet) Fetch(ctx context.Context, x *Found, to writer.FS) (*folder.Contents, error) {
	if x.row.head == 0 {
		return nil, fmt.Errorf("session %s: %w", x.ID, errNothing)
	}
	ld, err := f.fetch(ctx, x, to)
	return ld, x.doubted(err)
}

func (f *Fleet) fetch(ctx context.Context, x *Found, to writer.FS) (*folder.Contents, error) {
	if err := roomFor(to, x.row.bytes); err != nil {
		return nil, fmt.Errorf("fetch session %s: %w", x.ID, err)
	}
	r := &records{f: f, ctx: ctx, row: &x.row, name: x.ID.String(), most: x.row.bytes}
	err := journal.Compose(to, x.ID.String(), x.row.base, r.lines())
	if err == nil && (r.last != x.row.head || !bytes.Equal(r.sum, x.row.sum)) {
		err = &writer.Error{Op: "fetch session", Path: x.ID.String(), Class: writer.ClassCorrupt, Err: fmt.Errorf("its records in the fleet do not add up to the sum of record %d", x.row.head)}
	}
	if err == nil {
		err = f.fetchFiles(ctx, &x.row, to)
	}
	if err != nil {
		return nil, fmt.Errorf("fetch session %s: %w", x.ID, err)
	}
	ld, err := loadBounded(to, x.ID)
	if err == nil && ld.At.Incarnation != x.Incarnation {
		err = &writer.Error{Op: "fetch session", Path: x.ID.String(), Class: writer.ClassCorrupt, Err: fmt.Errorf("its log is of incarnation %q, and the fleet says %q", ld.At.Incarnation, x.Incarnation)}
	}
	if err != nil {
		return nil, fmt.Errorf("fetch session %s: %w", x.ID, err)
	}
	return ld, nil
}

// loadBounded loads a session, if its State is one that a fleet may have.
func loadBounded(dir writer.FS, id session.ID) (*folder.Contents, error) {
	snapshots, err := history.IDs(dir)
	for i := 0; i < len(snapshots) && err == nil; i++ {
		err = snapshotFits(dir, snapshots[i])
	}
	if err != nil {
		return nil, err
	}
	ld, err := folder.Load(dir, id)
	if err == nil && ld.State.NumTasks() > maxTasks {
		err = refused(id.String(), "it has %d tasks: %w", ld.State.NumTasks(), errManyTasks)
	}
	return ld, err
}

// FetchInto is Fetch into a store that has no session of this ID, for who only reads it there.
func (f *Fleet) FetchInto(ctx context.Context, x *Found, store *lifecycle.Store) error {
	root, err := writer.OpenFS(store.Path())
	if err != nil {
		return err
	}
	defer root.Close()
	if err := mkdirs(root, folder.Path(x.ID)); err != nil {
		return err
	}
	dir, err := writer.OpenDir(root, folder.Path(x.ID))
	if err != nil {
		return err
	}
	defer dir.Close()
	_, err = f.Fetch(ctx, x, dir)
	return err
}

// roomFor returns an error if so many bytes have no room in a folder.
func roomFor(to writer.FS, bytes int64) error {
	free, err := writer.FreeBytes(to.Name())
	if err == nil && (bytes < 0 || uint64(bytes) > free) {
		err = &writer.Error{Op: "fetch session", Path: to.Name(), Class: writer.ClassNoSpace, Err: fmt.Errorf("the fleet has %d MiB of it and %d MiB are free", bytes>>20, free>>20)}
		return err
	}
	return nil
}

// records reads the lines of a session up to the head of its row.
type records struct {
	f    *Fleet
	ctx  context.Context //nolint:containedctx // that of the one Fetch
	row  *row
	name string
	most int64 // bytes of all of them
	made int   // tasks
	last uint64
	sum  []byte
}

// lines yields the lines in order, a page at a time.
func (r *records) lines() iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		r.sum = []byte{}
		for r.last < r.row.head {
			n, going := 0, true
			err := r.f.call(r.ctx, func(ctx context.Context, c *pgxpool.Conn) error {
				rows, err := c.Query(ctx, `SELECT seq, pg_catalog.octet_length(bytes), `+within("bytes", maxRecord)+` FROM lopen_data.records WHERE session = $1 AND seq > $2 AND seq <= $3 ORDER BY seq LIMIT $4`,
					inBinary, r.row.key, int64(r.last), int64(r.row.head), pageRecords)
				if err != nil {
					return err
				}
				_, err = each(rows, pageRecords, func(row pgx.Rows) error {
					var seq, size int64
					var line []byte
					if err := row.Scan(&seq, &size, &line); err != nil || !going {
						return err
					}
					switch r.most -= size; {
					case seq <= int64(r.last):
						return refused(r.name, "record %d comes behind record %d", seq, r.last)
					case line == nil:
						return refused(r.name, "record %d has %d bytes, and one has at most %d", seq, size, maxRecord)
					case r.most < 0:
						return refused(r.name, "its records up to %d have more than the %d bytes of all", seq, r.row.bytes)
					}
					if r.made += madeBy(line); r.made > maxTasks {
						return refused(r.name, "its records up to %d make %d tasks: %w", seq, r.made, errManyTasks)
					}
					r.last, r.sum, n = uint64(seq), sumOf(r.sum, line), n+1
					going = yield(line, nil)
					return nil
				})
				return err
			})
			if err != nil && going {
				yield(nil, err)
			}
			if err != nil || !going || n < pageRecords {
				return
			}
		}
	}
}

// madeBy is how many tasks a line adds to the State; none if it is no record.
func madeBy(line []byte) (n int) {
	rec, err := wire.DecodeRecord(line)
	if err != nil {
		return 0
	}
	for i := range rec.Ops {
		switch rec.Ops[i].Name {
		case record.OpTaskCreated:
			n++
		case record.OpTaskRemoved:
			n--
		}
	}
	return n
}

// Records calls fn with each record of a session above a number, in order, as far as the fleet has
// them now, and returns the last one.
func (f *Fleet) Records(ctx context.Context, x *Found, above uint64, fn func(record.Record) error) (last uint64, err error) {
	now, err := f.find(ctx, x.ID.String(), x.Incarnation)
	if err != nil {
		return above, err
	}
	r := &records{f: f, ctx: ctx, row: now, name: x.ID.String(), most: now.bytes, last: above}
	for line, err := range r.lines() {
		if err != nil {
			return last, err
		}
		rec, err := wire.DecodeRecord(line)
		if err == nil {
			err = fn(rec)
		}
		if err != nil {
			return r.last, err
		}
	}
	return max(r.last, above), nil
}

// sent matches the names of the files of a session's folder that are shipped beside its log.
var sent = regexp.MustCompile(`^(meta\.json|recovery\.json|history/[0-9]+-[0-9]+\.json(\.zst|\.gz)?|output/[0-9]{6,9}[-.a-z0-9]*|inherited/[1-9][0-9]*/(segments|journal-[0-9]+-[0-9]+\.jsonl(\.zst|\.gz)?))$`)

// fetchFiles writes the files of a session's folder as they were at the last record of its row.
func (f *Fleet) fetchFiles(ctx context.Context, r *row, to writer.FS) error {
	var all []file
	var bytes int64
	err := f.call(ctx, func(ctx context.Context, c *pgxpool.Conn) error {
		rows, err := c.Query(ctx, fmt.Sprintf(`SELECT pg_catalog.left(s.name, %d), substring(s.hash FROM 1 FOR %d), o.size
			FROM (SELECT DISTINCT ON (name) name, hash FROM lopen_data.session_objects WHERE session = $1 AND seq <= $3 ORDER BY name, seq DESC) s JOIN lopen_data.objects o USING (hash)
			ORDER BY s.name LIMIT $2`, maxName, maxHash), r.key, maxNames+1, int64(r.head))
		if err != nil {
			return err
		}
		more, err := each(rows, maxNames, func(row pgx.Rows) error {
			var x file
			var hash []byte
			if err := row.Scan(&x.name, &hash, &x.size); err != nil {
				return err
			}
			if !sent.MatchString(x.name) || len(hash) != len(x.hash) || x.size < 0 || x.size > math.MaxInt64-bytes {
				return refused(shown(x.name, maxName), "the fleet has a file of this name, which is none of a session")
			}
			x.hash, bytes = blob.Hash(hash), bytes+x.size
			all = append(all, x)
			return nil
		})
		if more {
			err = refused("files", "the session has more than %d in the fleet", maxNames)
		}
		return err
	})
	if err == nil {
		err = roomFor(to, bytes)
	}
	for i := 0; i < len(all) && err == nil; i++ {
		err = f.fetchFile(ctx, &all[i], to)
	}
	return err
}

// A file is one of a session's folder in the fleet.
type file struct {
	name string
	hash blob.Hash
	size int64
}

func (f *Fleet) fetchFile(ctx context.Context, x *file, to writer.FS) error {
	if err := mkdirs(to, path.Dir(x.name)); err != nil {
		return err
	}
	out, err := to.OpenFile(x.name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return writer.NewError("fetch session", x.name, writer.NotCommitted, err)
	}
	o := &object{f: f, ctx: ctx, hash: x.hash, size: x.size}
	var at int64
	err = o.chunks(func(chunk []byte) error {
		_, err := out.WriteAt(chunk, at)
		at += int64(len(chunk))
		return err
	})
	if err = errors.Join(err, out.Close()); err != nil {
		return fmt.Errorf("%s: %w", x.name, err)
	}
	return nil
}

// mkdirs makes a folder and those above it.
func mkdirs(in writer.FS, name string) error {
	if name == "." || name == "/" {
		return nil
	}
	if err := mkdirs(in, path.Dir(name)); err != nil {
		return err
	}
	if err := in.Mkdir(name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return writer.NewError("fetch session", name, writer.NotCommitted, err)
	}
	return nil
}

// An object is one of the database that is read.
type object struct {
	f    *Fleet
	ctx  context.Context //nolint:containedctx // that of the one call that it is for
	hash blob.Hash
	size int64
}

// chunks calls fn with the chunks of the content. It returns an error of class corrupt if the
// content has another hash.
func (o *object) chunks(fn func([]byte) error) error {
	sum := blob.New(nil).NewHash()
	n := int64(0)
	for i := 0; n < o.size || i == 0; i++ {
		var chunk []byte
		want := min(o.size-n, chunkBytes)
		err := o.f.call(o.ctx, func(ctx context.Context, c *pgxpool.Conn) error {
			return c.QueryRow(ctx, `SELECT bytes FROM lopen_data.chunks WHERE hash = $1 AND n = $2 AND pg_catalog.octet_length(bytes) = $3`, inBinary, o.hash[:], i, want).Scan(&chunk)
		})
		if errors.Is(err, pgx.ErrNoRows) || err == nil && int64(len(chunk)) != want {
			break
		}
		if err != nil {
			return err
		}
		sum.Write(chunk)
		n += int64(len(chunk))
		if err := fn(chunk); err != nil {
			return err
		}
	}
	if n != o.size || !bytes.Equal(sum.Sum(nil), o.hash[:]) {
		return &writer.Error{Op: "fetch object", Path: o.hash.String(), Class: writer.ClassCorrupt, Err: errors.New("the fleet has another content under its hash")}
	}
	return nil
}

// reader returns the content as a stream. The caller closes it.
func (o *object) reader() io.ReadCloser {
	r, w := io.Pipe()
	o.f.wg.Go(func() {
		w.CloseWithError(o.chunks(func(chunk []byte) error {
			_, err := w.Write(chunk)
			return err
		}))
	})
	return r
}
