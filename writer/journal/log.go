package journal

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
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
	// ListErr is why the list of segments cannot be believed; nil where it can, or where
	// there is neither a list nor a segment.
	ListErr error

	dir     writer.FS
	base    uint64
	after   []join    // what is known of the chain but for its records, in order
	heads   []Segment // of the segments, in order
	named   []Named   // by notes
	losses  []loss
	extent  Extent
	durable uint64 // the last record that a later line knows to be on the disk
	begin   uint64 // the record that the State can be built from
}

// A Ref is where a record stands.
type Ref struct {
	Position
	Offset, Length int64 // in its segment, in bytes; of one that is compressed, in its content
	Entry          bool  // the State does not rest on it

	segment name
	synced  uint64
	state   uint64 // the newest record before it that the State rests on
}

// Segment is the name of the file that the record stands in.
func (r *Ref) Segment() string { return r.segment.String() }

// A loss are durable records that are not there.
type loss struct{ first, last, state uint64 }

// A join is where a segment continues what earlier ones hold, or from what it lacks.
type join struct {
	segment name
	after   Position
	state   uint64 // the newest record up to after that the State rests on
}

// Kind says what bytes that do not count are.
type Kind uint8

// The kinds of faults.
const (
	// Torn is an end that was never acknowledged, as a crash leaves it. It is
	// not applied. Damage in the very last batch looks the same.
	Torn Kind = iota
	// Settled was torn, or was given up, and a later segment says from where
	// it continues. It stays in its file and is never applied.
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
	Seq            uint64 // the first record that is missing for it; 0 for none: a first line that the list has
	Before         bool   // it is not the segment that is missing, but the record before it
}

func (f Fault) String() string {
	switch {
	case f.Seq == 0:
		return f.Segment + ": its first line is damaged; the list of segments has it"
	case f.Before:
		return fmt.Sprintf("%s: what it goes on from is missing (record %d)", f.Segment, f.Seq)
	case f.Length == 0 && f.Offset > 0:
		return fmt.Sprintf("%s: lines are missing at %d (record %d)", f.Segment, f.Offset, f.Seq)
	case f.Length == 0:
		return fmt.Sprintf("%s is missing or empty (record %d)", f.Segment, f.Seq)
	}
	return fmt.Sprintf("%s: %d bytes at %d are %s (record %d)", f.Segment, f.Length, f.Offset, f.Kind, f.Seq)
}

