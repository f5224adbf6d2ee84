package carry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"

	"github.com/lopen-dev/lopen/lifecycle/bundle"
	"github.com/lopen-dev/lopen/lifecycle/repair"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/blob"
)

const (
	// maxObjects bounds the objects that come: some 80 bytes of memory are needed for each.
	maxObjects = 2_000_000
	// maxFolder bounds an object that may be a folder of a checkpoint, in bytes, as package
	// checkpoint has it. Such an object is in memory while it comes.
	maxFolder = 64 << 20
	// treesDir is where the folders of checkpoints are until they were checked.
	treesDir = "trees"
	// maxCounter bounds the counters of IDs, so that more can follow.
	maxCounter = 1_000_000_000
	// spare is the part of the bytes that have to be free beyond those that come: 1/spare.
	spare = 20
)

// A Source is what an import reads: a bundle, or a backup.
type Source interface {
	Header() *bundle.Header
	// Next goes to the next file or object. It returns io.EOF only if all that came agrees
	// with what was written.
	Next() (bundle.Entry, error)
	// Read reads the content of what Next returned.
	Read(p []byte) (int, error)
}

// A Destination is where an import goes.
type Destination struct {
	Staging *Staging
	Project writer.FS // whose files are compared; nil to compare none
	// Blobs opens the store of objects, when the first one comes, and excludes its sweeps.
	// nil stores none.
	Blobs func() (*blob.Store, *blob.Hold, error)
	// Others are small files of sessions that repair does not know.
	Others []repair.File
}

// Received is what an import has gathered and checked. Nothing of it is visible yet. Close it
// after use.
type Received struct {
	Report

	target Destination
	header *bundle.Header
	source *source
	chains []lines
	one    *One               // nil if everything is taken
	whole  bool               // what only a backup has is taken as well
	exact  bool               // the sessions' logs stay byte for byte
	over   bool               // they take the place of those of their IDs
	kept   []string           // the folders that only a backup has
	needed map[blob.Hash]bool // objects that the one session needs

	sizes  map[blob.Hash]int64 // of the objects that came
	blobs  *blob.Store
	hold   *blob.Hold
	batch  *blob.Batch
	trees  *blob.Store
	folder *blob.Batch // what may be folders and rules, in trees

	expected  map[string]bool  // the sessions that the header names
	documents map[string]int64 // sizes by SHA-256: those that the header names
	arrived   map[string]bool  // chains and documents that came
}

// lines are a chain of checkpoints that came.
type lines struct {
	name string // of the chain
	data []byte
}

// Receive reads a source to its end into the staging folder, and checks all of it. After an error
// nothing is left but that folder.
func Receive(ctx context.Context, from Source, to Destination) (_ *Received, err error) {
	r := &Received{target: to, header: from.Header(), source: &source{from: from}, sizes: map[blob.Hash]int64{}, needed: map[blob.Hash]bool{}, expected: map[string]bool{}, documents: map[string]int64{}, arrived: map[string]bool{}}
	r.one, _ = from.(*One)
	_, r.whole = from.(Whole)
	if exact, ok := from.(Exact); ok {
		r.exact, r.over = true, exact.Over
	}
	defer func() {
		if err != nil {
			r.Close()
		}
	}()
	if err := r.begin(); err != nil {
		return nil, err
	}
	for {
		e, err := from.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil && r.leaves(e) {
			continue
		}
		if err == nil {
			err = r.take(ctx, e)
		}
		if err != nil {
			return nil, err
		}
		r.Bytes += e.Size
	}
	if err := r.check(); err != nil {
		return nil, err
	}
	return r, nil
}

// Close gives up what was not committed, and lets sweeps run again.
func (r *Received) Close() {
	for _, b := range []*blob.Batch{r.batch, r.folder} {
		if b != nil {
			b.Discard()
		}
	}
	if r.hold != nil {
		_ = r.hold.Release() // what was stored stays stored
	}
}

// refused is the error for something that came and cannot be taken.
func refused(name string, format string, args ...any) error {
	return &writer.Error{Op: opImport, Path: name, Class: writer.ClassCorrupt, Err: fmt.Errorf(format, args...)}
}

// begin checks the header.
func (r *Received) begin() error {
	h := r.header
	r.Report = Report{At: h.At, From: h.Project, NoMessages: h.NoMessages, Redacted: h.Redacted, Sessions: []Arrival{}, Documents: []PlacedDocument{}}
	for _, s := range h.Sessions {
		id, err := session.ParseID(s.ID)
		if err != nil || id.Module != s.Module || id.Counter > maxCounter || r.expected[s.ID] {
			return refused("header", "session %q: it is no session of module %q, or is named twice", s.ID, s.Module)
		}
		r.expected[s.ID] = true
	}
	for _, d := range h.Documents {
		if k, _, _ := parseEntry(documentEntry(d.SHA256)); k != aDocument || d.Size < 0 || d.Size > maxDocument {
			return refused("header", "document %q: it has %d bytes, more than %d, or no hash", d.Path, d.Size, maxDocument)
		}
		r.documents[d.SHA256] = d.Size
	}
	if h.Bytes < 0 {
		return refused("header", "it has %d bytes", h.Bytes)
	}
	if r.one != nil {
		return nil // how much of the source comes is not known yet
	}
	return r.room(h.Bytes)
}

// room returns an error if so many bytes have no room.
func (r *Received) room(bytes int64) error {
	free, err := writer.FreeBytes(r.target.Staging.root.Name())
	if need := uint64(bytes + bytes/spare); err == nil && free < need {
		return &writer.Error{Op: opImport, Path: r.target.Staging.root.Name(), Class: writer.ClassNoSpace,
			Err: fmt.Errorf("%d MiB may be needed and %d MiB are free", need>>20, free>>20)}
	}
	return nil
}

