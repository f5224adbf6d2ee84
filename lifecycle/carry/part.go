package carry

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"

	"github.com/lopen-dev/lopen/lifecycle/bundle"
	"github.com/lopen-dev/lopen/lifecycle/folder"
	"github.com/lopen-dev/lopen/lifecycle/history"
	"github.com/lopen-dev/lopen/lifecycle/output"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/envelope"
	"github.com/lopen-dev/lopen/writer/journal"
)

// maxOpen is how many files of sessions stay open. Those of sessions that a process holds do in
// any case.
const maxOpen = 512

// A part is a session that is exported, or a folder that is kept.
type part struct {
	info       bundle.Session
	at         string // path of its entries
	note       []byte // on a folder that is kept; nil if there is none
	id         session.ID
	checkpoint string // the newest checkpoint that its log names
	resources  []session.Resource
	dir        writer.FS // with the files
	frozen     *frozen   // dir, unless the session is written anew
	files      []file
}

// A file is one of a session's folder.
type file struct {
	name string
	size int64 // in bytes; no more is exported, if it grows
	may  bool  // it may go while it is exported
}

// part freezes a session.
func (x *exporter) part(id session.ID) (*part, error) {
	dir, err := writer.OpenDir(x.Root, folder.Path(id))
	if errors.Is(err, fs.ErrNotExist) {
		err = folder.ErrNotFound
	}
	if err != nil {
		return nil, &Skipped{id, err}
	}
	z, err := freeze(x.ctx, dir, id, func() bool { return x.Busy(id) })
	if err != nil {
		_ = dir.Close() // nothing was written to it
		return nil, &Skipped{id, err}
	}
	p, err := x.partOf(id, z)
	if err != nil {
		_ = z.Close() // nothing was written to it
		return nil, &Skipped{id, err}
	}
	if x.o.NoMessages || x.o.Redact != nil {
		return x.anew(p)
	}
	if x.open += len(z.held); x.open > maxOpen && !x.Busy(id) {
		x.open -= len(z.held)
		z.release()
	}
	for i := range p.files {
		f := &p.files[i]
		f.may = z.held[f.name] == nil || made(f.name)
	}
	return p, nil
}

// partOf returns the part of a frozen session, with its files.
func (x *exporter) partOf(id session.ID, z *frozen) (p *part, err error) {
	var log *journal.Log
	if x.Busy(id) {
		log, err = journal.Read(z, 0, true)
	} else {
		log, err = z.suffices(id)
	}
	if err == nil {
		p, err = x.described(id, z)
	}
	if err != nil {
		return nil, err
	}
	if err := z.flaw(log); err != nil {
		x.damage("session %s is damaged, and taken as it is: %v; lopen session verify %s says more, lopen session recover %s makes a new one of it", id, err, id, id)
	}
	p.files, err = list(p.dir)
	p.files = x.onlyText(p.dir, p.at, p.files)
	return p, err
}

// anew writes a session anew into a folder of Scratch, from which it is exported.
func (x *exporter) anew(p *part) (*part, error) {
	err := x.o.Scratch.Mkdir(p.id.String(), 0o700)
	var dir writer.FS
	if err == nil {
		dir, err = writer.OpenDir(x.o.Scratch, p.id.String())
	}
	if err == nil {
		err = Rewrite(p.frozen, dir, p.id, Rewriting{ID: p.id, Redact: x.o.Redact, NoMessages: x.o.NoMessages, NoCheckpoints: x.o.Redact != nil})
	}
	_ = p.close() // nothing was written to it
	p.dir, p.frozen = dir, nil
	if err == nil {
		p.files, err = list(dir)
	}
	if err != nil {
		if dir != nil {
			_ = dir.Close() // it is thrown away
		}
		return nil, &Skipped{p.id, err}
	}
	return p, nil
}

// made reports whether a file is made from the log, for people.
func made(name string) bool {
	return slices.Contains(readable, name)
}

// described returns the part of a frozen session.
func (x *exporter) described(id session.ID, z *frozen) (*part, error) {
	ld := z.contents
	z.contents = nil // the records of a long log take memory
	if err := ld.Edited(); err != nil {
		if !x.o.All {
			return nil, err
		}
		ld.Discard()
		x.warn("session %s is exported as its log has it, without what was edited outside", id)
	}
	var meta struct {
		Name   string `json:"name,omitempty"`
		Pinned bool   `json:"pinned,omitempty"`
	}
	if err := folder.ReadSmall(z, metaFile, &meta); err != nil && !errors.Is(err, fs.ErrNotExist) {
		if !errors.Is(err, envelope.ErrCorrupt) {
			return nil, err
		}
		x.damage("the name of session %s cannot be read: %v", id, err)
	}
	name, _ := x.o.Redact.String(meta.Name)
	progress := ld.State.Progress()
	return &part{
		id: id, at: sessionsDir + "/" + id.String(), dir: z, frozen: z, checkpoint: newestOf(ld.At), resources: ld.State.Header().Resources,
		info: bundle.Session{
			ID: id.String(), Name: name, Module: id.Module, Incarnation: ld.At.Incarnation,
			Status: string(ld.State.Status()), Seq: ld.At.Seq, Done: progress.Done, Total: progress.Total,
		},
	}, nil
}

// list lists the files of a session's folder that are carried.
func list(dir writer.FS) (all []file, err error) {
	folders := []string{".", history.Dir, output.Dir}
	logs, err := dir.ReadDir(inheritedDir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, e := range logs {
		if name := inheritedDir + "/" + e.Name(); e.IsDir() && inherited().MatchString(name) {
			folders = append(folders, name)
		}
	}
	for _, sub := range folders {
		entries, err := dir.ReadDir(sub)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		for _, e := range entries {
			name := e.Name()
			if sub != "." {
				name = sub + "/" + name
			}
			if !carried(name) || !e.Type().IsRegular() {
				continue
			}
			info, err := e.Info()
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return nil, err
			}
			all = append(all, file{name: name, size: info.Size()})
		}
	}
	return all, nil
}

func (p *part) bytes() (n int64) {
	for _, f := range p.files {
		n += f.size
	}
	return n + int64(len(p.note))
}

// push exports the files.
func (p *part) push(out Sink) error {
	if p.note != nil {
		if err := out.Add(p.at+noteSuffix, int64(len(p.note)), bytes.NewReader(p.note)); err != nil {
			return err
		}
	}
	for _, f := range p.files {
		err := p.pushFile(out, f)
		if errors.Is(err, errGone) && !f.may {
			err = fmt.Errorf("%s was written anew meanwhile, since the session was resumed: export it again", f.name)
		}
		if err != nil && !errors.Is(err, errGone) {
			return err
		}
	}
	return nil
}

// errGone means that a file is not there any more.
var errGone = errors.New("it is gone")

func (p *part) pushFile(out Sink, f file) error {
	r, info, err := writer.OpenRegular(p.dir, "export", f.name, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return errGone
	}
	if err != nil {
		return err
	}
	defer r.Close()
	size := min(f.size, info.Size())
	return out.Add(p.at+"/"+f.name, size, io.LimitReader(r, size))
}

func (p *part) close() error { return p.dir.Close() }
