package blob

import (
	"io"

	"github.com/lopen-dev/lopen/writer"
)

// minHole is the shortest write of zeros that is left out, in bytes: file systems
// allocate no smaller blocks.
const minHole = 4 << 10

// A Sparse writes a new file from its beginning and leaves out writes that are all zeros,
// so that a hole which was read as zeros takes no space. It is for one goroutine.
type Sparse struct {
	f    writer.File
	size int64 // length of the content so far
	end  int64 // end of what was written; from there to size there is a hole
	hole bool  // a write was left out, so the file's own offset is too low: use WriteAt
}

// NewSparse returns a Sparse for f, which is empty and open for writing.
func NewSparse(f writer.File) *Sparse { return &Sparse{f: f} }

// Size returns the length of the content so far, in bytes.
func (s *Sparse) Size() int64 { return s.size }

// Write appends p to the content. It writes all of p or returns an error.
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

// End gives the file its length if the content ends in a hole. Call it once, after the
// last Write.
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
