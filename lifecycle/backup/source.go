package backup

import (
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/lopen-dev/lopen/lifecycle/bundle"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/blob"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

// A Source returns the entries of a snapshot in the order in which they were added. Every byte
// that it returns was compared with its hash.
type Source struct {
	f      *Folder
	store  *blob.Store
	packs  *blob.Reading
	file   snapshotFile
	header *bundle.Header

	list  *walk  // of the list of entries
	lines []byte // what is left of the object of the list that was read last
	left  int64  // bytes of the list behind that object
	files int
	objs  int
	bytes int64
	now   io.ReadCloser // the content of the entry that Next returned last; nil before
	err   error         // sticky
}

// Source opens a snapshot. Number 0 is the newest that can be read. The caller closes the
// Source.
func (f *Folder) Source(number uint64) (*Source, error) {
	if number == 0 {
		all, err := f.List()
		if err != nil {
			return nil, err
		}
		for _, s := range all {
			if s.Err == nil {
				number = s.Number
			}
		}
		if number == 0 {
			return nil, &writer.Error{Op: "look for a backup in", Path: f.Path(), Class: writer.ClassInvalid, Err: errors.New("there is none that can be read")}
		}
	}
	file, err := f.snapshot(number)
	if errors.Is(err, fs.ErrNotExist) {
		err = &writer.Error{Op: "look for a backup in", Path: f.Path(), Class: writer.ClassInvalid, Err: fmt.Errorf("there is no backup %d: %w", number, fs.ErrNotExist)}
	}
	if err != nil {
		return nil, err
	}
	s := &Source{f: f, file: file, header: &bundle.Header{}}
	if s.store, err = f.objects(); err != nil {
		return nil, err
	}
	s.packs = s.store.Reading()
	if err := s.bounds(); err != nil {
		return nil, s.fail(err)
	}
	head, err := io.ReadAll(s.content("its header", file.Header))
	if err == nil {
		if jerr := strictjson.Unmarshal(head, s.header); jerr != nil {
			err = damaged(fmt.Errorf("its header: %w", jerr))
		} else if s.header.Bytes < file.Bytes {
			err = damaged(fmt.Errorf("its header announces %d bytes of %d", s.header.Bytes, file.Bytes))
		}
	}
	if err != nil {
		s.packs.Release()
		return nil, s.fail(err)
	}
	s.list, s.left = newWalk(file.Entries, s.read), file.Entries.Size
	return s, nil
}

// A snapshot has at most maxShared times the bytes of the folder, and maxExtra. So a list that
// names the same objects again and again ends.
const (
	maxShared = 4096
	maxExtra  = 1 << 30
)

// bounds refuses a snapshot that says it has more than contents which are alike explain.
func (s *Source) bounds() error {
	if s.file.Header.Size > maxHeader {
		return damaged(fmt.Errorf("its header has %d bytes, more than %d", s.file.Header.Size, maxHeader))
	}
	usage, err := s.store.Usage()
	if most := max(s.file.Bytes, s.file.Entries.Size); err == nil && (most-maxExtra)/maxShared > usage {
		err = damaged(fmt.Errorf("it has %d bytes, it says, and the folder %d", most, usage))
	}
	return err
}

// Header returns what the snapshot has.
func (s *Source) Header() *bundle.Header { return s.header }

// Contents returns the store that has the objects of the snapshot. It may only be read.
func (s *Source) Contents() *blob.Store { return s.store }

// Snapshot returns what the snapshot's file says.
func (s *Source) Snapshot() Snapshot { return s.file.Snapshot }

// fail keeps an error, with the path of the snapshot's file.
func (s *Source) fail(err error) error {
	if !errors.Is(err, io.EOF) {
		err = writer.NewError("read backup", s.f.path(snapshotsDir+"/"+snapshotName(s.file.Number)), writer.NotCommitted, err)
	}
	s.err = err
	return err
}

// read returns an object of ours.
func (s *Source) read(h blob.Hash) ([]byte, error) {
	data, err := s.packs.Read(h, chunkSize)
	return data, lost(h, err)
}

func (s *Source) open(h blob.Hash) (io.ReadCloser, error) {
	r, err := s.packs.Open(h)
	return r, lost(h, err)
}

// lost returns the error of an object: what a backup names is there, or the backup is damaged.
func lost(h blob.Hash, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return damaged(fmt.Errorf("object %s is missing", h))
	}
	return err
}