// Read puts the segments of a folder together. base is the number of the record
// that a snapshot covers: damage up to it costs history only. With all set every
// segment is read, otherwise those that records above base may stand in. It takes
// no lock and changes nothing: during appends the last line may be
// unfinished, which is a Torn fault. The errors are those of reading, and
// ErrFutureVersion.
func Read(dir writer.FS, base uint64, all bool) (log *Log, err error) {
	for range tries {
		if log, err = readOnce(dir, base, all); !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	return log, err
}

// tries is how often a reader begins anew, as each of them may meet another Pack or Drop.
const tries = 20

// readOnce is Read. The error is fs.ErrNotExist where segments were rewritten meanwhile.
func readOnce(dir writer.FS, base uint64, all bool) (*Log, error) {
	c, err := look(dir)
	if err != nil {
		return nil, err
	}
	c.base = base
	// No segment before the last one that continues from a record below base holds a record
	// above base that counts, or a note that names a snapshot of base.
	from := len(c.heads) - 1
	for from > 0 && (all || !c.heads[from].ok || c.heads[from].header.Reduced || c.heads[from].header.After.Seq >= base) {
		from--
	}
	c.all = from <= 0
	for i := max(from, 0); i < len(c.heads); i++ {
		if err := c.read(i); err != nil {
			return nil, err
		}
	}
	c.end()
	return c.Log, nil
}

// look begins a chain with what is known of the segments before they are read.
func look(dir writer.FS) (*chain, error) {
	list, listErr := readList(dir) // before the folder, to which a writer may append
	names, err := segments(dir)
	if err != nil {
		return nil, err
	}
	c := &chain{Log: &Log{dir: dir, begin: 1}}
	if c.Session, err = session(dir, names, list); err != nil {
		return nil, err
	}
	if all := list.of(c.Session); !all && listErr == nil {
		listErr = badList(dir, errors.New("it names segments of another session"))
	}
	if c.heads, err = heads(dir, names, list, c.Session); err != nil {
		return nil, err
	}
	for _, n := range names {
		delete(list, n)
	}
	c.gone = slices.SortedFunc(maps.Keys(list), name.compare)
	// Of a segment that is missing before the newest one, that one tells.
	for _, n := range c.gone {
		h := list[n]
		h.gone = true
		if len(names) == 0 || n.compare(names[len(names)-1].plain()) > 0 {
			c.heads = append(c.heads, h)
		}
	}
	for _, h := range slices.AppendSeq(slices.Clone(c.heads), maps.Values(list)) {
		if h.Reduced() {
			c.begin = max(c.begin, h.header.Upto+1)
		}
	}
	if len(c.heads) > 0 {
		c.ListErr = listErr
	}
	for i := len(c.heads) - 1; i > 0; i-- {
		from := replaced(c.heads, i)
		left := slices.DeleteFunc(c.heads[from:i], func(h Segment) bool { return h.ok })
		c.heads = slices.Concat(c.heads[:from], left, c.heads[i:])
		i = from + len(left)
	}
	return c, nil
}

// replaced is the first of what a crash left of the segments that a compressed one, that of
// a place, was made of.
func replaced(all []Segment, i int) int {
	from := i
	for all[i].ok && all[i].name.packed && from > 0 && (!all[from-1].ok || all[from-1].header.After.Seq >= all[i].header.After.Seq) {
		from--
	}
	return from
}

// session is that of the first segment that has a header, or of the list.
func session(dir writer.FS, names []name, list listed) (string, error) {
	for _, n := range names {
		if h, ok, err := readHeader(dir, n); ok || err != nil {
			return h.Session, err
		}
	}
	for _, n := range slices.SortedFunc(maps.Keys(list), name.compare) {
		return list[n].header.Session, nil
	}
	return "", nil
}

// heads are what the list has of segments, and what their own first lines say of others.
func heads(dir writer.FS, names []name, list listed, session string) (all []Segment, err error) {
	for _, n := range names {
		h, ok := list[n]
		if !ok {
			own, ok, err := readHeader(dir, n)
			if err != nil {
				return nil, err
			}
			if h.name = n; ok && own.Session == session {
				h.header, h.ok = own, true
			}
		}
		all = append(all, h)
	}
	return all, nil
}

func readHeader(dir writer.FS, n name) (header, bool, error) {
	in, _, f, err := source(dir, n)
	if err != nil {
		return header{}, false, err
	}
	defer f.Close()
	line, err := newLines(in, headerSize).next()
	if err != nil {
		return header{}, false, nil // empty, or the scan will tell
	}
	h, err := decodeHeader(line)
	return h, err == nil && h.name() == n, nil
}

// Begin is the first record that the State can be built from: 1, or where records
// before it were dropped the one that names the snapshot of the whole State.
func (l *Log) Begin() uint64 { return l.begin }

// Noted is what a note says of the file with a SHA-256, in hex, if it is of a record on the
// chain.
func (l *Log) Noted(sha256 string) (Named, bool) {
	for _, n := range slices.Backward(l.named) {
		if n.SHA256 == sha256 && l.Holds(n.Epoch, n.Seq) {
			return n, true
		}
	}
	return Named{}, false
}

// LostAbove is what Lost would be with another base, which what was read reaches down to.
func (l *Log) LostAbove(base uint64) (lost uint64) {
	for _, x := range l.losses {
		if first := max(x.first, base+1, l.begin); first <= x.last && x.state >= first && (lost == 0 || first < lost) {
			lost = first
		}
	}
	return lost
}

// Last is the number of the last record that counts, or of the one before the first.
func (l *Log) Last() uint64 { return l.End().Seq }

// End is the last record that counts, or the position before the first.
func (l *Log) End() Position {
	at, _ := l.position(maxNumber)
	return at
}

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
	at, _ := l.position(seq)
	if seq == 0 || at.Seq == seq {
		return seq == 0 || at.Epoch == epoch // of nothing, or of the record
	}
	return !slices.ContainsFunc(l.after, func(j join) bool { return j.segment.epoch > epoch && j.after.Seq < seq })
}

// Batch is the last record of the Append that a record came with.
func (l *Log) Batch(seq uint64) uint64 {
	refs := l.Above(seq - 1)
	for i := range refs {
		if r := &refs[i]; r.segment != refs[0].segment || r.Epoch != refs[0].Epoch || r.synced != refs[0].synced {
			break
		}
		seq = max(seq, refs[i].Seq)
	}
	return seq
}

