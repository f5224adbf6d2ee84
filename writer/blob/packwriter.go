package blob

import (
	"bufio"
	"bytes"
	"slices"

	"github.com/lopen-dev/lopen/writer"
)

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
