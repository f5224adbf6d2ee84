package journal

import (
	"bytes"
	"errors"
	"fmt"
	"iter"

	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/codec"
)

// Compose writes a journal of lines that a [Tail] gave, byte for byte, into a folder that has no
// journal. session is the one that its headers name, and begin the first record from which on
// all are there, as [Log.Begin] has it: below it only entries are. Everything is durable when
// Compose returns nil; after an error the folder has to be thrown away.
//
// A line that is damaged or does not follow the one before is refused with class corrupt. Compose
// holds one line in memory, and what the iteration holds.
func Compose(to writer.FS, session string, begin uint64, lines iter.Seq2[[]byte, error]) error {
	c := composer{to: to, session: session, begin: max(begin, 1)}
	next, stop := iter.Pull2(lines)
	defer stop()
	c.next = next
	err := c.all()
	if err == nil {
		err = writeList(to, c.list) // which makes the names of the segments durable as well
	}
	if _, ok := errors.AsType[*writer.Error](err); err == nil || ok {
		return err
	}
	return writer.NewError("compose journal", to.Name(), writer.NotCommitted, err)
}

// A composer is a Compose in progress.
type composer struct {
	to      writer.FS
	session string
	begin   uint64
	next    func() ([]byte, error, bool)
	list    []header
	last    Position // the last record that was written
	state   uint64   // the newest record up to last that the State rests on

	line []byte // the next one; nil at the end
	it   item   // what it is
}

func (c *composer) all() error {
	if c.begin > maxNumber {
		return c.refused("it begins with record %d", c.begin)
	}
	if err := c.read(); err != nil {
		return err
	}
	if c.begin > 1 {
		if err := c.segment(true); err != nil {
			return err
		}
	}
	for c.line != nil {
		if err := c.segment(false); err != nil {
			return err
		}
	}
	return nil
}

// read reads the next line.
func (c *composer) read() error {
	line, err, ok := c.next()
	if c.line = line; !ok || err != nil {
		c.line = nil
		return err
	}
	it, ok := decodeLine(line)
	switch {
	case !ok || it.note || it.Epoch == 0 || len(line) > maxLine || bytes.IndexByte(line, '\n') != len(line)-1: // what would not be read as this record
		return c.refused("what follows record %d is no record", c.last.Seq)
	case it.Seq < c.begin && (!it.Entry || it.Seq <= c.last.Seq), it.Seq >= c.begin && it.Seq != max(c.last.Seq+1, c.begin), it.Epoch < c.last.Epoch:
		return c.refused("record %d of epoch %d follows record %d of epoch %d", it.Seq, it.Epoch, c.last.Seq, c.last.Epoch)
	}
	c.it = it
	return nil
}

// segment writes the lines of one epoch, at most some more than SegmentSize bytes of them. With
// reduced it writes those below begin.
func (c *composer) segment(reduced bool) error {
	h := header{Session: c.session, Epoch: 1, Segment: 1, After: c.last, State: c.state, Reduced: reduced, Packed: true}
	if c.line != nil {
		h.Epoch = c.it.Epoch
	}
	if n := len(c.list); n > 0 && c.list[n-1].Epoch == h.Epoch {
		h.Segment = c.list[n-1].Segment + 1
	}
	err := writePacked(c.to, h.name().String(), codec.Options{}.Framer(), &h, func(out *packer) error {
		for c.line != nil && reduced == (c.it.Seq < c.begin) && (reduced || c.it.Epoch == h.Epoch) && out.n < SegmentSize {
			c.last, c.state = c.it.Position, c.it.Seq
			if c.it.Entry {
				c.state = c.it.state
			}
			if err := out.line(c.line); err != nil {
				return err
			}
			if err := c.read(); err != nil {
				return err
			}
		}
		if reduced {
			c.last = Position{Epoch: c.last.Epoch, Seq: c.begin - 1}
		}
		h.Upto, h.UptoState = c.last.Seq, c.state
		return nil
	})
	c.list = append(c.list, h)
	return err
}

func (c *composer) refused(format string, args ...any) error {
	return &writer.Error{Op: "compose journal", Path: c.to.Name(), Class: writer.ClassCorrupt, Err: fmt.Errorf(format, args...)}
}
