package output

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/lopen-dev/lopen/writer"
)

const (
	headBytes = 8 << 20 // the begin that stays
	partBytes = 4 << 20 // a file of the end, of which the last two stay
	// MaxFile bounds a log and a raw output, in bytes.
	MaxFile = headBytes + 2*partBytes
)

// A capped stores the begin and the end of an output. What is beyond headBytes goes into
// part files, named by their first byte, and only the last two of them stay.
type capped struct {
	dir   writer.FS
	name  string
	f     writer.File
	size  int      // of f, in bytes
	most  int      // that f may have
	total int64    // bytes that were written
	parts []string // at most two, the older one first
}

func newCapped(dir writer.FS, name string) (*capped, error) {
	f, err := create(dir, name)
	if err != nil {
		return nil, err
	}
	return &capped{dir: dir, name: name, f: f, most: headBytes}, nil
}

// write begins a new file where text does not fit whole: the files end with a line.
func (c *capped) write(text []byte) error {
	for len(text) > 0 {
		piece := text[:min(len(text), partBytes)]
		if c.size+len(piece) > c.most {
			if err := c.next(); err != nil {
				return err
			}
		}
		n, err := c.f.Write(piece)
		c.size, c.total = c.size+n, c.total+int64(n)
		if err != nil {
			return writer.NewError("write", c.dir.Name()+"/"+c.name, writer.NotCommitted, err)
		}
		text = text[n:]
	}
	return nil
}

func (c *capped) next() error {
	if len(c.parts) == 2 {
		if err := c.dir.Remove(c.parts[0]); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return writer.NewError("remove", c.dir.Name()+"/"+c.parts[0], writer.NotCommitted, err)
		}
		c.parts = c.parts[1:]
	}
	name := fmt.Sprintf("%s.%d", c.name, c.total)
	f, err := create(c.dir, name)
	if err != nil {
		return err
	}
	err = c.f.Close()
	c.f, c.size, c.most, c.parts = f, 0, partBytes, append(c.parts, name)
	return err
}

func (c *capped) close() error { return c.f.Close() }
