package carry

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lopen-dev/lopen/lifecycle/folder"
	"github.com/lopen-dev/lopen/lifecycle/history"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/envelope"
	"github.com/lopen-dev/lopen/writer/journal"
)

// The places of session folders that only a backup has: {place}/{folder}/{file of the session's
// folder}, and {place}/{folder}.json with the note on it.
const (
	trashDir     = "trash"
	corruptedDir = "corrupted"

	noteSuffix = ".json"
	maxNote    = 64 << 10
)

// movedAt matches what a folder in corrupted/ has behind the session's ID.
var movedAt = pattern(`-[0-9]{8}T[0-9]{6}Z(\.[0-9]{1,4})?$`)

// keptID returns the session whose folder this is.
func keptID(at string) (session.ID, error) {
	dir, name := path.Split(at)
	if dir == corruptedDir+"/" {
		end := movedAt().FindStringIndex(name)
		if end == nil {
			return session.ID{}, errors.New("it has no time")
		}
		name = name[:end[0]]
	}
	return session.ParseID(name)
}

// parseKept is parseEntry for what is in one of these places.
func parseKept(dir, rest string) (k kind, of, file string) {
	of, file, _ = strings.Cut(rest, "/")
	stem, note := strings.CutSuffix(of, noteSuffix)
	if note = note && file == ""; !note {
		stem = of
	}
	at := dir + "/" + stem
	if _, err := keptID(at); err != nil || !note && !carried(file) {
		return noEntry, "", ""
	}
	return ofKept, at, file
}

// keep exports a session's folder as it lies there, under another path, with a note; nil means
// the one that it has.
func (x *exporter) keep(from, to string, note []byte) error {
	dir, err := writer.OpenDir(x.Root, from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it was moved or deleted meanwhile
	}
	if err != nil {
		return err
	}
	p := &part{at: to, dir: dir, note: note}
	x.kept = append(x.kept, p)
	if note == nil {
		if p.note, err = writer.ReadFile(x.Root, from+noteSuffix, maxNote); err != nil && !errors.Is(err, fs.ErrNotExist) {
			x.damage("the note %s is left out: %v", from+noteSuffix, err)
		}
	}
	if p.files, err = list(dir); err != nil {
		return err
	}
	p.files = x.onlyText(dir, from, p.files)
	for i := range p.files {
		p.files[i].may = true
	}
	p.files = slices.DeleteFunc(p.files, func(f file) bool {
		r, _, err := writer.OpenRegular(dir, "export", f.name, os.O_RDONLY)
		if err == nil {
			err = r.Close()
		}
		if err != nil {
			x.damage("%s/%s is left out: %v", from, f.name, err)
		}
		return err != nil
	})
	return nil
}

// setAside notes that a session cannot be exported. A backup has its files as they are, as if it
// were in corrupted/: a person may recover something of them.
func (x *exporter) setAside(s Skipped) error {
	x.skipped = append(x.skipped, s)
	if !x.o.Backup || !errors.Is(s.Err, envelope.ErrCorrupt) && !errors.Is(s.Err, envelope.ErrFutureVersion) {
		return nil
	}
	to, note := x.o.Aside(s)
	return x.keep(folder.Path(s.ID), to, note)
}

// damage warns of something that is damaged or left out.
func (x *exporter) damage(format string, args ...any) {
	x.damaged = true
	x.warn(format, args...)
}

// flaw returns what is damaged in a session's whole log or in its snapshots, though the session
// can be loaded.
func (z *frozen) flaw(log *journal.Log) error {
	for _, f := range log.Faults {
		if f.Kind == journal.Damaged {
			return errors.New(f.String())
		}
	}
	if log.ListErr != nil {
		return fmt.Errorf("%s: %w", journal.ListFile, log.ListErr)
	}
	all, unread, err := history.List(z)
	for _, m := range all {
		if err == nil {
			_, _, err = history.Read(z, m.ID(), m.SHA256)
		}
		if errors.Is(err, fs.ErrNotExist) {
			err = nil // it was removed, as its turn came
		}
	}
	for _, u := range unread {
		if err == nil && !errors.Is(u.Err, fs.ErrNotExist) {
			err = u.Err
		}
	}
	return err
}

// keptEntry takes an entry of a folder that only a backup has.
func (r *Received) keptEntry(at string) error {
	if !r.whole {
		return refused(at, "only a backup has it")
	}
	if !slices.Contains(r.kept, at) {
		r.kept = append(r.kept, at)
	}
	return nil
}

// putBack puts the folders in place that only a backup has. What is here already stays: another
// folder of this name, or a session that has the ID of one in the trash. undo takes functions
// that take back what was done.
func (r *Received) putBack(root writer.FS, undo func(func() error)) error {
	for _, at := range r.kept {
		if isHere(root, at) {
			continue
		}
		dir := path.Dir(at)
		if err := writer.MkdirDurable(root, dir); err != nil {
			return err
		}
		for _, name := range []string{at + noteSuffix, at} {
			from := r.target.Staging.path(name)
			if !there(root, from) || there(root, name) { // a note that a crash left stays
				continue
			}
			if err := root.Rename(from, name); err != nil {
				return writer.NewError(opImport, filepath.Join(root.Name(), name), writer.NotCommitted, err)
			}
			undo(func() error { return root.Rename(name, from) })
		}
		if err := root.SyncDir(dir); err != nil {
			return writer.NewError(opImport, filepath.Join(root.Name(), dir), writer.NotCommitted, err)
		}
		r.Kept = append(r.Kept, at)
	}
	return nil
}

// isHere reports whether what is here already keeps a folder out.
func isHere(root writer.FS, at string) bool {
	id, err := keptID(at)
	return err != nil || there(root, at) || path.Dir(at) == trashDir && there(root, sessionsDir+"/"+id.String())
}

func there(root writer.FS, name string) bool {
	_, err := root.Lstat(name)
	return !errors.Is(err, fs.ErrNotExist) // whatever it is
}