// position names the last record up to a number that is known to the chain, and the
// newest one up to that which the State rests on.
func (l *Log) position(seq uint64) (p Position, state uint64) {
	for _, j := range l.after {
		if j.after.Seq <= seq && j.after.Seq >= p.Seq {
			p, state = j.after, j.state
		}
	}
	if i := len(l.Records) - len(l.Above(seq)) - 1; i >= 0 && l.Records[i].Seq >= p.Seq {
		r := &l.Records[i]
		if p, state = r.Position, r.Seq; r.Entry {
			state = r.state
		}
	}
	return p, state
}

// Lines calls fn with the line of each record, its end included. The line is fn's
// until it returns. A record that is no longer there as it was is an error that
// wraps ErrCorrupt; one that was dropped meanwhile, fs.ErrNotExist.
func (l *Log) Lines(refs []Ref, fn func(r *Ref, line []byte) error) error {
	for len(refs) > 0 {
		end := 1
		for end < len(refs) && refs[end].segment == refs[0].segment && refs[end].Offset > refs[end-1].Offset {
			end++
		}
		done, err := l.linesOf(refs[0].segment, refs[:end], fn)
		if refs = refs[done:]; errors.Is(err, errMoved) {
			refs, err = l.moved(refs)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// errMoved is of a segment that is gone, or has another content than when it was read.
var errMoved = errors.New("it was rewritten meanwhile")

// moved finds records in the segments that they are in now.
func (l *Log) moved(refs []Ref) ([]Ref, error) {
	now, err := Read(l.dir, refs[0].Seq-1, false)
	if err != nil {
		return nil, err
	}
	var all []Ref
	for i := range refs {
		j, ok := now.find(refs[i].Seq)
		if !ok || now.Records[j].CRC != refs[i].CRC {
			return nil, writer.NewError("read journal", filepath.Join(l.dir.Name(), refs[i].Segment()), writer.NotCommitted, fmt.Errorf("record %d: %w", refs[i].Seq, fs.ErrNotExist))
		}
		all = append(all, now.Records[j])
	}
	return all, nil
}

// linesOf is Lines of records of one segment, and says of how many.
func (l *Log) linesOf(n name, refs []Ref, fn func(*Ref, []byte) error) (done int, err error) {
	in, size, f, err := source(l.dir, n)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, errMoved
	}
	if err != nil {
		return 0, err
	}
	defer f.Close()
	at := int64(0)
	if !n.packed { // or what is before is read as well
		at = refs[0].Offset
		in = io.NewSectionReader(f, at, maxNumber)
	}
	r := ahead(in, size-at+1)
	defer giveBack(r)
	var line []byte
	for i := range refs {
		ref := &refs[i]
		_, err := io.CopyN(io.Discard, r, ref.Offset-at)
		if err == nil {
			line = slices.Grow(line[:0], int(ref.Length))[:ref.Length]
			_, err = io.ReadFull(r, line)
		}
		if err == nil && sealed(line) != ref.CRC {
			err = errChanged
		}
		if err != nil {
			h, ok, _ := readHeader(l.dir, n)
			if n.packed && ok && !slices.ContainsFunc(l.heads, func(known Segment) bool { return known.header == h }) {
				return i, errMoved
			}
			return i, &writer.Error{Op: "read journal", Path: filepath.Join(l.dir.Name(), n.String()), Class: writer.ClassCorrupt, Err: fmt.Errorf("record %d: %w", ref.Seq, err)}
		}
		at = ref.Offset + ref.Length
		if err := fn(ref, line); err != nil {
			return i, err
		}
	}
	return len(refs), nil
}

var errChanged = errors.New("it changed while it was read")

// An Extent is how far a journal goes. The zero value is that of none.
type Extent struct {
	segment name
	size    int64
}

// Extent is how far the log was read.
func (l *Log) Extent() Extent { return l.extent }

// Grown says whether the journal of a folder goes further than it did. It reads one byte of
// the newest segment: whether zeros still follow what was read. What cannot be read has
// grown: reading it tells.
func Grown(dir writer.FS, since Extent) bool {
	names, err := segments(dir)
	if err != nil || len(names) == 0 {
		return err != nil || since != Extent{}
	}
	newest := names[len(names)-1]
	if newest != since.segment {
		return true
	}
	f, _, err := writer.OpenRegular(dir, "read journal", newest.String(), os.O_RDONLY)
	if err != nil {
		return true
	}
	defer f.Close()
	next := []byte{0}
	_, _ = f.ReadAt(next, since.size) // of its end nothing is read
	return next[0] != 0
}
