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

// A Log is the content of a journal: the segments of a folder, put together.
type Log struct {
	// Records are the records that count, in ascending order. Where numbers are
	// missing there is a Fault; above the base Lost is then set as well, unless only
	// entries are missing.
	Records []Ref
	// Faults are the places where bytes are no records, or records that do not count.
	Faults []Fault
	// Lost is the first durable record above the base that is damaged or missing. It is
	// 0 when there is none, or when only entries are lost. Later records must not be
	// applied.
	Lost uint64
	// Session is the session that the headers name; "" if there is no header.
	Session string
	// ListErr says why the list of segments is not reliable. It is nil for an intact
	// list, and when there is neither a list nor a segment.
	ListErr error

	dir     writer.FS
	base    uint64
	after   []join    // where segments continue and records are missing, in order
	heads   []Segment // the segments, in order
	named   []Named   // snapshots that notes name
	losses  []loss
	extent  Extent
	durable uint64 // the last record that a later line proves to be durable
	begin   uint64 // the first record that the State can be built from
}

// A Ref is the place of a record.
type Ref struct {
	Position
	Offset, Length int64 // in the segment's uncompressed content, in bytes
	Entry          bool  // the State does not rest on the record

	segment name
	synced  uint64 // offset up to which the segment was known to be durable
	state   uint64 // the newest record before this one that the State rests on
}

// Segment returns the name of the record's file.
func (r *Ref) Segment() string { return r.segment.String() }

// A loss is a range of durable records that are lost. state is the newest record up to
// last that the State rests on.
type loss struct{ first, last, state uint64 }

// A join is a place where records continue: at the begin of a segment, or behind records
// that are missing.
type join struct {
	segment name
	after   Position
	state   uint64 // the newest record up to after that the State rests on
}

// Kind is the kind of a Fault.
type Kind uint8

