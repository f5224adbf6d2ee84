package fleet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path"
	"regexp"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/folder"
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
// sum of the last one, and the session is loaded.
func (f *Fleet) Fetch(ctx context.Context, x *Found, to writer.FS) (*folder.Contents, error) {
	if x.row.head == 0 {
		return nil, fmt.Errorf("session %s: %w", x.ID, errNothing)
	}
	r := &records{f: f, ctx: ctx, row: &x.row}
	err := journal.Compose(to, x.ID.String(), x.row.base, r.lines())
	if err == nil && (r.last != x.row.head && r.last < x.row.base || !bytes.Equal(r.sum, x.row.sum)) {
		err = &writer.Error{Op: "fetch session", Path: x.ID.String(), Class: writer.ClassCorrupt, Err: fmt.Errorf("its records in the fleet do not add up to the sum of record %d", x.row.head)}
	}
	if err == nil {
		err = f.fetchFiles(ctx, x.row.key, to)
	}
	if err != nil {
		return nil, fmt.Errorf("fetch session %s: %w", x.ID, err)
	}
	ld, err := folder.Load(to, x.ID)
	if err == nil && ld.At.Incarnation != x.Incarnation {
		err = &writer.Error{Op: "fetch session", Path: x.ID.String(), Class: writer.ClassCorrupt, Err: fmt.Errorf("its log is of incarnation %q, and the fleet says %q", ld.At.Incarnation, x.Incarnation)}
	}
	if err != nil {
		return nil, fmt.Errorf("fetch session %s: %w", x.ID, err)
	}
	return ld, nil
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

// records reads the lines of a session up to the head of its row.
type records struct {
	f    *Fleet
	ctx  context.Context //nolint:containedctx // that of the one Fetch
	row  *row
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
				rows, err := c.Query(ctx, `SELECT seq, bytes FROM lopen_data.records WHERE session = $1 AND seq > $2 AND seq <= $3 ORDER BY seq LIMIT $4`,
					inBinary, r.row.key, int64(r.last), int64(r.row.head), pageRecords)
				if err != nil {
					return err
				}
				defer rows.Close()
				for going && rows.Next() {
					var seq int64
					var line []byte
					if err := rows.Scan(&seq, &line); err != nil {
						return err
					}
					r.last, r.sum, n = uint64(seq), sumOf(r.sum, line), n+1
					going = yield(line, nil)
				}
				return rows.Err()
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

// Records calls fn with each record of a session above a number, in order, as far as the fleet has
// them now, and returns the last one.
func (f *Fleet) Records(ctx context.Context, x *Found, above uint64, fn func(record.Record) error) (last uint64, err error) {
	now, err := f.find(ctx, x.ID.String(), x.Incarnation)
	if err != nil {
		return above, err
	}
	r := &records{f: f, ctx: ctx, row: now, last: above}
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

// fetchFiles writes the files of a session's folder.
func (f *Fleet) fetchFiles(ctx context.Context, key int64, to writer.FS) error {
	type file struct {
		Name string
		Hash []byte
		Size int64
	}
	var all []file
	err := f.call(ctx, func(ctx context.Context, c *pgxpool.Conn) error {
		rows, err := c.Query(ctx, `SELECT s.name, s.hash, o.size FROM lopen_data.session_objects s JOIN lopen_data.objects o USING (hash) WHERE s.session = $1 ORDER BY s.name`, key)
		if err != nil {
			return err
		}
		all, err = pgx.CollectRows(rows, pgx.RowToStructByPos[file])
		return err
	})
	if err != nil {
		return err
	}
	for _, x := range all {
		if !sent.MatchString(x.Name) || len(x.Hash) != len(blob.Hash{}) {
			return &writer.Error{Op: "fetch session", Path: x.Name, Class: writer.ClassCorrupt, Err: errors.New("the fleet has a file of this name, which is none of a session")}
		}
		if err := mkdirs(to, path.Dir(x.Name)); err != nil {
			return err
		}
		out, err := to.OpenFile(x.Name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err != nil {
			return writer.NewError("fetch session", x.Name, writer.NotCommitted, err)
		}
		o := &object{f: f, ctx: ctx, hash: blob.Hash(x.Hash), size: x.Size}
		var at int64
		err = o.chunks(func(chunk []byte) error {
			_, err := out.WriteAt(chunk, at)
			at += int64(len(chunk))
			return err
		})
		if err = errors.Join(err, out.Close()); err != nil {
			return fmt.Errorf("%s: %w", x.Name, err)
		}
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
		err := o.f.call(o.ctx, func(ctx context.Context, c *pgxpool.Conn) error {
			return c.QueryRow(ctx, `SELECT bytes FROM lopen_data.chunks WHERE hash = $1 AND n = $2`, inBinary, o.hash[:], i).Scan(&chunk)
		})
		if errors.Is(err, pgx.ErrNoRows) {
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
