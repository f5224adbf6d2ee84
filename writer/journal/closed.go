package journal

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/codec"
)

// A Segment is a file of a journal with what is known of it before it is read.
type Segment struct {
	Bytes int64 // size of the file in bytes; set by [Writer.Segments] only

	name   name
	header header
	ok     bool  // the header is known and names the session
	length int64 // of the first line in bytes; 0 unless the list has the segment
	gone   bool  // the segment is in the list and not in the folder
}

// First returns the number of the segment's first record, if it has records.
func (s Segment) First() uint64 { return s.header.After.Seq + 1 }

// Reduced reports whether Drop wrote the segment: it holds only what remains of its records.
func (s Segment) Reduced() bool { return s.header.Reduced }

// packFiles is the number of closed segments that are compressed into one, even small ones.
const packFiles = 16

// Segments returns the segments of the journal in order, the current one last. It first
// removes segments that a crash left although a packed one replaces them. holds returns an
// error when the writer has lost the session's lease; then nothing is removed.
func (w *Writer) Segments(holds func() error) ([]Segment, error) {
	w.mu.Lock()
	current := w.list[len(w.list)-1].name()
	w.mu.Unlock()
	names, err := segments(w.dir)
	if err != nil {
		return nil, err
	}
	all, err := heads(w.dir, names, nil, w.session)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(h Segment) bool { return !h.ok || h.name.compare(current) > 0 })
	for i := len(all) - 1; i > 0; i-- {
		from := replaced(all, i)
		if from == i {
			continue
		}
		s, err := scan(w.dir, all[i].name, Segment{})
		if err == nil && s.intact() {
			err = w.settle(all[i].header, all[from:i], holds)
		}
		if err != nil {
			return nil, err
		}
		// If the packed segment is damaged, the files that it replaces stay, but are not returned.
		all, i = slices.Delete(all, from, i), from
	}
	for i := range all {
		info, err := w.dir.Lstat(all[i].name.String())
		if err != nil {
			return nil, w.failed(all[i].name, err)
		}
		all[i].Bytes = info.Size()
	}
	return all, nil
}

// FirstLine returns the line of a segment's first record, its line feed included. It returns
// nil when the first line after the header is not that record.
func (w *Writer) FirstLine(s Segment) ([]byte, error) {
	in, size, f, err := source(w.dir, s.name)
	if err != nil {
		return nil, w.failed(s.name, err)
	}
	defer f.Close()
	lines := newLines(in, size+1)
	defer lines.release()
	var line []byte
	for range 2 { // the first line is the header
		if line, err = lines.next(); errors.Is(err, io.EOF) {
			return nil, nil
		}
	}
	if it, ok := decodeLine(line); err != nil || !ok || it.note || it.Seq != s.First() {
		return nil, err
	}
	return bytes.Clone(line), nil
}

// Began returns the number of the first record in a folder that was not dropped, as
// [Log.Begin] does. It does not read the records.
func Began(dir writer.FS) (uint64, error) {
	c, err := look(dir)
	if err != nil {
		return 0, err
	}
	return c.begin, nil
}

func (w *Writer) failed(n name, err error) error {
	return writer.NewError("rewrite segment", filepath.Join(w.dir.Name(), n.String()), writer.NotCommitted, err)
}

// Crowded reports whether there are at least 16 closed segments that are not compressed,
// which is when Pack compresses them unless they have faults.
func (w *Writer) Crowded() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, h := range w.list[:len(w.list)-1] {
		if !h.Packed {
			n++
		}
	}
	return n >= packFiles
}

// packs reports whether segments are large or many enough to be compressed into one.
func packs(all []Segment, limit int64) bool {
	bytes := int64(0)
	for _, s := range all {
		bytes += s.Bytes
	}
	return len(all) > 0 && bytes >= limit/2 || len(all) >= packFiles
}