// The kinds of faults.
const (
	// Torn is the end of the journal that was never acknowledged, as a crash leaves
	// it. It is not applied. Damage in the very last batch looks the same.
	Torn Kind = iota
	// Settled was torn or given up, and the header of a later segment excludes it. It
	// stays in its file and is never applied.
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
	Seq            uint64 // the first record that is missing; 0 if only a first line is damaged that the list has
	Before         bool   // Segment is there, and the record before it is missing
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
// that a snapshot covers: damage up to it costs history only. With all set it reads
// every segment, otherwise those that may hold records above base. It takes no lock
// and changes nothing. During appends the last line may be unfinished, which is a
// Torn fault. Damage is no error: Read fails only when reading fails, or with
// ErrFutureVersion.
func Read(dir writer.FS, base uint64, all bool) (log *Log, err error) {
	for range tries {
		if log, err = readOnce(dir, base, all); !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	return log, err
}

// tries bounds how often a reader begins again, since a Pack or a Drop may interrupt each try.
const tries = 20

// readOnce is one try of Read. The error is fs.ErrNotExist if segments were rewritten meanwhile.
func readOnce(dir writer.FS, base uint64, all bool) (*Log, error) {
	c, err := look(dir)
	if err != nil {
		return nil, err
	}
	c.base = base
	// Reading begins with the last segment that continues from a record below base. Earlier
	// ones hold no record above base that counts, and no note that names a snapshot of base.
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

// look begins a chain: it finds the segments and reads the list and the first lines, but
// no records.
func look(dir writer.FS) (*chain, error) {
	list, listErr := readList(dir) // before the folder: a writer may add a segment in between
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
	// Only missing segments behind the newest one are added. Of an earlier one, join finds
	// the gap.
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

// replaced returns the index of the first segment that the compressed segment all[i] replaces
// and that a crash left in the folder; i if there is none.
func replaced(all []Segment, i int) int {
	from := i
	for all[i].ok && all[i].name.packed() && from > 0 && (!all[from-1].ok || all[from-1].header.After.Seq >= all[i].header.After.Seq) {
		from--
	}
	return from
}

// session returns the session of the first segment with a valid header, else that of the list.
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

// heads returns the segments with the headers that the list has. It reads the first line of
// those that are not in the list.
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
	lines := newLines(in, headerSize)
	defer lines.release()
	line, err := lines.next()
	if err != nil {
		return header{}, false, nil // the file is empty, or scan will report the error
	}
	h, err := decodeHeader(line)
	return h, err == nil && h.name() == n, nil
}

// Begin returns the first record that the State can be built from. That is 1, or, when
// earlier records were dropped, the record that names the snapshot of the whole State.
func (l *Log) Begin() uint64 { return l.begin }

// Noted returns the newest note's entry for the file with this SHA-256, in hex, whose record
// lies on the chain.
func (l *Log) Noted(sha256 string) (Named, bool) {
	for _, n := range slices.Backward(l.named) {
		if n.SHA256 == sha256 && l.Holds(n.Epoch, n.Seq) {
			return n, true
		}
	}
	return Named{}, false
}

// LostAbove returns what Lost would be with another base. The segments that were read must
// cover that base.
func (l *Log) LostAbove(base uint64) (lost uint64) {
	for _, x := range l.losses {
		if first := max(x.first, base+1, l.begin); first <= x.last && x.state >= first && (lost == 0 || first < lost) {
			lost = first
		}
	}
	return lost
}

// Last returns the number of the last record that counts, or the number before the first.
func (l *Log) Last() uint64 { return l.End().Seq }

// End returns the last record that counts, or the position before the first.
func (l *Log) End() Position {
	at, _ := l.position(maxNumber)
	return at
}

// Above returns the records above a number. If the number is not below the base and
// Lost is 0, only entries may be missing among them.
func (l *Log) Above(seq uint64) []Ref {
	i, found := l.find(seq)
	if found {
		i++
	}
	return l.Records[i:]
}

// find returns the index of a record in Records, or where it would be.
func (l *Log) find(seq uint64) (int, bool) {
	return slices.BinarySearchFunc(l.Records, seq, func(r Ref, seq uint64) int { return cmp.Compare(r.Seq, seq) })
}

// Holds reports whether a snapshot of record seq, made by the writer of epoch, lies on
// the chain. A writer that had lost its lease may have left one that does not.
func (l *Log) Holds(epoch, seq uint64) bool {
	at, _ := l.position(seq)
	if seq == 0 || at.Seq == seq {
		return seq == 0 || at.Epoch == epoch // a snapshot of nothing, or of this record
	}
	return !slices.ContainsFunc(l.after, func(j join) bool { return j.segment.epoch > epoch && j.after.Seq < seq })
}

// Batch returns the last record of the Append that wrote record seq.
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

// position returns the last known position up to seq, and the newest record up to that
// position that the State rests on.
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

// Lines calls fn with the line of each record, its line feed included. The line is valid
// until fn returns. If a record changed since Read, the error wraps ErrCorrupt; if it was
// dropped since, fs.ErrNotExist.
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

// errMoved means that a segment is gone, or was rewritten after it was read.
var errMoved = errors.New("it was rewritten meanwhile")

// moved finds the present places of records whose segment was rewritten.
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

// linesOf is Lines for records of one segment. done is the number of records that fn has
// processed.
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
	if !n.packed() { // a packed segment has to be read from its begin
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
			if n.packed() && ok && !slices.ContainsFunc(l.heads, func(known Segment) bool { return known.header == h }) {
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

// An Extent is how far a journal was read. The zero value is that of an empty folder.
type Extent struct {
	segment name
	size    int64 // in bytes, without the zeros at the end
}

// Extent returns how far the log was read.
func (l *Log) Extent() Extent { return l.extent }

// Whole returns the name of the newest segment that was read, and how many of its bytes count:
// what is behind them was never acknowledged, or is being written. The name is "" if the
// segment is compressed, which is never appended to.
func (l *Log) Whole() (segment string, size int64) {
	if l.extent.segment.packed() {
		return "", 0
	}
	segment, size = l.extent.segment.String(), l.extent.size
	for _, f := range l.Faults {
		if f.Kind == Torn && f.Segment == segment {
			size = min(size, f.Offset)
		}
	}
	return segment, size
}

// Grown reports whether the journal of a folder has a line or a segment beyond since. It reads
// one byte: the one behind the last line of the newest segment is zero or missing if nothing
// was appended. If the folder or the segment cannot be opened, Grown returns true, so that
// the caller reads the journal and gets the error.
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
	_, _ = f.ReadAt(next, since.size) // at the end of the file next stays zero
	return next[0] != 0
}