// take takes one entry.
func (r *Received) take(ctx context.Context, e bundle.Entry) error {
	if e.Name == "" {
		return r.object(ctx, e)
	}
	k, of, file := parseEntry(e.Name)
	switch k {
	case ofSession:
		if !r.expected[of] {
			return refused(e.Name, "the header does not name the session")
		}
		if slices.Contains(derived, file) {
			return r.skip(ctx)
		}
		return r.target.Staging.put(ctx, e.Name, r.source)
	case ofChain:
		return r.chain(ctx, of)
	case aDocument:
		if size, ok := r.documents[of]; !ok || size != e.Size {
			return refused(e.Name, "the header has no such document of %d bytes", e.Size)
		}
		r.arrived[e.Name] = true
		return r.target.Staging.put(ctx, e.Name, r.source)
	case ofProject:
		return r.compare(ctx, e)
	case ofKept:
		if err := r.keptEntry(of); err != nil {
			return err
		}
		return r.target.Staging.put(ctx, e.Name, r.source)
	}
	return refused(e.Name, "it is nothing that is carried, or a newer lopen wrote it")
}

// derived are files of a session that are made again from its log.
var derived = []string{"state.json", "metrics.json", "messages.jsonl", "transcript.jsonl"}

func (r *Received) skip(ctx context.Context) error {
	return pump(ctx, r.source, func([]byte) error { return nil })
}

// object takes an object: into the store of the target, and what may be a folder or rules of a
// checkpoint also where the check reads it.
func (r *Received) object(ctx context.Context, e bundle.Entry) error {
	if _, twice := r.sizes[e.Object]; !twice && len(r.sizes) == maxObjects {
		return refused("objects", "there are more than %d", maxObjects)
	}
	r.sizes[e.Object] = e.Size
	if err := r.openBlobs(); err != nil {
		return err
	}
	head := make([]byte, min(e.Size, 8))
	if _, err := io.ReadFull(r.source, head); err != nil {
		return r.source.failed(err)
	}
	content := io.MultiReader(bytes.NewReader(head), r.source)
	if e.Size <= maxFolder && (bytes.HasPrefix(head, []byte("tree ")) || bytes.HasPrefix(head, []byte("rules "))) {
		var err error
		if content, err = r.maybeFolder(ctx, content); err != nil {
			return err
		}
	}
	if r.batch == nil {
		return pump(ctx, content, func([]byte) error { return nil })
	}
	return r.store(ctx, e, content)
}

// maybeFolder takes an object that may be a folder or rules to where the check reads it, and
// returns its content once more.
func (r *Received) maybeFolder(ctx context.Context, content io.Reader) (io.Reader, error) {
	var buf bytes.Buffer
	if err := pump(ctx, content, func(p []byte) error { _, err := buf.Write(p); return err }); err != nil {
		return nil, err
	}
	_, _, err := r.folder.Put(bytes.NewReader(buf.Bytes()), blob.Hash{})
	return &buf, err
}

// store takes an object into the store of the target.
func (r *Received) store(ctx context.Context, e bundle.Entry, content io.Reader) error {
	if r.hold.Has(e.Object, e.Size) {
		r.ObjectsKnown++
	}
	if ctx.Err() != nil {
		return fmt.Errorf("%s: %w", opImport, context.Cause(ctx))
	}
	got, n, err := r.batch.Put(content, blob.Hash{})
	if err != nil {
		return r.source.failed(err)
	}
	if got != e.Object || n != e.Size {
		return refused("object "+e.Object.String(), "its content has another hash")
	}
	return nil
}

// openBlobs opens the stores of objects when the first one comes.
func (r *Received) openBlobs() error {
	if r.folder != nil {
		return nil
	}
	dir, err := r.target.Staging.sub(treesDir)
	if err != nil {
		return err
	}
	r.trees = blob.New(dir)
	hold, err := r.trees.Hold(context.Background())
	if err != nil {
		return err
	}
	r.folder = hold.Batch()
	if r.target.Blobs == nil {
		return nil
	}
	if r.blobs, r.hold, err = r.target.Blobs(); err != nil {
		return err
	}
	r.batch = r.hold.Batch()
	return nil
}

// A source reads the contents of a Source, and remembers its error: a store of objects wraps it
// as if its own files were meant.
type source struct {
	from Source
	err  error
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.from.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}

func (s *source) failed(err error) error {
	if s.err != nil {
		return s.err
	}
	return err
}

// Verify reads a source to its end and checks all that an import checks, in a temporary folder
// that is removed. Objects are hashed and not stored.
func Verify(ctx context.Context, from Source, temp string, others []repair.File) (_ *Report, err error) {
	dir, err := writer.OpenFS(temp)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	staging, err := NewStaging(dir, writer.OwnerOf(os.Getpid(), "bundle verify"))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, staging.Remove()) }()
	staging.temp = true
	r, err := Receive(ctx, from, Destination{Staging: staging, Others: others})
	if err != nil {
		return nil, err
	}
	r.Close()
	return &r.Report, nil
}

// Session opens the staged folder of a session.
func (r *Received) session(id string) (writer.FS, error) {
	dir, err := writer.OpenDir(r.target.Staging.FS, sessionsDir+"/"+id)
	if errors.Is(err, fs.ErrNotExist) {
		err = refused(sessionsDir+"/"+id, "the header names it and nothing of it came")
	}
	return dir, err
}
