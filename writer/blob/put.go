package blob

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/lopen-dev/lopen/writer"
)

// opPut is what errors of Put say was being done.
const opPut = "store blob"

// maxEmptyReads is how many reads in a row may return nothing before a reader
// is given up.
const maxEmptyReads = 100

// Put stores what r has, to its end, and returns the hash and the number of
// bytes. When it returns nil the blob survives a power cut. Content that is there
// is read to see that it is whole; damaged it is replaced. Put needs the memory of
// one buffer, whatever the size, and as much free space as the content has, even if
// it is there already. Any goroutine may call it, until the Hold is released.
//
// After an error the outcome says what stands: NotCommitted, what stood before;
// NotDurable, the blob whole but perhaps not for long; OutcomeUnknown, one of the
// two. An error of r has its own class, is wrapped and stores nothing. A symlink or
// anything else that is no regular file in the blob's place has class invalid and
// is left alone.
func (h *Hold) Put(r io.Reader) (Hash, int64, error) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	if h.fl == nil {
		return Hash{}, 0, &writer.Error{Op: opPut, Path: h.s.dir.Name(), Class: writer.ClassInvalid, Err: errors.New("the hold was released")}
	}
	return h.s.put(r)
}

func (s *Store) put(r io.Reader) (Hash, int64, error) {
	temp, sum, size, err := s.writeTemp(r)
	if err != nil {
		return Hash{}, 0, err
	}
	if err := s.publish(temp, sum); err != nil {
		return Hash{}, 0, err
	}
	return sum, size, nil
}

// writeTemp makes a temporary file of what r has, synced and closed. It is in
// the store's folder: which one the blob belongs into is known at the end only.
func (s *Store) writeTemp(r io.Reader) (string, Hash, int64, error) {
	temp, f, sum, size, err := s.fillTemp(r)
	if err != nil {
		return "", Hash{}, 0, err
	}
	err = f.Sync()
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		_ = s.dir.Remove(temp)
		return "", Hash{}, 0, writer.NewError(opPut, s.dir.Name(), writer.NotCommitted, err)
	}
	return temp, sum, size, nil
}

// fillTemp makes a temporary file of what r has, open and not synced.
func (s *Store) fillTemp(r io.Reader) (string, writer.File, Hash, int64, error) {
	var temp string
	var f writer.File
	err := writer.Retry(func() (err error) {
		temp = writer.TempName("blob") // a new one each time: a failed open may have made the file
		f, err = s.dir.OpenFile(temp, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		return err
	})
	if err != nil {
		return "", nil, Hash{}, 0, writer.NewError(opPut, s.dir.Name(), writer.NotCommitted, err)
	}
	done := false
	defer func() { // r is foreign code and may panic
		if !done {
			_ = f.Close()
			_ = s.dir.Remove(temp)
		}
	}()
	sum, size, err := copyHash(f, r)
	if err != nil {
		return "", nil, Hash{}, 0, writer.NewError(opPut, s.dir.Name(), writer.NotCommitted, err)
	}
	done = true
	return temp, f, sum, size, nil
}

// copyHash copies and hashes r to its end.
func copyHash(f writer.File, r io.Reader) (Hash, int64, error) {
	sum, buf := sha256.New(), make([]byte, chunk)
	w := NewSparse(f)
	for empty := 0; ; {
		n, rerr := r.Read(buf)
		sum.Write(buf[:n])
		if _, err := w.Write(buf[:n]); err != nil {
			return Hash{}, 0, err
		}
		if empty++; n > 0 {
			empty = 0
		}
		if rerr == nil && empty >= maxEmptyReads {
			rerr = io.ErrNoProgress
		}
		if rerr == io.EOF { // not errors.Is: a wrapped one is an error, as it is for io.Copy
			return Hash(sum.Sum(nil)), w.Size(), w.End()
		}
		if rerr != nil {
			return Hash{}, 0, fmt.Errorf("read the content: %w", rerr)
		}
	}
}

// publish gives a complete temporary file the name of its hash, unless that
// one is there and whole, and makes the name durable. The temporary file is gone
// afterwards, as far as that goes.
func (s *Store) publish(temp string, h Hash) error {
	state := &s.shards[h[0]]
	if err := s.makeShard(h); err != nil {
		_ = s.dir.Remove(temp)
		return err
	}
	switch err := s.verify(opPut, h); {
	case err == nil && !state.suspect.Load():
		_ = s.dir.Remove(temp)
	case err != nil && writer.ClassOf(err) == writer.ClassInvalid:
		_ = s.dir.Remove(temp)
		return err
	default:
		// Missing, damaged, not to be read, or of a doubtful name: whatever it is, the
		// new one is right.
		if err := s.rename(temp, h); err != nil {
			return err
		}
	}
	// A blob that was there is synced too: who renamed it may not have come to that.
	if err := s.dir.SyncDir(h.shard()); err != nil {
		state.suspect.Store(true)
		return s.failed(opPut, h, writer.NotDurable, err)
	}
	return nil
}

// makeShard makes the blob's folder and the folder's name durable. One that is
// there is synced too, once: who made it may not have come to that.
func (s *Store) makeShard(h Hash) error {
	state := &s.shards[h[0]]
	if state.durable.Load() {
		return nil
	}
	if err := writer.MkdirDurable(s.dir, h.shard()); err != nil {
		var e *writer.Error
		if errors.As(err, &e) {
			e.Outcome = writer.NotCommitted // of the blob; the folder does not matter
		}
		return err
	}
	state.durable.Store(true)
	return nil
}

// rename renames a temporary file over the blob of h. A rename that failed may
// have been done all the same (a network server's answer got lost), or another Put
// of the same content has done its own: a whole blob is a stored one.
func (s *Store) rename(temp string, h Hash) error {
	err := writer.Retry(func() error { return s.dir.Rename(temp, h.name()) })
	if err == nil {
		return nil
	}
	state := &s.shards[h[0]]
	state.durable.Store(false) // somebody may have removed the folder
	there := s.dir.Remove(temp) == nil
	switch stands := s.verify(opPut, h); {
	case stands == nil && !state.suspect.Load():
		return nil
	case stands == nil:
		return s.failed(opPut, h, writer.NotDurable, err) // the doubtful name is still there
	case there, errors.Is(stands, fs.ErrNotExist), errors.Is(stands, writer.ErrCorrupt), errors.Is(stands, writer.ErrInvalid):
		return s.failed(opPut, h, writer.NotCommitted, err)
	}
	return s.failed(opPut, h, writer.OutcomeUnknown, err)
}
