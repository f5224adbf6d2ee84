package fleet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/blob"
	"github.com/lopen-dev/lopen/writer/journal"
)

const (
	// chunkBytes is the size of a chunk in the database, and gather the bytes of small objects that
	// are sent together.
	chunkBytes = 1 << 20
	gather     = 4 << 20
	// maxMany bounds the hashes of one question, and the objects of one transaction.
	maxMany = 5000
	// slowest is how many bytes a second a large object takes at least: otherwise it is given up and
	// tried again.
	slowest = 64 << 10
)

// A sessionObject is a file of a session's folder.
type sessionObject struct {
	name string
	hash blob.Hash
}

// A checkpointEntry is a checkpoint with its lines in the chain. root and rules are nil if what it
// needs was gone.
type checkpointEntry struct {
	id, chain   string
	number      uint64
	lines       []byte
	root, rules []byte
}

// contents sends what the records of a batch need and the database lacks.
func (s *shipping) contents(ctx context.Context, b *batch) error {
	u := &upload{fleet: s.session.fleet}
	if b.first {
		b.files = append(b.files, "meta.json", "recovery.json", "inherited/")
	}
	for _, id := range b.snapshots {
		if err := snapshotFits(s.session.dir, id); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	for _, name := range b.files {
		if err := s.files(ctx, u, b, name); err != nil {
			return fmt.Errorf("ship %s: %w", name, err)
		}
	}
	if len(b.checkpoints) > 0 {
		if err := s.entries(ctx, u, b); err != nil {
			return fmt.Errorf("ship a checkpoint: %w", err)
		}
	}
	return u.flush(ctx)
}

// files sends the files of the session's folder whose names begin with a prefix: an attempt has
// several, and a file may be compressed.
func (s *shipping) files(ctx context.Context, u *upload, b *batch, prefix string) error {
	dir, base := path.Split(prefix)
	entries, err := s.session.dir.ReadDir(path.Clean(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return writer.NewError("ship session", s.session.dir.Name(), writer.NotCommitted, err)
	}
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		rest, ok := strings.CutPrefix(e.Name(), base)
		switch {
		case dir == "inherited/" && e.IsDir():
			err = s.files(ctx, u, b, name+"/")
		case !ok || !e.Type().IsRegular(), base != "" && rest != "" && rest[0] != '.' && rest[0] != '-':
			continue
		default:
			err = s.file(ctx, u, b, name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// file sends a file. One that is gone by now was compressed, or is not needed any more.
func (s *shipping) file(ctx context.Context, u *upload, b *batch, name string) error {
	open := func() (io.ReadCloser, error) {
		f, _, err := writer.OpenRegular(s.session.dir, "ship session", name, os.O_RDONLY)
		return f, err
	}
	f, err := open()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	h := blob.New(nil).NewHash()
	size, err := io.Copy(h, f)
	_ = f.Close() // nothing was written to it
	if err != nil {
		return writer.NewError("ship session", name, writer.NotCommitted, err)
	}
	hash := blob.Hash(h.Sum(nil))
	there, err := u.has(ctx, []blob.Hash{hash})
	if err == nil && !there[hash] {
		err = u.put(ctx, hash, size, nil, open)
	}
	if err == nil {
		b.objects = append(b.objects, sessionObject{name, hash})
	}
	return err
}

// entries sends checkpoints with all that they need. After the lease was taken these are all on the
// session's line: a fork continues from one of another session, and a session that came from another
// folder continues the chain that came with it. Each folder sends its own chains, since two that
// continue one chain give the same numbers to different checkpoints.
func (s *shipping) entries(ctx context.Context, u *upload, b *batch) (err error) {
	store := s.session.store
	cps, err := store.Checkpoints(s.session.State().Header().Worktree)
	if err != nil {
		return err
	}
	defer cps.Close()
	if err := s.onLine(ctx, cps, b); err != nil {
		return err
	}
	chains, err := cps.Others()
	if err != nil {
		return err
	}
	blobs, done, err := blobsOf(store)
	if err != nil {
		return err
	}
	defer done()
	for _, chain := range append(chains, cps.Store) {
		all, _, err := chain.List()
		if err != nil {
			return err
		}
		key := chain.Name() + ":" + s.session.fleet.opts.Site
		for _, e := range all {
			if !s.line[e.ID] || s.chained[key+e.ID.String()] || e.Seq > b.head && e.Session == s.session.ID().String() {
				continue
			}
			if err := s.entry(ctx, u, b, blobs, chain, key, e); err != nil {
				return err
			}
		}
	}
	return nil
}

// onLine adds the checkpoints that a batch names to those on the session's line, which are found first
// after the lease was taken.
func (s *shipping) onLine(ctx context.Context, cps *lifecycle.Checkpoints, b *batch) (err error) {
	if s.line == nil {
		if s.chained, err = s.session.fleet.chained(ctx, s.row.key); err != nil {
			return err
		}
		if s.line, err = s.session.store.CheckpointLine(cps, s.session.ID()); err != nil {
			return err
		}
	}
	for _, id := range b.checkpoints {
		parsed, err := checkpoint.ParseID(id)
		if err != nil {
			return err
		}
		s.line[parsed] = true
	}
	return nil
}

// chained returns which checkpoints of a session the fleet has, by chain and ID.
func (f *Fleet) chained(ctx context.Context, key int64) (has map[string]bool, err error) {
	has = map[string]bool{}
	err = f.call(ctx, func(ctx context.Context, c *pgxpool.Conn) error {
		rows, err := c.Query(ctx, fmt.Sprintf(`SELECT pg_catalog.left(chain, %d) || pg_catalog.left(id, 64) FROM lopen_data.checkpoints WHERE session = $1 LIMIT $2`, maxName), key, maxNames)
		if err != nil {
			return err
		}
		_, err = each(rows, maxNames, func(row pgx.Rows) error { // one of more is sent once more
			var name string
			err := row.Scan(&name)
			has[name] = true
			return err
		})
		return err
	})
	return has, err
}

// entry sends a checkpoint.
func (s *shipping) entry(ctx context.Context, u *upload, b *batch, blobs *blob.Store, chain *checkpoint.Store, key string, e *checkpoint.Entry) (err error) {
	c := checkpointEntry{id: e.ID.String(), chain: key, number: e.Number, root: e.Root[:], rules: e.Rules[:]}
	left := e.Removed
	if left == "" {
		err = chain.Missing(e, func(all []blob.Hash) (map[blob.Hash]bool, error) { return u.has(ctx, all) }, func(h blob.Hash, names []blob.Hash) error {
			size, err := blobs.Size(h)
			if err != nil {
				return err
			}
			return u.put(ctx, h, size, names, func() (io.ReadCloser, error) { return blobs.Open(h) })
		})
		// A socket of the database that is not there is no object that is gone.
		class, down := lifecycle.ClassOf(err), (*pgconn.ConnectError)(nil)
		if !errors.As(err, &down) && (errors.Is(err, fs.ErrNotExist) || err != nil && class == writer.ClassCorrupt) {
			s.session.log.Warn().Err(err).Uint64("checkpoint", e.Number).Msg("the files of a checkpoint are not in the fleet")
			left, err = "its objects were gone", nil
		}
		if err != nil {
			return err
		}
	}
	if left != "" {
		c.root, c.rules = nil, nil
	}
	c.lines, err = chain.Extract(func(o *checkpoint.Entry) (bool, string, error) {
		if o.ID != e.ID {
			return false, "", nil
		}
		return true, left, nil
	})
	b.entries = append(b.entries, c)
	return err
}

// blobsOf opens the objects of a store.
func blobsOf(store *lifecycle.Store) (*blob.Store, func(), error) {
	root, err := writer.OpenFS(store.Path())
	if err != nil {
		return nil, nil, err
	}
	dir, err := writer.OpenDir(root, "blobs")
	_ = root.Close() // nothing was written to it
	if err != nil {
		return nil, nil, err
	}
	return blob.New(dir), func() { _ = dir.Close() }, nil
}

// An upload sends objects, the small ones together.
type upload struct {
	fleet  *Fleet
	hashes [][]byte
	sizes  []int64
	bytes  [][]byte
	parent [][]byte
	child  [][]byte
	n      int64
	queued map[blob.Hash]bool
}

// has returns which of some objects the database has, or will have with the next flush.
func (u *upload) has(ctx context.Context, all []blob.Hash) (map[blob.Hash]bool, error) {
	there := make(map[blob.Hash]bool, len(all))
	var ask [][]byte
	for _, h := range all {
		if u.queued[h] || u.fleet.known.has(h) {
			there[h] = true
		} else {
			ask = append(ask, h[:])
		}
	}
	for len(ask) > 0 {
		some := ask[:min(len(ask), maxMany)]
		ask = ask[len(some):]
		err := u.fleet.call(ctx, func(ctx context.Context, c *pgxpool.Conn) error {
			rows, err := c.Query(ctx, `SELECT hash FROM lopen_data.objects WHERE hash = ANY($1::bytea[])`, some)
			if err != nil {
				return err
			}
			_, err = each(rows, len(some), func(row pgx.Rows) error {
				var h []byte
				if err := row.Scan(&h); err != nil || len(h) != len(blob.Hash{}) {
					return err
				}
				there[blob.Hash(h)] = true
				u.fleet.known.add(blob.Hash(h))
				return nil
			})
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return there, nil
}

// put sends an object after those that it names. open may be called later.
func (u *upload) put(ctx context.Context, h blob.Hash, size int64, names []blob.Hash, open func() (io.ReadCloser, error)) error {
	if size > chunkBytes {
		if err := u.flush(ctx); err != nil {
			return err
		}
		return u.large(ctx, h, size, names, open)
	}
	if u.n+size > gather || len(u.hashes) >= maxMany {
		if err := u.flush(ctx); err != nil {
			return err
		}
	}
	r, err := open()
	if err != nil {
		return err
	}
	data, err := io.ReadAll(io.LimitReader(r, size+1))
	_ = r.Close() // nothing was written to it
	if err == nil {
		err = matches(h, int64(len(data)), size, data)
	}
	if err != nil {
		return err
	}
	u.hashes, u.sizes, u.bytes, u.n = append(u.hashes, h[:]), append(u.sizes, size), append(u.bytes, data), u.n+size
	for _, n := range names {
		u.parent, u.child = append(u.parent, h[:]), append(u.child, n[:])
	}
	if u.queued == nil {
		u.queued = map[blob.Hash]bool{}
	}
	u.queued[h] = true
	return nil
}

// matches returns an error unless a content is what its name says.
func matches(h blob.Hash, n, size int64, data []byte) error {
	sum := blob.New(nil).NewHash()
	sum.Write(data)
	if n != size || !bytes.Equal(sum.Sum(nil), h[:]) {
		return &writer.Error{Op: "ship object", Path: h.String(), Class: writer.ClassCorrupt, Err: errors.New("its content has another hash; it may have changed meanwhile")}
	}
	return nil
}

// flush sends what is queued, in one transaction.
func (u *upload) flush(ctx context.Context) error {
	if len(u.hashes) == 0 {
		return nil
	}
	err := u.fleet.durably(ctx, func(ctx context.Context, tx pgx.Tx) error {
		for _, q := range []struct {
			sql  string
			args []any
		}{
			{`INSERT INTO lopen_data.objects (hash, size) SELECT * FROM unnest($1::bytea[], $2::bigint[]) ON CONFLICT DO NOTHING`, []any{u.hashes, u.sizes}},
			{`INSERT INTO lopen_data.chunks (hash, n, bytes) SELECT o.hash, 0, o.bytes FROM unnest($1::bytea[], $2::bytea[]) AS o(hash, bytes) ON CONFLICT DO NOTHING`, []any{inBinary, u.hashes, u.bytes}},
			{`INSERT INTO lopen_data.links (parent, child) SELECT * FROM unnest($1::bytea[], $2::bytea[]) ON CONFLICT DO NOTHING`, []any{u.parent, u.child}},
		} {
			if _, err := tx.Exec(ctx, q.sql, q.args...); err != nil {
				return err
			}
		}
		return nil
	})
	if err = u.fleet.swept(err); err != nil && !errors.Is(err, errUnconfirmed) { // the batch that names them is confirmed later than they
		return err
	}
	for h := range u.queued {
		u.fleet.known.add(h)
	}
	*u = upload{fleet: u.fleet}
	return nil
}

// large sends an object of several chunks in a transaction of its own, with one chunk in memory.
func (u *upload) large(ctx context.Context, h blob.Hash, size int64, names []blob.Hash, open func() (io.ReadCloser, error)) error {
	r, err := open()
	if err != nil {
		return err
	}
	defer r.Close()
	ctx, cancel := context.WithTimeout(ctx, u.fleet.times.call+time.Duration(size/slowest)*time.Second)
	defer cancel()
	err = u.fleet.pool.AcquireFunc(ctx, func(c *pgxpool.Conn) error {
		return pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
			tag, err := tx.Exec(ctx, `INSERT INTO lopen_data.objects (hash, size) VALUES ($1, $2) ON CONFLICT DO NOTHING`, h[:], size)
			if err != nil || tag.RowsAffected() == 0 { // somebody else sends it, or has
				return err
			}
			if err := insertChunks(ctx, tx, h, size, r); err != nil {
				return err
			}
			for some := range slices.Chunk(names, maxMany) {
				children := make([][]byte, len(some))
				for i := range some {
					children[i] = some[i][:]
				}
				if _, err := tx.Exec(ctx, `INSERT INTO lopen_data.links (parent, child) SELECT $1, unnest($2::bytea[])`, h[:], children); err != nil {
					return err
				}
			}
			return nil
		})
	})
	if err = u.fleet.swept(err); err == nil {
		u.fleet.known.add(h)
	}
	return err
}

// insertChunks inserts the content of an object.
func insertChunks(ctx context.Context, tx pgx.Tx, h blob.Hash, size int64, r io.Reader) error {
	sum, buf, n := blob.New(nil).NewHash(), make([]byte, chunkBytes), int64(0)
	for i := 0; ; i++ {
		k, err := io.ReadFull(r, buf)
		if k > 0 {
			sum.Write(buf[:k])
			n += int64(k)
			if _, err := tx.Exec(ctx, `INSERT INTO lopen_data.chunks (hash, n, bytes) VALUES ($1, $2, $3)`, inBinary, h[:], i, buf[:k]); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			break
		}
		if err != nil {
			return err
		}
	}
	if n != size || !bytes.Equal(sum.Sum(nil), h[:]) {
		return &writer.Error{Op: "ship object", Path: h.String(), Class: writer.ClassCorrupt, Err: errors.New("its content has another hash; it may have changed meanwhile")}
	}
	return nil
}

// swept returns errRefused for an error that says that an object is gone which was there: it was swept
// meanwhile, or the database is an older one. Then what is known of others does not count.
func (f *Fleet) swept(err error) error {
	if pg := (*pgconn.PgError)(nil); !errors.As(err, &pg) || pg.Code != foreignKey {
		return err
	}
	f.known.clear()
	return fmt.Errorf("%w: %w", errRefused, err)
}

// sameRecord reports whether the last record of a row is the one of that number in a log.
func (f *Fleet) sameRecord(ctx context.Context, r *row, dir writer.FS, last uint64) (same bool, err error) {
	if r.head > last {
		return false, nil
	}
	log, err := journal.Read(dir, r.head-1, false)
	if err != nil {
		return false, err
	}
	return f.sameLine(ctx, r.key, log, r.head)
}
