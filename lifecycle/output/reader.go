package output

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/codec"
	"github.com/lopen-dev/lopen/writer/envelope"
)

// A Reader reads a file of an attempt, also while it is written: after io.EOF a later Read
// returns what was written since. In the place of what is left out it has a line that says
// how many bytes that are. A Reader belongs to one goroutine.
type Reader struct {
	dir    writer.FS
	name   string
	f      writer.File
	z      io.ReadCloser // decompresses f; nil if that is not compressed
	begin  int64         // the byte of the output that f begins with
	end    int64         // the first byte that f cannot have: a file that is larger is none of a Writer's
	at     int64         // the next byte of the output
	say    string        // what comes before it
	inLine bool          // the last byte was no line feed
}

// OpenReader opens a file of an attempt that [List] names, in the folder, which is the
// Reader's from then on, also with an error. An error that wraps fs.ErrNotExist says that
// there is none.
func OpenReader(dir writer.FS, name string, of File) (*Reader, error) {
	r := &Reader{dir: dir, name: name + string(of)}
	if err := r.open(r.name, 0); err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	return r, nil
}

// Close closes the file.
func (r *Reader) Close() error { return errors.Join(r.closeFile(), r.dir.Close()) }

func (r *Reader) closeFile() error {
	if r.z != nil {
		_ = r.z.Close() // it gives the decoder back
	}
	return r.f.Close()
}

func (r *Reader) open(name string, begin int64) error {
	f, err := r.dir.OpenFile(name, os.O_RDONLY, 0)
	var z io.ReadCloser
	for _, c := range codec.All[1:] {
		if errors.Is(err, fs.ErrNotExist) {
			name := name + c.Suffix()
			if f, err = r.dir.OpenFile(name, os.O_RDONLY, 0); err == nil {
				z, err = r.decompress(c, f, name)
			}
		}
	}
	if err != nil {
		return writer.NewError("read", r.dir.Name()+"/"+name, writer.NotCommitted, err)
	}
	if r.f != nil {
		_ = r.closeFile()
	}
	r.f, r.z, r.begin, r.end = f, z, begin, begin+partBytes
	if name == r.name {
		r.end = headBytes
	}
	return nil
}

// decompress returns the content of a compressed file. After an error f is closed.
func (r *Reader) decompress(c codec.Codec, f writer.File, name string) (io.ReadCloser, error) {
	info, err := f.Stat()
	if err == nil && info.Size() > headBytes {
		err = fmt.Errorf("%w: it has %d bytes, more than any output has", envelope.ErrCorrupt, info.Size())
	}
	if err == nil {
		var z io.ReadCloser
		if z, _, err = codec.Open(c, f, info.Size()); err == nil {
			return z, nil
		}
	}
	_ = f.Close() // nothing was written
	return nil, fmt.Errorf("%s: %w", name, err)
}

func (r *Reader) Read(p []byte) (int, error) {
	for {
		if r.say != "" {
			n := copy(p, r.say)
			r.say = r.say[n:]
			return n, nil
		}
		n, err := r.read(p)
		if n > 0 || !errors.Is(err, io.EOF) {
			return n, err
		}
		next, err := r.next()
		if err != nil || next == nil {
			return 0, cmp.Or(err, io.EOF)
		}
		// Another part was begun: to this one nothing comes any more.
		if n, err := r.read(p); n > 0 || !errors.Is(err, io.EOF) {
			return n, err
		}
		err = r.open(next.name, next.begin)
		if errors.Is(err, fs.ErrNotExist) {
			continue // it was left out meanwhile
		}
		if err != nil {
			return 0, err
		}
		if missing := next.begin - r.at; missing > 0 {
			r.leaveOut(missing)
		}
		r.at = next.begin
	}
}

func (r *Reader) read(p []byte) (int, error) {
	p = p[:min(int64(len(p)), max(r.end-r.at, 0))]
	if len(p) == 0 {
		return 0, io.EOF
	}
	var n int
	var err error
	if r.z != nil {
		n, err = r.z.Read(p) // in order: its begin was r.begin
	} else {
		n, err = r.f.ReadAt(p, r.at-r.begin)
	}
	if n > 0 {
		r.at += int64(n)
		r.inLine = p[n-1] != '\n'
		return n, nil
	}
	if err != nil && !errors.Is(err, io.EOF) {
		err = writer.NewError("read", r.dir.Name()+"/"+r.name, writer.NotCommitted, err)
	}
	return 0, err
}

func (r *Reader) leaveOut(n int64) {
	r.say = fmt.Sprintf("[%d bytes are left out here]\n", n)
	if r.inLine {
		r.say = "\n" + r.say
	}
}

// next is the part that continues the output, nil where there is none.
func (r *Reader) next() (*part, error) {
	parts, err := partsOf(r.dir, r.name)
	for i := range parts {
		if parts[i].begin >= r.at && parts[i].begin > r.begin {
			return &parts[i], nil
		}
	}
	return nil, err
}

// A part is a file of an output's end.
type part struct {
	name  string // without the suffix of a compressed file
	begin int64  // its first byte in the output
}

// partsOf are the parts of a file in their order.
func partsOf(dir writer.FS, name string) (parts []part, err error) {
	entries, err := dir.ReadDir(".")
	for _, e := range entries {
		plain, _ := codec.Cut(e.Name())
		if number, ok := strings.CutPrefix(plain, name+"."); ok && e.Type().IsRegular() && fileName().MatchString(plain) {
			begin, _ := strconv.ParseInt(number, 10, 64)
			parts = append(parts, part{plain, begin})
		}
	}
	slices.SortFunc(parts, func(a, b part) int { return cmp.Compare(a.begin, b.begin) })
	return slices.Compact(parts), err
}
