package backup

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"

	"github.com/lopen-dev/lopen/lifecycle/bundle"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/blob"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

// batchBytes bounds what is stored before it is made durable, in bytes. What a batch made
// durable stays when the backup is interrupted, and the next one does not store it again.
const batchBytes = 256 << 20

// maxHeader bounds the header of a snapshot, in bytes.
const maxHeader = 64 << 20

// A Writer makes a snapshot of the entries that it gets. The caller must call Close or
// Discard.
type Writer struct {
	f      *Folder
	lock   *writer.Lock
	store  *blob.Store
	hold   *blob.Hold
	batch  *blob.Batch
	header *bundle.Header

	known   map[blob.Hash]struct{} // what the folder has, durably
	fresh   map[blob.Hash]struct{} // what the batch has
	pending int64                  // bytes of it
	limit   int64                  // batchBytes except in tests
	entries tree
	lines   []byte // of the list, not in an object yet
	sum     Snapshot
	err     error // sticky
	done    bool
}

// Begin begins a snapshot. With again set every content that comes is read from the folder as
// well, and stored anew where it is damaged. The error has class busy and names the holder if
// another backup to the folder is in progress.
func (f *Folder) Begin(ctx context.Context, h *bundle.Header, again bool) (_ *Writer, err error) {
	w := &Writer{f: f, header: h, known: map[blob.Hash]struct{}{}, fresh: map[blob.Hash]struct{}{}, limit: batchBytes}
	w.entries.put = w.put
	what := "backup"
	if !f.mark.Encrypted {
		what += " of " + h.Project.Path
	}
	if w.lock, err = lockOf(f.dir, what); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			w.release(err)
		}
	}()
	all, err := f.List()
	if err != nil {
		return nil, err
	}
	for _, s := range all {
		w.sum.Number = max(w.sum.Number, s.Number)
	}
	w.sum.Number++
	if err := f.prepare(); err != nil {
		return nil, err
	}
	if w.store, err = f.fresh(); err != nil {
		return nil, err
	}
	if w.hold, err = w.store.Hold(ctx); err != nil {
		return nil, err
	}
	w.batch = w.hold.Batch()
	if again {
		return w, nil
	}
	for h, err := range w.store.All() {
		if err == nil { // what cannot be read is stored again
			w.known[h] = struct{}{}
		}
	}
	return w, nil
}

// prepare makes the folders, and makes durable what a backup that was interrupted renamed: the
// names of objects and of its snapshot. It removes the temporary files of that backup.
func (f *Folder) prepare() error {
	for _, name := range []string{objectsDir, snapshotsDir} {
		if err := writer.MkdirDurable(f.files, name); err != nil {
			return err
		}
	}
	for _, name := range []string{".", objectsDir, snapshotsDir} {
		if err := writer.RemoveTemps(f.files, name, nil); err != nil {
			return err
		}
	}
	entries, err := f.files.ReadDir(objectsDir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if name := objectsDir + "/" + e.Name(); e.IsDir() {
			if err := f.files.SyncDir(name); err != nil {
				return writer.NewError("sync", f.path(name), writer.NotDurable, err)
			}
		}
	}
	return nil
}

// Add stores a file. content has exactly size bytes. After an error only Discard is left.
func (w *Writer) Add(name string, size int64, content io.Reader) error {
	return w.keep(func() error {
		at, err := w.content(content)
		if err == nil && at.Size != size {
			err = fmt.Errorf("back up %s: it has %d bytes, and %d were announced", name, at.Size, size)
		}
		if err != nil {
			return err
		}
		w.sum.Files++
		return w.entry(entry{name, at})
	})
}

// Object stores an object of the checkpoints. open is called only if the folder does not have
// it.
func (w *Writer) Object(h blob.Hash, size int64, open func() (io.ReadCloser, error)) error {
	return w.keep(func() error {
		if err := w.object(h, size, open); err != nil {
			return err
		}
		w.sum.Objects++
		return w.entry(entry{ref: ref{Hash: h, Size: size}})
	})
}

func (w *Writer) object(h blob.Hash, size int64, open func() (io.ReadCloser, error)) error {
	if w.has(h) {
		return nil
	}
	r, err := open()
	if err != nil {
		return err
	}
	defer r.Close()
	got, n, err := w.batch.Put(r, blob.Hash{})
	if err == nil && (got != h || n != size) {
		err = damaged(fmt.Errorf("object %s of %d bytes: what came has %d bytes and the hash %s", h, size, n, got))
	}
	if err != nil {
		return err
	}
	return w.stored(h, n)
}

// keep runs fn unless an error is kept, and keeps its error.
func (w *Writer) keep(fn func() error) error {
	if w.err == nil && w.done {
		w.err = &writer.Error{Op: "back up to", Path: w.f.Path(), Class: writer.ClassInvalid, Err: errors.New("the snapshot is over")}
	}
	if w.err == nil {
		w.err = fn()
	}
	return w.err
}

