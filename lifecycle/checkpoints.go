package lifecycle

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/blob"
)

const (
	checkpointsDir = "checkpoints"
	blobsDir       = "blobs"
)

// Checkpoints are those of the project, whichever session made them. Close it after
// use.
type Checkpoints struct {
	*checkpoint.Store
	blobs *blob.Store
	dirs  []writer.FS // in the order of checkpointDirs
}

var checkpointDirs = []string{checkpointsDir, blobsDir}

// Checkpoints opens those of the project, without a lock. ErrNotFound says that there
// are none.
func (s *Store) Checkpoints() (*Checkpoints, error) {
	c := &Checkpoints{}
	for _, name := range checkpointDirs {
		dir, err := openDir(s.root(), name)
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("the project has no checkpoints: %w", ErrNotFound)
		}
		if err != nil {
			return nil, errors.Join(err, c.Close())
		}
		c.dirs = append(c.dirs, dir)
	}
	c.blobs = blob.New(c.dirs[1])
	c.Store = checkpoint.New(c.dirs[0], checkpoint.MainTree, c.blobs, s.project, checkpoint.Options{Alive: s.alive, Outside: s.opts.Outside})
	return c, nil
}

// makeCheckpoints is Checkpoints, and makes the folders first where there are none.
func (s *Store) makeCheckpoints() (*Checkpoints, error) {
	for _, name := range checkpointDirs {
		if err := writer.MkdirDurable(s.root(), name); err != nil {
			return nil, err
		}
	}
	return s.Checkpoints()
}

// alive says whether somebody holds a session, or a command of it still works that
// outlived its loop. Where that cannot be told it is so.
func (s *Store) alive(name string) bool {
	id, err := session.ParseID(name)
	if err != nil {
		return false
	}
	owner, err := s.Holder(id)
	if err != nil || owner != nil {
		return true
	}
	orphan, err := s.Abandoned(id)
	return err != nil || orphan != nil && orphan.Alive
}

// Close closes the folders.
func (c *Checkpoints) Close() error {
	var errs []error
	for _, d := range c.dirs {
		errs = append(errs, d.Close())
	}
	return errors.Join(errs...)
}

// at says whether the open folders are still those of their names.
func (c *Checkpoints) at(root writer.FS) bool {
	for i, name := range checkpointDirs {
		held, err := c.dirs[i].Stat(".")
		there, err2 := root.Lstat(name)
		if err != nil || err2 != nil || !writer.SameFile(held, there) {
			return false
		}
	}
	return true
}

// entry returns the entry that a session's journal names, also one that was removed:
// its line goes on through it. The error wraps [checkpoint.ErrNotFound] where there is
// none.
func (c *Checkpoints) entry(name string) (*checkpoint.Entry, error) {
	id, err := checkpoint.ParseID(name)
	if err != nil {
		return nil, err
	}
	all, _, err := c.List()
	if err != nil {
		return nil, err
	}
	for _, e := range all {
		if e.ID == id {
			return e, nil
		}
	}
	return nil, fmt.Errorf("checkpoint %s: %w", id.Short(), checkpoint.ErrNotFound)
}

// CheckpointLine are the numbers of the checkpoints on a session's line: its own, and
// those of the session that it comes from up to there.
func (s *Store) CheckpointLine(cps *Checkpoints, id session.ID) (map[uint64]bool, error) {
	ld, err := s.readWhole(id)
	if err != nil {
		return nil, err
	}
	if err := ld.dir.Close(); err != nil || ld.at.Checkpoint == "" {
		return nil, err
	}
	last, err := cps.entry(ld.at.Checkpoint)
	if errors.Is(err, checkpoint.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return cps.Line(last.Number)
}

// CheckpointUsage is what the checkpoints of a project take, in bytes: the lengths of
// the files added, as du --apparent-size adds them.
type CheckpointUsage struct {
	Checkpoints int
	Blobs       int64 // the files in .lopen/blobs
	Chain       int64 // the files in .lopen/checkpoints
	// Unneeded are contents that no checkpoint needs: a pack keeps them until more than
	// half of it is unneeded. -1 where it cannot be told.
	Unneeded int64
}

// CheckpointUsage looks at what the checkpoints of the project take. It takes no lock:
// what another process stores at this moment may be among Unneeded.
func (s *Store) CheckpointUsage() (u CheckpointUsage, err error) {
	cps, err := s.Checkpoints()
	if errors.Is(err, ErrNotFound) {
		return u, nil
	}
	if err != nil {
		return u, err
	}
	defer cps.Close()
	all, _, err := cps.List()
	if err != nil {
		return u, err
	}
	needed := map[blob.Hash]struct{}{}
	for _, e := range all {
		if e.Removed != "" {
			continue
		}
		u.Checkpoints++
		if u.Unneeded == 0 && cps.Objects(e, unseen(needed)) != nil {
			u.Unneeded = -1
		}
	}
	for h, err := range cps.blobs.All() {
		if u.Unneeded < 0 {
			break
		}
		n := int64(0)
		if _, live := needed[h]; err == nil && !live {
			n, err = cps.blobs.Size(h)
		}
		if u.Unneeded += n; err != nil {
			u.Unneeded = -1
		}
	}
	u.Blobs, err = checkpoint.Usage(cps.blobs)
	u.Chain = fileBytes(cps.dirs[0])
	return u, err
}

// fileBytes are the lengths of the files in a folder.
func fileBytes(dir writer.FS) (n int64) {
	entries, err := dir.ReadDir(".")
	if err != nil {
		return 0
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			n += info.Size()
		}
	}
	return n
}

// sweep removes the contents that no checkpoint needs any more. While somebody makes a
// checkpoint it steps aside with ErrBusy; when a tree cannot be read nothing is removed.
func (c *Checkpoints) sweep() (blob.Swept, error) {
	swept, err := c.blobs.Sweep(func() (map[blob.Hash]struct{}, error) {
		needed := map[blob.Hash]struct{}{}
		return needed, checkpoint.Roots(c.dirs[0], c.blobs, needed)
	}, false)
	if err != nil {
		return swept, fmt.Errorf("free what no checkpoint needs: %w", err)
	}
	return swept, nil
}
