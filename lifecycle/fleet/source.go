package fleet

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/jackc/pgx/v5"
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
	type line struct {
		ID, Chain   string
		Lines       []byte
		Root, Rules []byte
	}
	var all []line
	err := s.f.call(s.ctx, func(ctx context.Context, c *pgxpool.Conn) error {
		rows, err := c.Query(ctx, `SELECT id, chain, lines, root, rules FROM lopen_data.checkpoints WHERE session = $1 ORDER BY chain, entry`, x.row.key)
		if err != nil {
			return err
		}
		all, err = pgx.CollectRows(rows, pgx.RowToStructByPos[line])
		return err
	})
	if err != nil {
		return err
	}
	main := ""
	chains := map[string][]byte{}
	var names []string
	var roots [][]byte
	for _, l := range all {
		if chains[l.Chain] == nil {
			names = append(names, l.Chain)
		}
		chains[l.Chain] = append(chains[l.Chain], l.Lines...)
		if l.ID == newest {
			main = l.Chain
		}
		for _, h := range [][]byte{l.Root, l.Rules} {
			if h != nil {
				roots = append(roots, h)
			}
		}
	}
	for _, chain := range names {
		name := checkpoint.MainTree
		if chain != main {
			sum := sha256.Sum256([]byte(chain))
			name = "import-" + hex.EncodeToString(sum[:8])
		}
		s.addBytes("checkpoints/"+name+".jsonl", chains[chain])
	}
	return s.objects(roots)
}

// objects adds those that some objects name, with these.
func (s *source) objects(roots [][]byte) error {
	if len(roots) == 0 {
		return nil
	}
	type found struct {
		Hash []byte
		Size int64
	}
	var all []found
	err := s.f.call(s.ctx, func(ctx context.Context, c *pgxpool.Conn) error {
		rows, err := c.Query(ctx, `WITH RECURSIVE need(hash) AS (
				SELECT unnest($1::bytea[]) UNION SELECT l.child FROM lopen_data.links l JOIN need n ON l.parent = n.hash)
			SELECT o.hash, o.size FROM need JOIN lopen_data.objects o USING (hash) ORDER BY o.hash`, roots)
		if err != nil {
			return err
		}
		all, err = pgx.CollectRows(rows, pgx.RowToStructByPos[found])
		return err
	})
	if err != nil {
		return err
	}
	var group *[]blob.Hash // those that come together
	var bytes int64
	for _, o := range all {
		if len(o.Hash) != len(blob.Hash{}) {
			continue
		}
		h := blob.Hash(o.Hash)
		e := bundle.Entry{Object: h, Size: o.Size}
		if s.here != nil {
			if has, err := s.here.Has(h); err == nil && has {
				s.add(e, func() (io.ReadCloser, error) { return s.local(h, o.Size) })
				continue
			}
		}
		if o.Size > chunkBytes {
			s.add(e, func() (io.ReadCloser, error) {
				return (&object{f: s.f, ctx: s.ctx, hash: h, size: o.Size}).reader(), nil
			})
			continue
		}
		if group == nil || bytes+o.Size > gather || len(*group) == maxMany {
			group, bytes = &[]blob.Hash{}, 0
		}
		*group, bytes = append(*group, h), bytes+o.Size
		together := group
		s.add(e, func() (io.ReadCloser, error) { return s.small(h, *together) })
	}
	return nil
}

// local opens an object that the store has; a damaged one comes from the fleet.
func (s *source) local(h blob.Hash, size int64) (io.ReadCloser, error) {
	if err := s.here.Verify(h); err != nil {
		return (&object{f: s.f, ctx: s.ctx, hash: h, size: size}).reader(), nil
	}
	return s.here.Open(h)
}

// small returns an object that comes with others, each once.
func (s *source) small(h blob.Hash, group []blob.Hash) (io.ReadCloser, error) {
	if _, ok := s.some[h]; !ok {
		hashes := make([][]byte, len(group))
		for i := range group {
			hashes[i] = group[i][:]
		}
		s.some = map[blob.Hash][]byte{}
		err := s.f.call(s.ctx, func(ctx context.Context, c *pgxpool.Conn) error {
			rows, err := c.Query(ctx, `SELECT hash, bytes FROM lopen_data.chunks WHERE hash = ANY($1::bytea[]) AND n = 0`, inBinary, hashes)
			if err != nil {
				return err
			}
			defer rows.Close()
			for rows.Next() {
				var hash, data []byte
				if err := rows.Scan(&hash, &data); err != nil {
					return err
				}
				s.some[blob.Hash(hash)] = data
			}
			return rows.Err()
		})
		if err != nil {
			return nil, err
		}
	}
	data, ok := s.some[h]
	if !ok {
		return nil, &writer.Error{Op: "fetch object", Path: h.String(), Class: writer.ClassCorrupt, Err: errors.New("the fleet has no content of it")}
	}
	delete(s.some, h)
	return io.NopCloser(bytes.NewReader(data)), nil
}

// plan adds the plan of a module.
func (s *source) plan(module string) error {
	p, err := s.f.Plan(s.ctx, module)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err != nil {
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
	if len(s.next) == 0 {
		return bundle.Entry{}, io.EOF
	}
	it := s.next[0]
	s.next = s.next[1:]
	var err error
	s.now, err = it.open()
	return it.Entry, err
}

func (s *source) Read(p []byte) (int, error) { return s.now.Read(p) }

func (s *source) close() {
	if s.now != nil {
		_ = s.now.Close() // it was read
	}
	s.closeHere()
}
