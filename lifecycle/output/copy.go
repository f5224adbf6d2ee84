package output

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/lopen-dev/lopen/lifecycle/redact"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/codec"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

// Copy copies the output of all attempts from one folder into another one, which is empty.
// With a Redactor credentials are hidden, by the rules for new output: events stay JSON, and
// what is left out of a long file is said in its text. task returns what takes the place of
// the ID of a task then. The attempts may go on meanwhile, and a
// file that is removed is left out. Nothing is synced.
func Copy(from, to writer.FS, r *redact.Redactor, task func(id string) string) error {
	all, err := names(from)
	if err != nil {
		return writer.NewError("copy output", from.Name(), writer.NotCommitted, err)
	}
	for i := range all {
		c := copier{Writer{dir: to, redact: r, name: all[i].Name}, from, task}
		err := c.attempt(&all[i])
		if _, named := errors.AsType[*writer.Error](err); err != nil && !named {
			err = writer.NewError("copy output", to.Name()+"/"+all[i].Name, writer.NotCommitted, err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// A copier copies the files of one attempt.
type copier struct {
	Writer
	from writer.FS
	task func(id string) string
}

func (c *copier) attempt(k *Stored) error {
	if c.redact == nil {
		for _, name := range k.all {
			if err := c.asItIs(name); err != nil {
				return err
			}
		}
		return nil
	}
	if err := c.about(); err != nil {
		return err
	}
	for _, f := range k.Files {
		if err := c.hidden(f); err != nil {
			return err
		}
	}
	return nil
}

// asItIs copies a file.
func (c *copier) asItIs(name string) error {
	in, info, err := writer.OpenRegular(c.from, "copy output", name, os.O_RDONLY)
	if plain, by := codec.Cut(name); errors.Is(err, fs.ErrNotExist) && by == codec.None {
		for _, by = range codec.All[1:] { // it may have been compressed meanwhile
			name = plain + by.Suffix()
			if in, info, err = writer.OpenRegular(c.from, "copy output", name, os.O_RDONLY); !errors.Is(err, fs.ErrNotExist) {
				break
			}
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := create(c.dir, name)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, io.LimitReader(in, min(info.Size(), MaxFile)))
	if err = errors.Join(err, out.Close()); err != nil {
		return writer.NewError("copy output", c.dir.Name()+"/"+name, writer.NotCommitted, err)
	}
	return nil
}

// about copies the lines about the attempt. One that is no JSON says nothing, and is left out.
func (c *copier) about() error {
	data, err := writer.ReadFile(c.from, c.name+metaEnd, maxMeta)
	if errors.Is(err, fs.ErrNotExist) || writer.ClassOf(err) == writer.ClassInvalid {
		return nil
	}
	if err != nil {
		return err
	}
	var out []byte
	for line := range bytes.Lines(data) {
		if hidden, err := c.line(line); err == nil {
			out = append(append(out, hidden...), '\n')
		}
	}
	return writer.CreateFile(c.dir, c.name+metaEnd, out, filePerm)
}

// line returns a line about the attempt with credentials hidden.
func (c *copier) line(line []byte) ([]byte, error) {
	var of map[string]strictjson.Value
	if err := strictjson.Unmarshal(line, &of); err != nil {
		return nil, err
	}
	for name, value := range of {
		now, _, err := c.redact.JSON(value)
		if name == "task" {
			now, err = strictjson.Marshal(c.task(strictjson.NewReader(value).Text()))
		}
		if err != nil {
			return nil, err
		}
		of[name] = now
	}
	return strictjson.Marshal(of)
}

// hidden copies a file with its parts, with credentials hidden.
func (c *copier) hidden(f File) error {
	in := &Reader{dir: c.from, name: c.name + string(f)}
	err := in.open(in.name, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = in.closeFile() }()
	to, err := newCapped(c.dir, in.name)
	if err != nil {
		return err
	}
	c.meta = to.f // not nil, as of a Writer that is open
	s := &stream{w: &c.Writer, to: to, most: maxLine}
	if f == Raw {
		s.most, s.events = maxEvent, true
	}
	_, err = io.Copy(s, in)
	c.mu.Lock()
	s.end()
	c.mu.Unlock()
	return errors.Join(err, c.err, to.close())
}
