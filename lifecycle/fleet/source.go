package fleet

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/bundle"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/folder"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/blob"
)

// A source is one session of the fleet as an import reads it: see carry.Source.
type source struct {
	f      *Fleet
	ctx    context.Context //nolint:containedctx // that of the one Pull
	header bundle.Header
	next   []item
	blobs  [][]sized // objects that come behind these, in pages of maxMany: there may be many
	now    io.ReadCloser

	here      *blob.Store // the objects of the store that it comes to; nil if it has none
	closeHere func()
	some      map[blob.Hash][]byte // small objects that came together
}

// An item is an entry that is to come.
type item struct {
	bundle.Entry
	open func() (io.ReadCloser, error)
}

// source returns the source of a session that was fetched into a folder.
func (f *Fleet) source(ctx context.Context, store *lifecycle.Store, x *Found, dir writer.FS, ld *folder.Contents) (*source, error) {
	s := &source{f: f, ctx: ctx, closeHere: func() {}}
	progress := ld.State.Progress()
	s.header = bundle.Header{Lopen: "fleet", At: x.Received, Project: bundle.Project{Path: store.Project().Name()}, Sessions: []bundle.Session{{
		ID: x.ID.String(), Module: x.ID.Module, Incarnation: ld.At.Incarnation, Status: string(ld.State.Status()), Seq: ld.At.Seq, Done: progress.Done, Total: progress.Total,
	}}}
	if here, closeHere, err := blobsOf(store); err == nil {
		s.here, s.closeHere = here, closeHere
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	err := s.files(dir, ".", folder.Path(x.ID)+"/")
	if err == nil {
		err = s.checkpoints(x, ld.At.Checkpoint)
	}
	if err == nil {
		err = s.plan(x.ID.Module)
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// files adds the files of a folder, with those below it.
func (s *source) files(dir writer.FS, in, as string) error {
	entries, err := dir.ReadDir(in)
	if err != nil {
		return writer.NewError("pull session", in, writer.NotCommitted, err)
	}
	for _, e := range entries {
		name := e.Name()
		if in != "." {
			name = in + "/" + name
		}
		if e.IsDir() {
			if err := s.files(dir, name, as); err != nil {
				return err
			}
			continue
		}
		info, err := e.Info()
		if err != nil {
			return writer.NewError("pull session", name, writer.NotCommitted, err)
		}
		s.add(bundle.Entry{Name: as + name, Size: info.Size()}, func() (io.ReadCloser, error) {
			f, _, err := writer.OpenRegular(dir, "pull session", name, os.O_RDONLY)
			return f, err
		})
	}
	return nil
}

func (s *source) add(e bundle.Entry, open func() (io.ReadCloser, error)) {
	s.next = append(s.next, item{e, open})
	s.header.Bytes += e.Size
}

func (s *source) addBytes(name string, data []byte) {
	s.add(bundle.Entry{Name: name, Size: int64(len(data))}, func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil })
}

// checkpoints adds the chains and the objects that they need. The chain of the newest checkpoint comes as
// that of the project's folder, so that it is continued where there was none.
func (s *source) checkpoints(x *Found, newest string) error {
	c := chains{all: map[string]*chain{}, newest: newest, left: maxChains}
	err := s.f.call(s.ctx, func(ctx context.Context, conn *pgxpool.Conn) error {
		rows, err := conn.Query(ctx, fmt.Sprintf(`SELECT pg_catalog.left(id, 64), pg_catalog.left(chain, %d), %s, substring(root FROM 1 FOR %[3]d), substring(rules FROM 1 FOR %[3]d)
			FROM lopen_data.checkpoints WHERE session = $1 ORDER BY chain, entry LIMIT $2`, maxName, within("lines", maxLines), maxHash), inBinary, x.row.key, maxNames+1)
		if err != nil {
			return err
		}
		more, err := each(rows, maxNames, c.add)
		if more {
			err = refused("checkpoints", "the session has more than %d in the fleet", maxNames)
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, of := range c.names {
		name := checkpoint.MainTree
		if of != c.main {
			sum := sha256.Sum256([]byte(of))
			name = "import-" + hex.EncodeToString(sum[:8])
		}
		s.add(bundle.Entry{Name: "checkpoints/" + name + ".jsonl", Size: c.all[of].size}, c.all[of].open)
	}
	return s.objects(c.roots)
}

// chains are those of a session, with the objects that their checkpoints name.
type chains struct {
	all    map[string]*chain
	names  []string // of them, in order
	newest string   // a checkpoint, and
	main   string   // the chain that has it
	left   int      // bytes that may come
	roots  [][]byte
}

// A chain is its lines as they came: together they may have megabytes.
type chain struct {
	lines []io.Reader
	size  int64
}

func (c *chain) open() (io.ReadCloser, error) { return io.NopCloser(io.MultiReader(c.lines...)), nil }

// add adds the row of a checkpoint.
func (c *chains) add(row pgx.Rows) error {
	var id, name string
	var lines, root, rules []byte
	if err := row.Scan(&id, &name, &lines, &root, &rules); err != nil {
		return err
	}
	switch c.left -= len(lines); {
	case lines == nil:
		return refused("checkpoint "+shown(id, maxHost), "its lines have more than %d bytes", maxLines)
	case c.left < 0:
		return refused("checkpoint "+shown(id, maxHost), "with it the checkpoints have more than %d bytes", maxChains)
	}
	of := c.all[name]
	if of == nil {
		of = &chain{}
		c.names, c.all[name] = append(c.names, name), of
	}
	of.lines, of.size = append(of.lines, bytes.NewReader(lines)), of.size+int64(len(lines))
	if id == c.newest {
		c.main = name
	}
	for _, h := range [][]byte{root, rules} {
		if h != nil {
			c.roots = append(c.roots, h)
		}
	}
	return nil
}

// objects adds those that some objects name, with these.
func (s *source) objects(roots [][]byte) error {
	if len(roots) == 0 {
		return nil
	}
	var last blob.Hash
	return s.f.call(s.ctx, func(ctx context.Context, c *pgxpool.Conn) error {
		rows, err := c.Query(ctx, fmt.Sprintf(`WITH RECURSIVE need(hash) AS (
				SELECT unnest($1::bytea[]) UNION SELECT l.child FROM lopen_data.links l JOIN need n ON l.parent = n.hash)
			SELECT substring(o.hash FROM 1 FOR %d), o.size FROM need JOIN lopen_data.objects o USING (hash) ORDER BY o.hash LIMIT $2`, maxHash), inBinary, roots, maxObjects+1)
		if err != nil {
			return err
		}
		more, err := each(rows, maxObjects, func(row pgx.Rows) error {
			var hash pgtype.DriverBytes // until the next row: there are many
			var size int64
			if err := row.Scan(&hash, &size); err != nil {
				return err
			}
			if len(hash) != len(blob.Hash{}) || bytes.Compare(hash, last[:]) <= 0 || size < 0 || size > math.MaxInt64-s.header.Bytes {
				return refused(fmt.Sprintf("object %x", hash), "the fleet has one of this name and %d bytes", size)
			}
			last = blob.Hash(hash)
			n := len(s.blobs)
			if n == 0 || len(s.blobs[n-1]) == maxMany {
				s.blobs, n = append(s.blobs, make([]sized, 0, maxMany)), n+1
			}
			s.blobs[n-1], s.header.Bytes = append(s.blobs[n-1], sized{last, size}), s.header.Bytes+size
			return nil
		})
		if more {
			err = refused("objects", "the session has more than %d in the fleet", maxObjects)
		}
		return err
	})
}

// A sized is an object that is to come.
type sized struct {
	hash blob.Hash
	size int64
}

// object opens the next object: one that is here; else from the fleet, a small one with those that follow.
func (s *source) object() (io.ReadCloser, error) {
	o := s.blobs[0][0]
	if data, ok := s.some[o.hash]; ok {
		delete(s.some, o.hash)
		return io.NopCloser(bytes.NewReader(data)), nil
	}
	if s.has(o.hash) && s.here.Verify(o.hash) == nil { // a damaged one comes from the fleet
		return s.here.Open(o.hash)
	}
	if o.size > chunkBytes {
		return (&object{f: s.f, ctx: s.ctx, hash: o.hash, size: o.size}).reader(), nil
	}
	return s.small()
}

// has reports whether the store has an object.
func (s *source) has(h blob.Hash) bool {
	if s.here == nil {
		return false
	}
	has, err := s.here.Has(h)
	return err == nil && has
}

// small fetches the next object with those that follow and are not here, in one question.
func (s *source) small() (io.ReadCloser, error) {
	var hashes [][]byte
	var sizes []int64
	var sum int64
	for _, o := range s.blobs[0] {
		if o.size > chunkBytes || s.has(o.hash) && len(hashes) > 0 {
			continue
		}
		if sum += o.size; sum > gather && len(hashes) > 0 {
			break
		}
		hashes, sizes = append(hashes, o.hash[:]), append(sizes, o.size)
	}
	s.some = make(map[blob.Hash][]byte, len(hashes))
	err := s.f.call(s.ctx, func(ctx context.Context, c *pgxpool.Conn) error {
		rows, err := c.Query(ctx, `SELECT c.hash, c.bytes FROM unnest($1::bytea[], $2::bigint[]) AS o(hash, size)
			JOIN lopen_data.chunks c ON c.hash = o.hash AND c.n = 0 AND pg_catalog.octet_length(c.bytes) = o.size`, inBinary, hashes, sizes)
		if err != nil {
			return err
		}
		_, err = each(rows, len(hashes), func(row pgx.Rows) error {
			var hash, data []byte
			if err := row.Scan(&hash, &data); err != nil || len(hash) != len(blob.Hash{}) {
				return err
			}
			s.some[blob.Hash(hash)] = data
			return nil
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	first := s.blobs[0][0].hash
	data, ok := s.some[first]
	if !ok {
		return nil, &writer.Error{Op: "fetch object", Path: first.String(), Class: writer.ClassCorrupt, Err: errors.New("the fleet has no content of it, or one of another size")}
	}
	delete(s.some, first)
	return io.NopCloser(bytes.NewReader(data)), nil
}

// plan adds the plan of a module, if it is one that a run can work with. The session comes without it as well.
func (s *source) plan(module string) error {
	p, err := s.f.Plan(s.ctx, module)
	if err == nil {
		_, err = p.usable()
	}
	switch unusable := (*PlanError)(nil); {
	case errors.Is(err, ErrNotFound):
		return nil
	case errors.As(err, &unusable):
		s.f.opts.Logger.Info().Err(err).Msg("the plan does not come with the session")
		return nil
	case err != nil:
		return err
	}
	sum := folder.SHA256(p.Bytes)
	s.header.Documents = append(s.header.Documents, bundle.Document{Path: lifecycle.PlanPath(module), Kind: "plan", Module: module, SHA256: sum, Size: int64(len(p.Bytes))})
	s.addBytes("documents/"+sum, p.Bytes)
	return nil
}

func (s *source) Header() *bundle.Header { return &s.header }

func (s *source) Next() (bundle.Entry, error) {
	if s.now != nil {
		_ = s.now.Close() // it was read
		s.now = nil
	}
	var err error
	switch {
	case len(s.next) > 0:
		it := s.next[0]
		s.next = s.next[1:]
		s.now, err = it.open()
		return it.Entry, err
	case len(s.blobs) > 0:
		s.now, err = s.object()
		o := s.blobs[0][0]
		if s.blobs[0] = s.blobs[0][1:]; len(s.blobs[0]) == 0 {
			s.blobs = s.blobs[1:]
		}
		return bundle.Entry{Object: o.hash, Size: o.size}, err
	}
	return bundle.Entry{}, io.EOF
}

func (s *source) Read(p []byte) (int, error) { return s.now.Read(p) }

func (s *source) close() {
	if s.now != nil {
		_ = s.now.Close() // it was read
	}
	s.closeHere()
}