// entry appends a line to the list.
func (w *Writer) entry(e entry) error {
	line, err := e.encode()
	if err != nil {
		return err
	}
	w.sum.Bytes += e.Size
	w.lines = append(w.lines, line...)
	if !ends(line, len(w.lines)) {
		return nil
	}
	err = w.entries.add(w.lines)
	w.lines = w.lines[:0]
	return err
}

// content stores what r has, in chunks.
func (w *Writer) content(r io.Reader) (ref, error) {
	t := tree{put: w.put}
	buf := make([]byte, chunkSize)
	for {
		n, err := io.ReadFull(r, buf)
		if n > 0 {
			if err := t.add(buf[:n]); err != nil {
				return ref{}, err
			}
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return t.end()
		}
		if err != nil {
			return ref{}, err
		}
	}
}

func (w *Writer) has(h blob.Hash) bool {
	_, old := w.known[h]
	_, ours := w.fresh[h]
	return old || ours
}

// put stores an object of ours unless the folder has it.
func (w *Writer) put(data []byte) (blob.Hash, error) {
	h := blob.Hash(sha256.Sum256(data))
	if w.has(h) {
		return h, nil
	}
	if _, _, err := w.batch.Put(bytes.NewReader(data), blob.Hash{}); err != nil {
		return h, err
	}
	return h, w.stored(h, int64(len(data)))
}

// stored counts a content that was put into the batch, and begins another one if it is large.
func (w *Writer) stored(h blob.Hash, size int64) error {
	w.fresh[h] = struct{}{}
	w.sum.Added += size
	if w.pending += size; w.pending < w.limit {
		return nil
	}
	if err := w.commit(); err != nil {
		return err
	}
	w.batch = w.hold.Batch()
	return nil
}

// commit makes what the batch has durable.
func (w *Writer) commit() error {
	if err := w.batch.Commit(); err != nil {
		return err
	}
	for h := range w.fresh {
		w.known[h] = struct{}{}
	}
	clear(w.fresh)
	w.pending = 0
	return nil
}

// Close makes the snapshot durable. After an error there is none, or one that a power cut may
// undo.
func (w *Writer) Close() error {
	if err := w.keep(w.finish); err != nil {
		w.Discard()
		return err
	}
	w.done = true
	w.release(nil)
	return nil
}

// Made returns the snapshot, after Close.
func (w *Writer) Made() Snapshot { return w.sum }

func (w *Writer) finish() error {
	file, err := w.manifest()
	if err == nil {
		err = w.commit()
	}
	if err != nil {
		return err
	}
	data, err := sealed.Encode(file)
	if err != nil {
		return err
	}
	// After an error the file may be there. It stays: all that it names is durable, and a power
	// cut could bring back a file that was removed.
	return writer.CreateFile(w.f.files, snapshotsDir+"/"+snapshotName(w.sum.Number), data, filePerm)
}

// manifest stores what remains of the list and the header, and returns the snapshot's file.
func (w *Writer) manifest() (s snapshotFile, err error) {
	if len(w.lines) > 0 {
		if err := w.entries.add(w.lines); err != nil {
			return s, err
		}
	}
	if s.Entries, err = w.entries.end(); err != nil {
		return s, err
	}
	w.header.Bytes = max(w.header.Bytes, w.sum.Bytes)
	head, err := strictjson.Marshal(w.header)
	if err == nil && len(head) > maxHeader {
		err = fmt.Errorf("back up: the header has %d bytes, more than %d", len(head), maxHeader)
	}
	if err != nil {
		return s, err
	}
	if s.Header, err = w.content(bytes.NewReader(head)); err != nil {
		return s, err
	}
	w.sum.At, w.sum.Project, w.sum.Sessions = w.header.At, w.header.Project.Path, len(w.header.Sessions)
	s.Snapshot = w.sum
	return s, nil
}

// Discard ends a snapshot that is not closed. What was made durable stays: the next one uses it.
// It is idempotent.
func (w *Writer) Discard() {
	if w.done {
		return
	}
	w.done = true
	w.batch.Discard()
	w.release(w.err)
}

// release releases the locks. After a failed sync it first removes what no snapshot names: the
// name of such an object may not be on the disk, and no later sync would tell. Its own errors
// do not change what the snapshot is.
func (w *Writer) release(err error) {
	if w.hold != nil {
		_ = w.hold.Release()
	}
	if e, ok := errors.AsType[*writer.Error](err); ok && e.Outcome != writer.NotCommitted {
		_, _ = w.f.sweep()
	}
	_ = w.lock.Unlock()
}
