package blob

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"

	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/codec"
)

// maxEmptyReads is the number of consecutive reads without data after which a reader
// fails.
const maxEmptyReads = 100

var heads = sync.Pool{New: func() any { return new([PackMax + 1]byte) }}

// head fills first from r and reports whether r ended before that.
func head(r io.Reader, first []byte) (_ []byte, ended bool, err error) {
	for n, empty := 0, 0; n < len(first); {
		m, err := r.Read(first[n:])
		n += m
		if empty++; m > 0 {
			empty = 0
		}
		switch {
		case err == io.EOF: // not errors.Is: a wrapped io.EOF is an error, as it is for io.Copy
			return first[:n], n < len(first), nil
		case err != nil:
			return nil, false, fmt.Errorf("read the content: %w", err)
		case empty >= maxEmptyReads:
			return nil, false, fmt.Errorf("read the content: %w", io.ErrNoProgress)
		}
	}
	return first, false, nil
}

// newTemp creates a temporary file in the store's folder: the folder that it belongs into
// depends on the hash, which may be known only at the end.
func (s *Store) newTemp() (temp string, f writer.File, err error) {
	err = writer.Retry(func() (err error) {
		temp = writer.TempName("blob") // new for each try: a failed open may have created the file
		f, err = s.dir.OpenFile(temp, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		return err
	})
	if err != nil {
		return "", nil, writer.NewError(opPut, s.dir.Name(), writer.NotCommitted, err)
	}
	return temp, f, nil
}

// fillTemp creates a temporary file with the content of first and then r. The file is still
// open and not synced. size is that of the content.
func (s *Store) fillTemp(first []byte, r io.Reader, ended func() error) (u unsynced, size int64, err error) {
	r = io.MultiReader(bytes.NewReader(first), r)
	by := s.by.Encoder()
	if by.Codec != codec.None && !shrinks(by, first) {
		by = codec.Encoder{}
	}
	u, size, packed, err := s.fill(by, r)
	if err != nil || by.Codec == codec.None || packed < size && s.by.Above(size) {
		return u, size, err
	}
	was := u.temp
	defer func() { _ = s.dir.Remove(was.name) }()
	if err := u.f.Close(); err != nil {
		return unsynced{}, 0, writer.NewError(opPut, s.dir.Name(), writer.NotCommitted, err)
	}
	return s.unpacked(was, ended)
}

// unpacked is fill with the content of a compressed temporary file, which got no smaller, or
// has a content that is to stay as it is.
func (s *Store) unpacked(t temp, ended func() error) (u unsynced, size int64, err error) {
	f, info, err := writer.OpenRegular(s.dir, opPut, t.name, os.O_RDONLY)
	if err != nil {
		return u, 0, err
	}
	defer f.Close()
	r, _, err := codec.Open(t.codec, f, info.Size())
	if err != nil {
		return u, 0, writer.NewError(opPut, s.path(t.name), writer.NotCommitted, err)
	}
	defer r.Close()
	u, size, _, err = s.fill(codec.Encoder{}, endable{r, ended})
	if err == nil && u.hash != t.hash {
		discard(s.dir, u.name, u.f)
		return unsynced{}, 0, writer.NewError(opPut, s.path(t.name), writer.NotCommitted, errOther)
	}
	return u, size, err
}

// shrinks reports whether the begin of a content gets smaller by an eighth. What does not is
// not compressed: it is seldom that the rest does. Nor are zeros, which may be a hole.
func shrinks(by codec.Encoder, first []byte) bool {
	return !zeros(first) && len(by.Frame(first)) < len(first)-len(first)/8
}

// fill creates a temporary file with the content of r. packed is its size, if it is compressed.
func (s *Store) fill(by codec.Encoder, r io.Reader) (u unsynced, size, packed int64, err error) {
	name, f, err := s.newTemp()
	if err != nil {
		return u, 0, 0, err
	}
	done := false
	defer func() { // r is foreign code and may panic
		if !done {
			discard(s.dir, name, f)
		}
	}()
	var sum Hash
	if by.Codec == codec.None {
		w := NewSparse(f)
		if sum, err = s.copyHash(w, r); err == nil {
			size, err = w.Size(), w.End()
		}
	} else {
		w := by.Create(f)
		defer w.Discard()
		if sum, err = s.copyHash(w, r); err == nil {
			size, packed, err = w.End()
		}
	}
	if err != nil {
		return u, 0, 0, writer.NewError(opPut, s.dir.Name(), writer.NotCommitted, err)
	}
	done = true
	return unsynced{temp{name: name, hash: sum, codec: by.Codec}, f}, size, packed, nil
}

// copyHash copies r to w, to its end, and returns the hash.
func (s *Store) copyHash(w io.Writer, r io.Reader) (Hash, error) {
	sum, buf := s.NewHash(), make([]byte, chunk)
	for {
		part, ended, err := head(r, buf)
		if err != nil {
			return Hash{}, err
		}
		sum.Write(part)
		if _, err := w.Write(part); err != nil || ended {
			return Hash(sum.Sum(nil)), err
		}
	}
}

// A packWriter makes a pack. It writes each content into a temporary file at once and holds
// only the index in memory. It is for one goroutine at a time.
type packWriter struct {
	s       *Store
	temp    string
	f       writer.File
	w       *bufio.Writer
	at      int64
	records []record
}

func (s *Store) newPack() (*packWriter, error) {
	temp, f, err := s.newTemp()
	if err != nil {
		return nil, err
	}
	w := &packWriter{s: s, temp: temp, f: f, w: bufio.NewWriterSize(NewSparse(f), chunk), at: int64(headerSize)}
	_, _ = w.w.Write(packHeader()) // cannot fail: the buffer has room
	return w, nil
}

// add appends a content. After an error the pack has to be discarded.
func (w *packWriter) add(h Hash, data []byte) error {
	_, err := w.w.Write(data)
	w.records = append(w.records, newRecord(h, w.at, len(data)))
	w.at += int64(len(data))
	return err
}

// end writes the index and the trailer. The file is then complete, still open and not synced.
func (w *packWriter) end() (*pack, error) {
	slices.SortFunc(w.records, func(a, b record) int { return bytes.Compare(a[:], b[:]) })
	x := make(index, 0, len(w.records)*recordSize)
	for i := range w.records {
		x = append(x, w.records[i][:]...)
	}
	_, _ = w.w.Write(x) // Flush returns the error
	_, _ = w.w.Write(packTrailer(x))
	p := &pack{name: newPackName(), read: true, index: x, bytes: w.at + int64(len(x)) + trailerSize}
	return p, w.w.Flush()
}

func (w *packWriter) discard() { discard(w.s.dir, w.temp, w.f) }
