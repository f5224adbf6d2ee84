package journal

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/codec"
	"github.com/lopen-dev/lopen/writer/envelope"
)

// A Rewriting says what [Rewrite] makes of a journal.
type Rewriting struct {
	Session string // that the result names; "" for that of the journal
	Upto    uint64 // the last record of the result
	// Entries leaves all but the entries out, and what is damaged. The result is as if the
	// others had been dropped: nobody can resume it.
	Entries bool
	// Body returns the new body of a record, or nil if it stays. line is the record's line,
	// body the part of it that becomes another. Both are valid until Body returns.
	Body func(r *Ref, line, body []byte) ([]byte, error)
	// Named returns the snapshots that the result vouches for, given those that the notes
	// of the journal name. Without it the result has no note.
	Named func(all []Named) ([]Named, error)
}

// Rewrite writes the records of the journal in one folder anew into another one, which has no
// journal. It takes no lock, and holds one segment's records and one line in memory. The
// records keep their numbers, their epochs, and what was appended together; the result has a
// compressed segment for each one with records. Everything is durable when Rewrite returns
// nil. After an error the folder has to be thrown away.
//
// The error has class corrupt if a record is damaged. It wraps fs.ErrNotExist if the writer of
// the journal rewrote segments meanwhile; then the caller begins again.
func Rewrite(from, to writer.FS, r Rewriting) error {
	w := &rewriter{Rewriting: r, from: from, to: to}
	var named []Named
	for part, err := range Parts(from) {
		if err == nil {
			err = w.part(&part)
		}
		if err != nil {
			return w.failed(from, err)
		}
		named = part.holding(w.Upto)
	}
	var err error
	if w.last.Seq < w.Upto && !w.Entries {
		err = w.corrupt(fmt.Sprintf("it ends at record %d, before record %d", w.last.Seq, w.Upto))
	}
	if err == nil && w.Named != nil {
		err = w.note(named)
	}
	if err == nil {
		err = writeList(to, w.list) // which makes the names of the segments durable as well
	}
	return w.failed(to, err)
}

// failed returns err as an error about a folder, unless it is one about a file already.
func (w *rewriter) failed(dir writer.FS, err error) error {
	if _, ok := errors.AsType[*writer.Error](err); err == nil || ok {
		return err
	}
	return writer.NewError("rewrite journal", dir.Name(), writer.NotCommitted, err)
}

// holding returns the snapshots of records up to upto that notes name, the newest name of each.
func (l *Log) holding(upto uint64) (all []Named) {
	newest := map[string]int{}
	for _, n := range l.named {
		i, known := newest[n.File]
		switch {
		case n.Seq > upto:
		case known:
			all[i] = n
		default:
			newest[n.File] = len(all)
			all = append(all, n)
		}
	}
	return all
}

// A rewriter is a Rewriting in progress.
type rewriter struct {
	Rewriting
	from, to writer.FS
	list     []header
	last     Position // of the result
	state    uint64   // the newest record up to last that the State rests on
	buf      []byte
}

// part writes a segment with the records of a Part.
func (w *rewriter) part(p *Part) error {
	if err := w.damage(p); err != nil {
		return err
	}
	refs := p.Records[:len(p.Records)-len(p.Above(w.Upto))]
	if len(refs) == 0 && !p.head.Reduced || w.last.Seq >= w.Upto {
		return nil
	}
	h := w.header(p, refs)
	if n := len(w.list); h.Reduced && n > 0 && !w.list[n-1].Reduced {
		return fs.ErrNotExist // the records before were dropped after this had read them
	}
	err := writePacked(w.to, h.name().String(), codec.Options{}.Framer(), &h, func(out *packer) error {
		err := w.records(p, refs, out)
		if h.Reduced && w.last.Seq < h.Upto {
			w.last = Position{Epoch: w.last.Epoch, Seq: h.Upto} // this record is left out
		}
		h.UptoState = w.state
		return err
	})
	w.list = append(w.list, h)
	return err
}

