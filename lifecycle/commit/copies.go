package commit

import (
	"bufio"
	"cmp"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/lopen-dev/lopen/lifecycle/folder"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer"
)

// copyFiles are the readable copies of the messages and of the transcript, one JSON object a
// line. They have only what is in the session's own log: what a fork inherited is in the
// copies of the other session. Nothing in this project reads them. A session without messages
// or events has no such file.
var copyFiles = [2]string{"messages.jsonl", "transcript.jsonl"}

// Objects wait in memory to be copied. Above manyUncopied bytes a publication is due at once.
// Above maxUncopied bytes they are dropped, and the next copy is made from the log.
const (
	manyUncopied = 8 << 20
	maxUncopied  = 16 << 20
)

// maxBuffer bounds the buffer for reading or writing a copy, in bytes.
const maxBuffer = 64 << 10

// A copied is one of these files. The writer goroutine owns it. A publication has its own
// copy of it; when the publication has ended, its size and synced are taken over.
type copied struct {
	name    string
	events  bool
	waiting [][]byte // objects that the file lacks
	held    int64    // size of waiting, in bytes
	known   bool     // the file has all but waiting; else it has to be compared with the log
	synced  bool     // the file is durable
	size    int64    // size of the file, in bytes
}

// add adds an object that was appended to the log.
func (c *copied) add(body []byte) {
	if c.synced = false; !c.known {
		return
	}
	if c.waiting, c.held = append(c.waiting, body), c.held+int64(len(body)); c.held > maxUncopied {
		c.forget()
	}
}

// forget makes the next publication compare the file with the log.
func (c *copied) forget() { c.waiting, c.held, c.known = nil, 0, false }

// due reports whether the file has to be written for a log with count objects. With sync it
// has to be durable as well.
func (c *copied) due(count uint64, sync bool) bool {
	return count > 0 && (!c.known || len(c.waiting) > 0 || sync && !c.synced)
}

// update writes what the file lacks of the log up to a Mark, durably if sync is set. It
// appends. A file that differs from the log is given to quarantine, which renames it.
func (c *copied) update(dir writer.FS, at session.Mark, sync bool, quarantine func(name string, why error) error) (err error) {
	first := 0
	if info, err := dir.Lstat(c.name); err != nil && c.size > 0 || err == nil && info.Size() != c.size {
		c.forget() // another process changed it
	}
	if !c.known {
		var whole bool
		if first, c.size, whole, err = c.compare(dir, at); err == nil && !whole {
			first, c.size, err = 0, 0, quarantine(c.name, errNotOurs)
		}
		if err != nil {
			return err
		}
	}
	f, _, err := writer.OpenRegular(dir, "write", c.name, os.O_WRONLY|os.O_CREATE)
	if err != nil {
		return err
	}
	w := io.NewOffsetWriter(f, c.size)
	size := int64(maxBuffer)
	if c.known {
		size = min(size, c.held+int64(len(c.waiting)))
	}
	out := bufio.NewWriterSize(w, int(size))
	err = errors.Join(c.writeFrom(first, out, dir, at), out.Flush())
	if c.synced = sync; err == nil && sync {
		err = f.Sync()
	}
	written, _ := w.Seek(0, io.SeekCurrent)
	c.size += written
	if err = errors.Join(err, f.Close()); err != nil {
		return writer.NewError("write", c.path(dir), writer.NotCommitted, err)
	}
	return nil
}

// writeFrom writes what the file lacks: the waiting objects, or, after a comparison with the
// log, the lines of the log from first on.
func (c *copied) writeFrom(first int, out *bufio.Writer, dir writer.FS, at session.Mark) (err error) {
	if c.known {
		for _, body := range c.waiting {
			_, _ = out.Write(body)
			err = out.WriteByte('\n') // an error is sticky
		}
		return err
	}
	return c.own(dir, at, func(i int, line []byte) (err error) {
		if i >= first {
			_, err = out.Write(line)
		}
		return err
	})
}

// own calls fn with each line that the file should have.
func (c *copied) own(dir writer.FS, at session.Mark, fn func(i int, line []byte) error) error {
	i := 0
	for a, err := range folder.ReadAppended(dir, at, c.events) {
		switch {
		case errors.Is(err, folder.ErrDamaged), err == nil && a.At.Seq == 0:
			continue // damage, which Verify reports, or an inherited object
		case err == nil:
			err = fn(i, append(a.Object, '\n'))
			i++
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// compare returns how many first lines the file and the log have in common, and their size in
// bytes. whole reports that the file has nothing else but perhaps a part of the next line.
func (c *copied) compare(dir writer.FS, at session.Mark) (lines int, size int64, whole bool, err error) {
	f, info, err := writer.OpenRegular(dir, "read", c.name, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, 0, true, nil
	}
	if writer.ClassOf(err) == writer.ClassInvalid {
		return 0, 0, false, nil // no regular file
	}
	if err != nil {
		return 0, 0, false, err
	}
	defer f.Close()
	if writer.Shared(info) {
		return 0, 0, false, nil // writing to it would change another file as well
	}
	in := bufio.NewReaderSize(f, int(min(maxBuffer, info.Size()+1)))
	whole = true
	var buf []byte
	err = c.own(dir, at, func(_ int, line []byte) error {
		buf = append(buf[:0], line...)
		n, err := io.ReadFull(in, buf)
		switch {
		case string(buf[:n]) != string(line[:n]):
			whole = false
			return errCompared
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return errCompared
		case err != nil:
			return writer.NewError("read", c.path(dir), writer.NotCommitted, err)
		}
		lines, size = lines+1, size+int64(n)
		return nil
	})
	if errors.Is(err, errCompared) {
		err = nil
	} else if err == nil {
		_, end := in.ReadByte()
		whole = errors.Is(end, io.EOF)
	}
	return lines, size, whole, err
}

func (c *copied) path(dir writer.FS) string { return filepath.Join(dir.Name(), c.name) }

// quarantine moves a readable file that differs from the log to corrupted/, so that an edit is not
// lost. It may be called during commits.
func (c *Committer) quarantine(name string, why error) error {
	log := c.opts.Logger.Warn().AnErr("reason", why)
	to, err := c.opts.Place.SetAside(c.dir, name, why)
	if errors.Is(err, fs.ErrNotExist) {
		log.Msg(name + " is made again from the journal")
		return nil
	}
	if err != nil {
		return err
	}
	log.Str("path", to).Msg(name + " is not what the journal has: it is set aside and made again")
	return nil
}

var errNotOurs = errors.New("it is not what the log has, and is set aside first")

// errCompared ends a comparison before the log does.
var errCompared = errors.New("compared")

// CompareCopies compares the readable copies of a session's messages and events with its log
// up to a Mark. It calls fn with each copy that has anything else, or cannot be read, and with
// the reason; the next publication quarantines such a copy. A copy that only lacks lines is
// fine.
func CompareCopies(dir writer.FS, at session.Mark, fn func(name string, why error)) {
	for i, name := range copyFiles {
		c := copied{name: name, events: i == 1}
		if _, _, whole, err := c.compare(dir, at); err != nil || !whole {
			fn(name, cmp.Or(err, errNotOurs))
		}
	}
}
