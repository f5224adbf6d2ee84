package blob

import (
	"io"

	"github.com/lopen-dev/lopen/writer"
)

// minHole is the shortest run of zeros that is left out, in bytes: file systems
// allocate no less.
const minHole = 4 << 10

// A Sparse fills a new file from its beginning and leaves out the writes that are
// all zeros, so that a hole which was read as zeros takes no space again. It is for
// one goroutine.
type Sparse struct {
	f    writer.File
	size int64 // of the content so far
	end  int64 // of what was written: what lies between is a hole
	hole bool  // the file's own offset is behind: write at offsets from here on
}

// NewSparse fills f, which is empty, open for writing and at its beginning.
func NewSparse(f writer.File) *Sparse { return &Sparse{f: f} }

// Size is the length of the content so far, in bytes.
func (s *Sparse) Size() int64 { return s.size }

// Write takes the next bytes of the content, all of them unless it fails.
func (s *Sparse) Write(p []byte) (int, error) {
	if len(p) >= minHole && zeros(p) {
		s.size += int64(len(p))
		s.hole = true
		return len(p), nil
	}
	for done := 0; done < len(p); {
		n, err := s.write(p[done:])
		if err == nil && n <= 0 {
			err = io.ErrShortWrite
		}
		if n > 0 {
			done += n
			s.size += int64(n)
			s.end = s.size
		}
		if err != nil {
			return done, err
		}
	}
	return len(p), nil
}

func (s *Sparse) write(p []byte) (int, error) {
	if s.hole {
		return s.f.WriteAt(p, s.size)
	}
	return s.f.Write(p)
}

// End gives the file its length when the content ended in a hole. It is called
// once, after the last Write.
func (s *Sparse) End() error {
	if s.end == s.size {
		return nil
	}
	_, err := s.f.WriteAt([]byte{0}, s.size-1)
	return err
}

func zeros(p []byte) bool {
	for len(p) >= 8 {
		if p[0]|p[1]|p[2]|p[3]|p[4]|p[5]|p[6]|p[7] != 0 {
			return false
		}
		p = p[8:]
	}
	for _, b := range p {
		if b != 0 {
			return false
		}
	}
	return true
}