// Next returns the next entry. Read returns its content; damage in a content that is not read
// does no harm. At the end the error is io.EOF, if the snapshot has as much as its file says.
func (s *Source) Next() (bundle.Entry, error) {
	s.stop()
	if s.err != nil {
		return bundle.Entry{}, s.err
	}
	e, err := s.entry()
	if err != nil {
		return bundle.Entry{}, s.fail(err)
	}
	if e.Name != "" {
		s.now = io.NopCloser(s.content(e.Name, e.ref))
		return bundle.Entry{Name: e.Name, Size: e.Size}, nil
	}
	s.now = &exactly{open: func() (io.ReadCloser, error) { return s.open(e.Hash) }, left: e.Size}
	return bundle.Entry{Object: e.Hash, Size: e.Size}, nil
}

// entry reads the next line of the list.
func (s *Source) entry() (e entry, err error) {
	if len(s.lines) == 0 {
		h, more, err := s.list.next()
		if err == nil && !more {
			err = io.EOF
			if was := s.file.Snapshot; was.Files != s.files || was.Objects != s.objs || was.Bytes != s.bytes {
				err = damaged(fmt.Errorf("it has %d files, %d objects and %d bytes, and its list %d, %d and %d", was.Files, was.Objects, was.Bytes, s.files, s.objs, s.bytes))
			}
		}
		if err != nil {
			return e, err
		}
		if s.lines, err = s.read(h); err != nil {
			return e, err
		}
		if s.left -= int64(len(s.lines)); s.left < 0 || len(s.lines) == 0 {
			return e, damaged(fmt.Errorf("its list has other than %d bytes", s.file.Entries.Size))
		}
	}
	if s.lines, err = e.decode(s.lines); err != nil {
		return e, err
	}
	if e.Name == "" {
		s.objs++
	} else {
		s.files++
	}
	if e.Size > s.file.Bytes-s.bytes {
		return e, damaged(fmt.Errorf("its entries have more than the %d bytes of all", s.file.Bytes))
	}
	s.bytes += e.Size
	return e, nil
}

// Read reads the content of the entry that Next returned. The error is io.EOF at its end, if the
// content is whole.
func (s *Source) Read(p []byte) (int, error) {
	switch {
	case s.err != nil:
		return 0, s.err
	case s.now == nil:
		return 0, io.EOF
	}
	n, err := s.now.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = s.fail(err)
	}
	return n, err
}

// Close ends reading.
func (s *Source) Close() error {
	s.stop()
	s.packs.Release()
	return nil
}

func (s *Source) stop() {
	if s.now != nil {
		_ = s.now.Close() // nothing was written
		s.now = nil
	}
}

// content returns a reader of a file's content, which holds one chunk.
func (s *Source) content(name string, at ref) io.Reader {
	return &content{s: s, name: name, left: at.Size, chunks: newWalk(at, s.read)}
}

type content struct {
	s      *Source
	name   string
	left   int64
	chunks *walk
	chunk  []byte
}

func (c *content) Read(p []byte) (int, error) {
	for len(c.chunk) == 0 {
		h, more, err := c.chunks.next()
		if err == nil && more {
			c.chunk, err = c.s.read(h)
		}
		switch {
		case err != nil:
			return 0, fmt.Errorf("%s: %w", c.name, err)
		case more != (c.left > 0), more && int64(len(c.chunk)) != min(c.left, chunkSize):
			return 0, damaged(fmt.Errorf("%s: its chunks have another size than the list says", c.name))
		case !more:
			return 0, io.EOF
		}
		c.left -= int64(len(c.chunk))
	}
	n := copy(p, c.chunk)
	c.chunk = c.chunk[n:]
	return n, nil
}

// exactly reads a content that must have so many bytes. The first Read opens it.
type exactly struct {
	open func() (io.ReadCloser, error)
	r    io.ReadCloser // nil before
	left int64
}

func (e *exactly) Read(p []byte) (n int, err error) {
	if e.r == nil {
		if e.r, err = e.open(); err != nil {
			e.r = nil
			return 0, err
		}
	}
	n, err = e.r.Read(p)
	e.left -= int64(n)
	if e.left < 0 || errors.Is(err, io.EOF) && e.left > 0 {
		return 0, damaged(errors.New("an object has another size than the list says"))
	}
	return n, err
}

func (e *exactly) Close() error {
	if e.r == nil {
		return nil
	}
	return e.r.Close()
}