// damage returns an error if records of a Part are damaged that the result should have.
func (w *rewriter) damage(p *Part) error {
	for _, f := range p.Faults {
		if f.Kind == Damaged && f.Seq > 0 && f.Seq <= w.Upto && !w.Entries {
			return w.corrupt(f.String())
		}
	}
	return nil
}

// header returns the header of the segment for the records of a Part. Its UptoState follows.
func (w *rewriter) header(p *Part, refs []Ref) header {
	if after := p.head.After; w.last.CRC == "" && w.last.Seq == after.Seq { // the record that was left out
		w.last, w.state = Position{Epoch: after.Epoch, Seq: after.Seq}, p.head.State
	}
	h := header{Session: w.Session, Epoch: p.head.Epoch, Segment: p.head.Segment, After: w.last, State: w.state, Reduced: p.head.Reduced || w.Entries, Packed: true}
	if h.Session == "" {
		h.Session = p.Session
	}
	h.Upto = min(p.head.Upto, w.Upto)
	if n := len(refs); !p.head.Reduced {
		h.Upto = refs[n-1].Seq
	}
	return h
}

// records writes the records of a segment.
func (w *rewriter) records(p *Part, refs []Ref, out *packer) error {
	return p.Lines(refs, func(r *Ref, line []byte) error {
		if w.Entries && !r.Entry {
			return nil
		}
		if r.Seq != w.last.Seq+1 && !p.head.Reduced && !w.Entries {
			return w.corrupt(fmt.Sprintf("record %d comes after record %d", r.Seq, w.last.Seq))
		}
		body, err := w.Body(r, line, bodyOf(line))
		if err != nil {
			return err
		}
		if len(body) > MaxBody {
			return &writer.Error{Op: "rewrite journal", Path: w.from.Name(), Class: writer.ClassInvalid, Err: fmt.Errorf("record %d becomes %d bytes, more than %d", r.Seq, len(body), MaxBody)}
		}
		if body != nil {
			// The durable offset stays: records with the same one were appended together.
			w.buf = encodeRecord(w.buf[:0], r.Position, int64(r.synced), r.state, Record{Body: body, Entry: r.Entry})
			line = w.buf
		}
		w.last, w.state = Position{Epoch: r.Epoch, Seq: r.Seq, CRC: checksum(line)}, r.Seq
		if r.Entry {
			w.state = r.state
		}
		return out.line(line)
	})
}

// note writes a segment with notes alone.
func (w *rewriter) note(named []Named) error {
	named, err := w.Named(named)
	if err != nil || len(named) == 0 || len(w.list) == 0 {
		return err
	}
	h := w.list[len(w.list)-1]
	h = header{Session: h.Session, Epoch: h.Epoch, Segment: h.Segment + 1, After: w.last, State: w.state, Upto: w.last.Seq, UptoState: w.state, Packed: true}
	err = writePacked(w.to, h.name().String(), codec.Options{}.Framer(), &h, func(out *packer) error {
		for some := range slices.Chunk(named, maxNoted) {
			line, err := encodeNote(w.last, 0, w.state, some)
			if err == nil {
				err = out.line(line)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	w.list = append(w.list, h)
	return err
}

// maxNoted bounds the snapshots that one line names.
const maxNoted = 1000

// bodyOf returns the body of a record's line, which is intact: what follows the four members
// of the frame, without the seal.
func bodyOf(line []byte) []byte {
	body, _ := envelope.CRC.Open(line)
	for range 4 {
		body = body[bytes.IndexByte(body, ',')+1:]
	}
	return body
}

func (w *rewriter) corrupt(what string) error {
	return &writer.Error{Op: "rewrite journal", Path: filepath.Clean(w.from.Name()), Class: writer.ClassCorrupt, Err: errors.New(what)}
}
