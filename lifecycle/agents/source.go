package agents

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"unicode/utf8"

	"github.com/lopen-dev/lopen/writer/codec"
	"github.com/lopen-dev/lopen/writer/documents"
)

// A source is an open file of a history.
type source struct {
	*os.File
	size   int64 // when it was opened
	packed codec.Codec
	coded  bool // compressed, or in UTF-16: it is read from its beginning to get anywhere in it
}

func openSource(path string) (*source, error) {
	f, err := documents.OpenFile(path)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	_, packed := codec.Cut(filepath.Base(path))
	mark := make([]byte, 2)
	_, _ = f.ReadAt(mark, 0) // an error comes back when it is read
	return &source{f, info.Size(), packed, packed != codec.None || documents.IsUTF16(mark)}, nil
}

const (
	// most is what a compressed file may come to, in bytes for each of its own: lines of JSON that
	// are much alike.
	most = 4 << 10
	// whole stands for the end of a coded file, whose size as text is not known before it is read.
	whole = 1<<63 - 1
)

// begin notes how far a pass reads the file. It reports whether the file was rewritten since the
// last one, and is read from its beginning.
func (s *source) begin(p *FilePosition) (rewritten bool) {
	p.Until = s.size
	if s.coded {
		if p.Until = whole; p.Packed == s.size {
			p.Until = p.Offset // it was read to its end
			return false
		}
	}
	if p.Offset == 0 || p.Offset <= p.Until && s.print(p.Offset) == p.Print {
		return false
	}
	*p = FilePosition{Name: p.Name, Until: p.Until, Again: true}
	return true
}

// content returns a reader of the bytes up to an offset, and what has to be closed.
func (s *source) content(until int64) (io.Reader, io.Closer) {
	if !s.coded {
		return io.NewSectionReader(s, 0, until), io.NopCloser(nil)
	}
	unpacked := codec.NewReader(s.packed, io.NewSectionReader(s, 0, s.size))
	return io.LimitReader(documents.TextReader(unpacked), min(until, min(s.size, whole/most)*most)), unpacked
}

// unread is how many bytes there are to read behind an offset, or more.
func (s *source) unread(offset int64) int64 {
	if s.coded {
		return block
	}
	return max(s.size-offset, 0) + 1 // with room to see the end
}

// printed is the number of bytes at the beginning and before an offset that a print is of.
const printed = 1 << 10

// print returns the print of the bytes before an offset. It is "" if there are fewer.
func (s *source) print(offset int64) string {
	from, closer := s.content(offset)
	defer closer.Close()
	head := min(offset, printed)
	tail := min(offset-head, printed)
	sum := sha256.New()
	_, err := io.CopyN(sum, from, head)
	if err == nil {
		err = skip(from, offset-head-tail)
	}
	if err == nil {
		_, err = io.CopyN(sum, from, tail)
	}
	if err != nil {
		return ""
	}
	return hex.EncodeToString(sum.Sum(nil)[:8])
}

// skip leaves out the next n bytes.
func skip(from io.Reader, n int64) (err error) {
	if s, ok := from.(io.Seeker); ok {
		_, err = s.Seek(n, io.SeekCurrent)
	} else {
		_, err = io.CopyN(io.Discard, from, n)
	}
	return err
}

// bounded returns an ID that a message can have: id itself, or a hash of it.
func bounded(id string) string {
	const most = 128 - 16 // with room for a number
	if len(id) <= most && utf8.ValidString(id) {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:16])
}
