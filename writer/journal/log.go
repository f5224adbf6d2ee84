package journal

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/lopen-dev/lopen/writer"
)

// A Log is what the segments of a folder hold, put together.
type Log struct {
	// Records are those that count, in ascending order. There is a gap only
	// where a Fault tells of one, and above the base only when Lost is set.
	Records []Ref
	// Faults are the places where bytes are no records, or none that count.
	Faults []Fault
	// Lost is the first durable record above the base that is damaged or
	// missing; 0 when there is none. What follows it must not be applied.
	Lost uint64
	// Session is what the headers name; "" without one.
	Session string

	dir   writer.FS
	base  uint64
	after []join // of the headers, in order
	names []name
}

// A Ref is where a record stands.
type Ref struct {
	Position
	Offset, Length int64 // in its segment, in bytes

	segment name
	synced  uint64
}

// Segment is the name of the file that the record stands in.
func (r *Ref) Segment() string { return r.segment.String() }

// A join is where a segment goes on from what earlier ones hold.
type join struct {
	segment name
	after   Position
}

// Kind says what bytes that do not count are.
type Kind uint8

// The kinds of faults.
const (
	// Torn is an end that was never acknowledged, as a crash leaves it. It is
	// not applied. Damage in the very last batch looks the same.
	Torn Kind = iota
	// Settled was torn, or was given up, and a later segment says from where
	// it goes on. It stays in its file and is never applied.
	Settled
	// Damaged was durable once.
	Damaged
)

func (k Kind) String() string { return [...]string{"torn", "settled", "damaged"}[k] }

// A Fault is a place in a segment.
type Fault struct {
	Kind           Kind
	Segment        string
	Offset, Length int64  // in bytes
	Seq            uint64 // the first record that is missing for it
}

func (f Fault) String() string {
	return fmt.Sprintf("%s: %d bytes at %d are %s (record %d)", f.Segment, f.Length, f.Offset, f.Kind, f.Seq)
}

// Read puts the segments of a folder together. base is the number of the record
// that a snapshot covers: damage up to it costs history only. With all set every
// segment is read, otherwise those that records above base may stand in. It takes
// no lock and changes nothing: beside a live writer the last line may be
// unfinished, which is a Torn fault. The errors are those of reading, and
// ErrFutureVersion.
func Read(dir writer.FS, base uint64, all bool) (*Log, error) {
	names, err := segments(dir)
	if err != nil {
		return nil, err
	}
	c := &chain{Log: &Log{dir: dir, base: base, names: names}}
	from := 0
	if !all {
		if from, err = start(dir, names, base); err != nil {
			return nil, err
		}
	}
	var read []*segment
	for _, n := range names[from:] {
		s, err := scan(dir, n)
		if err != nil {
			return nil, err
		}
		read = append(read, s)
	}
	c.build(read)
	return c.Log, nil
}

// start is the last segment that goes on from a record at or below base: no
// earlier one holds a record above base that counts.
func start(dir writer.FS, names []name, base uint64) (int, error) {
	session := "" // of the first segment that has a header
	for _, n := range names {
		h, ok, err := readHeader(dir, n)
		if err != nil {
			return 0, err
		}
		if ok {
			session = h.Session
			break
		}
	}
	for i := len(names) - 1; i > 0; i-- {
		h, ok, err := readHeader(dir, names[i])
		if err != nil {
			return 0, err
		}
		if ok && h.After.Seq <= base && h.Session == session {
			return i, nil
		}
	}
	return 0, nil
}

func readHeader(dir writer.FS, n name) (header, bool, error) {
	f, _, err := writer.OpenRegular(dir, "read journal", n.String(), os.O_RDONLY)
	if err != nil {
		return header{}, false, err
	}
	defer f.Close()
	line, err := newLines(f, headerSize).next()
	if err != nil {
		return header{}, false, nil // empty, or the scan will tell
	}
	h, err := decodeHeader(line)
	return h, err == nil && h.Epoch == n.epoch && h.Segment == n.n, nil
}

// Empty says that the folder has no segment at all.
func (l *Log) Empty() bool { return len(l.names) == 0 }