// Pack compresses a run of closed segments into one. It takes the oldest run without faults
// that has at least limit/2 bytes or 16 segments. It may run concurrently with Append. A
// power cut at any moment leaves the old segments, the new one or both, and a reader finds
// the same records in each case. done is false when there is no such run.
func (w *Writer) Pack(limit int64, holds func() error) (done bool, err error) {
	all, err := w.Segments(holds)
	from := 0 // the run begins here
	for to := 1; to < len(all) && err == nil; to++ {
		if all[to-1].name.packed() {
			from = to
		}
		for i := from; i < to && packs(all[from:to], limit); i++ {
			_, _, clean, err := w.take(all[i], all[i+1], true)
			if err != nil {
				return false, err
			}
			if !clean {
				from = i + 1
			}
		}
		if packs(all[from:to], limit) {
			return true, w.rewrite(all[from:to+1], nil, holds)
		}
	}
	return false, err
}

// Drop rewrites all segments before the given one, which [Writer.Segments] returned, into one
// compressed segment. Entries remain as they are. For each record that the State rests on,
// keep gets the line and returns the body of the entry that replaces it, or nil to drop it.
// Drop may run concurrently with Append, and a power cut during it is as harmless as during
// Pack. If a segment is damaged, Drop returns an error of class corrupt and changes nothing,
// because there is no other copy of its records.
func (w *Writer) Drop(before Segment, keep func(line []byte) ([]byte, error), holds func() error) error {
	all, err := w.Segments(holds)
	if err != nil {
		return err
	}
	to := slices.IndexFunc(all, func(s Segment) bool { return s.name == before.name })
	from := slices.IndexFunc(all, func(s Segment) bool { return !s.Reduced() })
	if from < 0 || to <= from {
		return nil
	}
	return w.rewrite(all[from:to+1], keep, holds)
}

// take returns the records of the closed segment of that count and, with notes set, the notes
// among them. behind is the segment after it. whole reports that no record is lost between
// the two. clean reports that, in addition, every other record in the segment has a copy in
// behind.
func (w *Writer) take(of, behind Segment, notes bool) (refs []Ref, whole, clean bool, err error) {
	s, err := scan(w.dir, of.name, Segment{})
	if err != nil || !s.valid {
		return nil, false, false, err
	}
	c := &chain{Log: &Log{Session: w.session, begin: 1}}
	c.add(s, &behind.header)
	c.join(&segment{name: behind.name, header: behind.header})
	c.end()
	whole, clean = c.judged(of.name.String(), behind.header.Upto)
	upto := s.header.After.Seq
	for i := range s.items {
		it := &s.items[i]
		if j, ok := c.find(it.Seq); ok && !it.note && !it.hole && c.Records[j].Offset == it.Offset {
			upto = it.Seq
		} else if !notes || !it.note || it.Seq != upto {
			continue
		}
		refs = append(refs, it.Ref)
	}
	whole = whole && upto == behind.header.After.Seq
	return refs, whole, whole && clean, nil
}

// judged reports about a segment whether none of its faults is damage (whole), and whether
// each of them is settled and below copied, so that the next segment has a copy (clean).
func (c *chain) judged(segment string, copied uint64) (whole, clean bool) {
	whole, clean = true, true
	for _, f := range c.Faults {
		if f.Segment == segment {
			whole = whole && f.Kind != Damaged
			clean = clean && f.Kind == Settled && f.Seq <= copied
		}
	}
	return whole, clean
}

