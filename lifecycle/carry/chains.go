package carry

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"

	"github.com/lopen-dev/lopen/cache/files"
	"github.com/lopen-dev/lopen/lifecycle/bundle"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/blob"
)

// A chain is what is exported of a chain of checkpoints.
type chain struct {
	name  string
	lines []byte
}

// An object is one that a checkpoint needs.
type object struct {
	hash blob.Hash
	size int64 // in bytes
}

// contents reads objects.
type contents interface {
	Size(h blob.Hash) (int64, error)
	Open(h blob.Hash) (io.ReadCloser, error)
}

// openCheckpoints opens the checkpoints, if there are any, and keeps sweeps out.
func (x *exporter) openCheckpoints() error {
	for _, name := range []string{chainsDir, "blobs"} {
		dir, err := writer.OpenDir(x.Root, name)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		x.dirs = append(x.dirs, dir)
	}
	blobs := blob.New(x.dirs[1])
	hold, err := blobs.Hold(x.ctx)
	if writer.ClassOf(err) == writer.ClassDenied {
		err = nil // a store that may only be read: whoever may sweep it can take objects away, which is noticed
	}
	if err != nil {
		return fmt.Errorf("export: %w", err)
	}
	x.blobs, x.hold, x.contents = blobs, hold, blobs
	if hold != nil {
		x.contents = hold
	}
	return nil
}

// findCheckpoints finds the entries that are exported and the objects that they need.
func (x *exporter) findCheckpoints() error {
	x.chains, x.objects, x.size = nil, nil, 0
	if x.blobs == nil {
		return nil
	}
	names, err := checkpoint.Chains(x.dirs[0])
	if err != nil {
		return err
	}
	n := needs{x: x, seen: map[blob.Hash]struct{}{}}
	for _, name := range names {
		n.chain = checkpoint.New(x.dirs[0], name, x.blobs, x.Project, checkpoint.Options{})
		wanted, err := x.wanted(n.chain)
		if err != nil {
			return err
		}
		lines, err := n.chain.Extract(func(e *checkpoint.Entry) (bool, string, error) {
			if !x.o.All && !wanted[e.Number] || x.ctx.Err() != nil {
				return false, "", x.ctx.Err()
			}
			left, err := n.add(e)
			return true, left, err
		})
		if err != nil {
			return fmt.Errorf("export: %w", err)
		}
		if err := n.nameUnstored(); err != nil {
			return fmt.Errorf("export: %w", err)
		}
		if len(lines) > 0 {
			x.chains = append(x.chains, chain{name, lines})
			x.size += int64(len(lines))
		}
	}
	return nil
}

// wanted returns the numbers of the entries on the lines of the sessions in a chain.
func (x *exporter) wanted(s *checkpoint.Store) (map[uint64]bool, error) {
	wanted := map[uint64]bool{}
	entries, _, err := s.List()
	if err != nil || x.o.All {
		return nil, err
	}
	for _, p := range x.parts {
		line, err := lineOf(s, entries, p.info, p.checkpoint)
		if err != nil {
			return nil, err
		}
		maps.Copy(wanted, line)
	}
	return wanted, nil
}

// newestOf returns the newest checkpoint of a session that its log names. That is the one before a
// rewind that was not ended, which is left out where the session comes to.
func newestOf(at session.Mark) string {
	if at.Rewinding != nil {
		return at.Rewinding.Before
	}
	return at.Checkpoint
}

// lineOf returns the numbers of the entries on the line of a session whose log names a
// checkpoint.
func lineOf(s *checkpoint.Store, entries []*checkpoint.Entry, of bundle.Session, named string) (map[uint64]bool, error) {
	last := uint64(0) // that the log names, or in another chain than that one the newest of the session
	for _, e := range entries {
		if e.Session == of.ID && e.Incarnation == of.Incarnation || e.ID.String() == named {
			last = e.Number
		}
		if e.ID.String() == named {
			break
		}
	}
	return s.Line(last)
}

// needs collects the objects that entries need.
type needs struct {
	x     *exporter
	chain *checkpoint.Store
	seen  map[blob.Hash]struct{}
	last  *checkpoint.Entry // of the chain, which was added last
}

// nameUnstored names what the newest entry of a chain does not have, because only rules of tasks hide
// it, and forgets the entry.
func (n *needs) nameUnstored() error {
	e := n.last
	if n.last = nil; e == nil || e.Hidden == 0 {
		return nil
	}
	skipped, err := n.chain.Tree(e.Root).Skipped()
	for _, k := range skipped {
		if k.Reason == files.Hidden {
			n.x.out.Warnings = append(n.x.out.Warnings, fmt.Sprintf("%s is not stored, because a rule hides it that a task wrote, and is not exported: %s", k.Path, k.Listing))
		}
	}
	return err
}

// add adds what an entry needs. If an object is damaged or missing, it adds nothing and
// returns a text.
func (n *needs) add(e *checkpoint.Entry) (left string, err error) {
	if e.Removed != "" {
		return "", nil
	}
	x, from, size := n.x, len(n.x.objects), n.x.size
	var lost error
	err = n.chain.Objects(e, func(h blob.Hash, size int64) bool {
		if _, known := n.seen[h]; known || lost != nil {
			return false
		}
		bytes, err := x.contents.Size(h)
		if err == nil && size >= 0 && bytes != size { // it is not read: it may have any size
			err = &writer.Error{Op: "export", Path: "blob " + h.String(), Class: writer.ClassCorrupt, Err: fmt.Errorf("it has %d bytes, and the tree says %d", bytes, size)}
		}
		if err = cmp.Or(x.bad[h], err); err != nil {
			lost = err
			return false
		}
		n.seen[h] = struct{}{}
		x.objects, x.size = append(x.objects, object{h, bytes}), x.size+bytes
		return true
	})
	if err = cmp.Or(lost, err); err == nil {
		n.last = e
		x.out.Checkpoints++
		return "", nil
	}
	for _, o := range x.objects[from:] { // a later entry has to meet them again
		delete(n.seen, o.hash)
	}
	x.objects, x.size = x.objects[:from], size
	if !damagedObject(err) {
		return "", err
	}
	x.out.Incomplete = true
	x.out.Warnings = append(x.out.Warnings, fmt.Sprintf("the files of checkpoint %d are left out: %v", e.Number, err))
	return "its objects were damaged", nil
}

// damagedObject reports whether an error says that an object is not what it was.
func damagedObject(err error) bool {
	return err != nil && (writer.ClassOf(err) == writer.ClassCorrupt || errors.Is(err, fs.ErrNotExist))
}

// pushCheckpoints exports the chains and the objects.
func (x *exporter) pushCheckpoints(out Sink) error {
	for _, c := range x.chains {
		if err := out.Add(chainEntry(c.name), int64(len(c.lines)), bytes.NewReader(c.lines)); err != nil {
			return err
		}
	}
	for _, o := range x.objects {
		err := out.Object(o.hash, o.size, func() (io.ReadCloser, error) {
			r, err := x.contents.Open(o.hash)
			if err != nil {
				return nil, x.judged(o.hash, err)
			}
			return &judging{r, x, o.hash}, nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// judged remembers an object that is damaged.
func (x *exporter) judged(h blob.Hash, err error) error {
	if damagedObject(err) {
		x.bad[h] = err
	}
	return err
}

// A judging reads an object.
type judging struct {
	io.ReadCloser
	x *exporter
	h blob.Hash
}

func (j *judging) Read(p []byte) (int, error) {
	n, err := j.ReadCloser.Read(p)
	return n, j.x.judged(j.h, err)
}