// LostBegin is the number of the first record that is there, where earlier ones must
// have been in segments that are not; 0 where nothing is missing at the begin. A journal
// that began with a State of before there were journals goes on from a record of epoch
// 0. It is of use after a Read of all segments.
func (l *Log) LostBegin() uint64 {
	if len(l.Records) == 0 || l.Records[0].Seq <= 1 {
		return 0
	}
	if l.names[0] == l.Records[0].segment && len(l.after) > 0 && l.after[0].after.Epoch == 0 {
		return 0
	}
	return l.Records[0].Seq
}

// Last is the number of the last record that counts, or what it goes on from.
func (l *Log) Last() uint64 { return l.position(^uint64(0)).Seq }

// Above are the records above a number. They are without a gap when the number
// is the base or above it and Lost is 0.
func (l *Log) Above(seq uint64) []Ref {
	i, found := l.find(seq)
	if found {
		i++
	}
	return l.Records[i:]
}

// find is the place of a record, or where it would be.
func (l *Log) find(seq uint64) (int, bool) {
	return slices.BinarySearchFunc(l.Records, seq, func(r Ref, seq uint64) int { return cmp.Compare(r.Seq, seq) })
}

// Holds says whether a snapshot that the writer of an epoch made of a record lies
// on the chain. One that does not comes from a writer that had lost its lock.
func (l *Log) Holds(epoch, seq uint64) bool {
	if seq == 0 {
		return true // of nothing
	}
	if i, ok := l.find(seq); ok {
		return l.Records[i].Epoch == epoch
	}
	for _, j := range l.after {
		if j.segment.epoch > epoch && j.after.Seq < seq {
			return false
		}
	}
	at := l.position(seq)
	return at.Seq != seq || at.Epoch == epoch
}

// position names the last record up to a number that is known to the chain.
func (l *Log) position(seq uint64) (p Position) {
	for _, j := range l.after {
		if j.after.Seq <= seq && j.after.Seq >= p.Seq {
			p = j.after
		}
	}
	if i := len(l.Records) - len(l.Above(seq)) - 1; i >= 0 && l.Records[i].Seq >= p.Seq {
		p = l.Records[i].Position
	}
	return p
}

// Lines calls fn with the line of each record, its end included. The line is fn's
// until it returns. A record that is no longer there as it was is an error that
// wraps ErrCorrupt; a segment that was removed meanwhile, fs.ErrNotExist.
func (l *Log) Lines(refs []Ref, fn func(r *Ref, line []byte) error) error {
	for len(refs) > 0 {
		n, end := refs[0].segment, 1
		for end < len(refs) && refs[end].segment == n && refs[end].Offset > refs[end-1].Offset {
			end++
		}
		if err := l.linesOf(n, refs[:end], fn); err != nil {
			return err
		}
		refs = refs[end:]
	}
	return nil
}

func (l *Log) linesOf(n name, refs []Ref, fn func(*Ref, []byte) error) error {
	f, info, err := writer.OpenRegular(l.dir, "read journal", n.String(), os.O_RDONLY)
	if err != nil {
		return err
	}
	defer f.Close()
	full := filepath.Join(l.dir.Name(), n.String())
	in := newLines(f, info.Size()-refs[0].Offset+1)
	if file, ok := f.(io.Seeker); ok { // or what is before is read as well
		if in.end, err = file.Seek(refs[0].Offset, io.SeekStart); err != nil {
			return writer.NewError("read journal", full, writer.NotCommitted, err)
		}
	}
	for i := 0; i < len(refs); {
		line, err := in.next()
		if err != nil {
			return &writer.Error{Op: "read journal", Path: full, Class: writer.ClassCorrupt, Err: fmt.Errorf("record %d: %w", refs[i].Seq, err)}
		}
		if in.start < refs[i].Offset {
			continue
		}
		if in.start != refs[i].Offset || sealed(line) != refs[i].CRC {
			return &writer.Error{Op: "read journal", Path: full, Class: writer.ClassCorrupt, Err: fmt.Errorf("record %d: %w", refs[i].Seq, errChanged)}
		}
		if err := fn(&refs[i], line); err != nil {
			return err
		}
		i++
	}
	return nil
}

var errChanged = errors.New("it changed while it was read")