// rewrite makes one compressed segment of all but the last one, and removes the originals.
// Without keep all records remain, else what keep returns, as in Drop.
func (w *Writer) rewrite(all []Segment, keep func(line []byte) ([]byte, error), holds func() error) error {
	last := len(all) - 1
	h, next := all[last-1].header, all[last].header
	h = header{Session: w.session, Epoch: h.Epoch, Segment: h.Segment, After: all[0].header.After, State: all[0].header.State,
		Upto: next.After.Seq, UptoState: next.State, Reduced: keep != nil, Packed: true}
	e, was := w.Compression.Framer(), all[last-1].name
	if was.packed() { // the rename replaces it, so the name stays
		e = e.In(was.codec)
	}
	if e.Codec != codec.Zstd {
		h.Codec = e.Codec
	}
	n := h.name()
	temp := writer.TempName(n.String())
	err := w.writePacked(temp, e, &h, all, keep)
	if err == nil {
		err = holds()
	}
	if err == nil {
		err = writer.Retry(func() error { return w.dir.Rename(temp, n.String()) })
	}
	if err == nil && was.packed() { // else the list could be durable and say of the old file what is in the new one
		err = w.dir.SyncDir(".")
	}
	if err != nil {
		_ = w.dir.Remove(temp)
		return w.failed(n, err)
	}
	return w.settle(h, all[:last], holds)
}

// writePacked writes the compressed segment to temp and syncs it, but not the folder. It
// sets h.Copied.
func (w *Writer) writePacked(temp string, e codec.Encoder, h *header, all []Segment, keep func(line []byte) ([]byte, error)) error {
	return writePacked(w.dir, temp, e, h, func(p *packer) error {
		var buf []byte
		for i, s := range all[:len(all)-1] {
			refs, whole, _, err := w.take(s, all[i+1], keep == nil)
			if err == nil && !whole {
				err = &writer.Error{Op: "rewrite segment", Path: filepath.Join(w.dir.Name(), s.name.String()), Class: writer.ClassCorrupt, Err: errors.New("it is damaged, and the only one")}
			}
			if err != nil {
				return err
			}
			err = (&Log{dir: w.dir}).Lines(refs, func(r *Ref, line []byte) error {
				if keep == nil || r.Entry {
					return p.line(line)
				}
				body, err := keep(line)
				if err != nil || body == nil {
					return err
				}
				buf = encodeRecord(buf[:0], r.Position, 0, r.Seq, Record{Body: body, Entry: true})
				return p.line(buf)
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// writePacked creates a compressed segment with the lines that fill adds, and syncs it, but
// not the folder. fill may change all of h but its Copied, which writePacked sets.
func writePacked(dir writer.FS, file string, e codec.Encoder, h *header, fill func(p *packer) error) (err error) {
	var f writer.File
	err = writer.Retry(func() (err error) {
		f, err = dir.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		return err
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	p := &packer{to: f, by: e, off: headSpace}
	if err = fill(p); err == nil {
		err = p.flush()
	}
	if err != nil {
		return err
	}
	h.Copied = p.n
	line, err := headers.Encode(h)
	if err != nil {
		return err
	}
	head := pair(e, line, headSpace)
	if len(head) > headSpace {
		return fmt.Errorf("a first line of %d bytes", len(line))
	}
	if err := p.write(head, 0); err != nil {
		return err
	}
	return f.Sync()
}

// settle takes the segments old off the list and removes their files. The segment by has
// their records and is durable.
func (w *Writer) settle(by header, old []Segment, holds func() error) error {
	if err := holds(); err != nil {
		return err
	}
	if err := w.relist(by, old); err != nil {
		return err
	}
	for _, s := range old {
		if s.name == by.name() { // the rename has replaced this file already
			continue
		}
		if err := w.dir.Remove(s.name.String()); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return w.failed(s.name, err)
		}
	}
	return nil
}

// relist replaces the list by one that has the header by in place of the segments old.
func (w *Writer) relist(by header, old []Segment) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	list := slices.DeleteFunc(slices.Clone(w.list), func(h header) bool {
		return h.name() == by.name() || slices.ContainsFunc(old, func(s Segment) bool { return s.name == h.name() })
	})
	at, _ := slices.BinarySearchFunc(list, by.name(), func(h header, n name) int { return h.name().compare(n) })
	list = slices.Insert(list, at, by)
	if err := writeList(w.dir, list); err != nil {
		return err
	}
	w.list = list
	return nil
}
