package journal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/lopen-dev/lopen/writer"
)

// A Tail is how far a stream goes: what stands behind it was never acknowledged.
type Tail struct {
	File  string `json:"file,omitempty"`  // the last one; "" while the stream is empty
	Bytes int64  `json:"bytes,omitempty"` // of that file that count, its header included
	Count uint64 `json:"count,omitempty"` // records, those of earlier files included
}

// A Stream appends to a log beside the journal: its records count when a record of
// the journal says how far it goes. So it has neither marks nor rotation of its
// own, and opening it copies nothing.
//
// A file is written by one Stream alone, which is what keeps a writer that lost the
// session from writing over its successor's records: each one begins a file of its
// own, the first is {name}.jsonl and later ones {name}-{epoch}-{n}.jsonl. A file's
// header names the Tail that it goes on from. It belongs to one goroutine.
type Stream struct {
	dir     writer.FS
	name    string // "messages"
	session string
	epoch   uint64

	accepted Tail        // what the journal names
	written  Tail        // durable; accepted when the journal has said so
	f        writer.File // nil before the first record, and when it was given up
	file     segmentFile
	n        uint64 // files tried
	buf      []byte
}

// segmentFile is the name and length of the file that is written to.
type segmentFile struct {
	name string
	off  int64
}

// streamHeader is the first line of a stream's file.
type streamHeader struct {
	Version int    `json:"stream"`
	Name    string `json:"name"`
	Session string `json:"session"` // that wrote it; others may share it
	Epoch   uint64 `json:"epoch"`
	After   Tail   `json:"after,omitzero"`
}

// NewStream goes on from a Tail in a file of its own, which the first Append
// makes. It touches nothing.
func NewStream(dir writer.FS, name, session string, epoch uint64, at Tail) *Stream {
	return &Stream{dir: dir, name: name, session: session, epoch: epoch, accepted: at, written: at}
}

// Tail is the last accepted one.
func (s *Stream) Tail() Tail { return s.accepted }

// Append makes records durable, in order, with one write and one fdatasync, and
// returns the Tail that makes them count. seq is the number of the journal's record
// that will name it. There is one body at least, each as in [Writer.Append].
//
// Between two calls there is an Accept, or after an error of the journal's a GiveUp.
func (s *Stream) Append(seq uint64, bodies [][]byte) (Tail, error) {
	for _, b := range bodies {
		if len(b) > MaxBody {
			return s.accepted, &writer.Error{Op: "append", Path: s.path(), Class: writer.ClassInvalid, Err: fmt.Errorf("a record of %d bytes, more than %d", len(b), MaxBody)}
		}
	}
	fresh := s.f == nil
	if err := s.begin(); err != nil {
		return s.accepted, err
	}
	next, err := s.write(seq, bodies, fresh)
	if err != nil {
		s.GiveUp()
		if fresh {
			_ = s.dir.Remove(s.file.name) // no record names it, and a full disk wants it back
		}
		return s.accepted, err
	}
	s.file.off, s.written = next.Bytes, next
	return next, nil
}

func (s *Stream) write(seq uint64, bodies [][]byte, fresh bool) (Tail, error) {
	next := Tail{File: s.file.name, Count: s.accepted.Count}
	synced := s.file.off
	if fresh {
		synced = 0
	}
	for _, b := range bodies {
		next.Count++
		s.buf = encodeRecord(s.buf, s.epoch, seq, synced, fmt.Appendf(nil, `"n":%d,%s`, next.Count, b))
	}
	n, err := s.f.WriteAt(s.buf, s.file.off)
	if err == nil && n < len(s.buf) {
		err = io.ErrShortWrite
	}
	if err != nil {
		return Tail{}, writer.NewError("append", s.path(), writer.NotCommitted, err)
	}
	next.Bytes = s.file.off + int64(n)
	if err := s.f.Datasync(); err != nil {
		return Tail{}, writer.NewError("append", s.path(), writer.OutcomeUnknown, err)
	}
	if fresh {
		if err := s.dir.SyncDir("."); err != nil {
			return Tail{}, writer.NewError("append", s.path(), writer.NotDurable, err)
		}
	}
	return next, nil
}

// begin empties the buffer and, without a file, makes one and puts its header into
// the buffer. A name that is taken is somebody else's file, and stays.
func (s *Stream) begin() error {
	s.buf = s.buf[:0]
	if s.f != nil {
		return nil
	}
	line, err := json.Marshal(streamHeader{Version: Version, Name: s.name, Session: s.session, Epoch: s.epoch, After: s.accepted})
	if err != nil {
		return err
	}
	s.buf = seal(append(s.buf, line[:len(line)-1]...))
	for {
		s.file = segmentFile{name: s.name + ".jsonl"}
		if s.n > 0 || s.accepted.Count > 0 {
			s.file.name = fmt.Sprintf("%s-%d-%d.jsonl", s.name, s.epoch, max(s.n, 1))
		}
		s.n++
		err := writer.Retry(func() (err error) {
			s.f, err = s.dir.OpenFile(s.file.name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
			return err
		})
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			s.f = nil
			return writer.NewError("open stream", s.path(), writer.NotCommitted, err)
		}
		return nil
	}
}

// Accept says that the journal names what the last Append returned.
func (s *Stream) Accept() { s.accepted = s.written }

// GiveUp leaves the current file: what it holds beyond the last accepted Tail is
// void, and the next Append begins another one. The file stays: a record of the
// journal whose outcome is not known may name it.
func (s *Stream) GiveUp() {
	if s.f != nil {
		_ = s.f.Close()
		s.f = nil
	}
	s.written = s.accepted
}

// Close closes the current file. What was accepted is durable already.
func (s *Stream) Close() error {
	if s.f == nil {
		return nil
	}
	err := s.f.Close()
	s.f = nil
	if err != nil {
		return writer.NewError("close stream", s.path(), writer.NotCommitted, err)
	}
	return nil
}

func (s *Stream) path() string { return filepath.Join(s.dir.Name(), s.file.name) }

// decodeStreamHeader reads the first line of a stream's file. The error wraps
// writer.ErrFutureVersion where a newer version wrote it.
func decodeStreamHeader(name string, line []byte) (streamHeader, error) {
	var h streamHeader
	if sealed(line) == "" || !bytes.HasPrefix(line, []byte(`{"stream":`)) {
		return h, errHeader
	}
	var version struct {
		Version int `json:"stream"`
	}
	if err := json.Unmarshal(line, &version); err != nil || version.Version < 1 {
		return h, errHeader
	}
	if version.Version > Version {
		return h, fmt.Errorf("stream version %d: %w", version.Version, writer.ErrFutureVersion)
	}
	if err := json.Unmarshal(line, &h); err != nil || h.Name != name || !h.After.valid(name) {
		return h, errHeader
	}
	return h, nil
}

// valid says whether a Tail can be one of a stream: what names a file decides what
// is opened.
func (t Tail) valid(stream string) bool {
	if t == (Tail{}) {
		return true
	}
	return isStreamFile(stream, t.File) && t.Bytes >= 0 && t.Bytes <= maxNumber && t.Count <= maxNumber
}

// isStreamFile says whether a file's name is one that a Stream gives.
func isStreamFile(stream, file string) bool {
	rest, ok := strings.CutPrefix(file, stream)
	rest, jsonl := strings.CutSuffix(rest, ".jsonl")
	if !ok || !jsonl || rest == "" {
		return ok && jsonl
	}
	_, ok = parseName("journal" + rest + ".jsonl")
	return ok
}
