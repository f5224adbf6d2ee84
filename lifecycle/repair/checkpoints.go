package repair

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lopen-dev/lopen/cache/files"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/folder"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/blob"
)

// The folders of the project's checkpoints, below .lopen.
const (
	chainDir = "checkpoints"
	blobsDir = "blobs"
	movedDir = "moved"
)

func chainFile(chain *checkpoint.Store) string { return chainDir + "/" + chain.Name() + ".jsonl" }

// CheckChain reads the chain of the session's work tree, and the trees of those that the session made, and
// adds damage to the report. err is the error of opening the chain; one that wraps
// folder.ErrNotFound means that the project has no checkpoints.
func (r *Report) CheckChain(chain *checkpoint.Store, err error) {
	if errors.Is(err, folder.ErrNotFound) && r.checkpoint == "" {
		return
	}
	if err != nil {
		r.damaged(chainDir, err)
		return
	}
	all, faults, err := chain.List()
	if err != nil {
		r.damaged(chainFile(chain), err)
		return
	}
	named := func(e *checkpoint.Entry) bool { return e.ID.String() == r.checkpoint }
	dropped := len(all) > 0 && all[0].Number > 1 // the first entries were dropped from the chain
	if r.checkpoint != "" && !dropped && !slices.ContainsFunc(all, named) && !r.elsewhere(chain) {
		r.damaged(chainFile(chain), fmt.Errorf("checkpoint %s is not there, by which the session knows the project's files", r.checkpoint[:min(len(r.checkpoint), 8)]))
	}
	made := madeBy(all, r.ID)
	if len(made) == 0 && r.checkpoint == "" {
		return
	}
	for _, err := range faults { // a damaged entry may have been of this session
		r.damaged(chainFile(chain), err)
	}
	r.checkTrees(chain, made)
}

// checkTrees reads the trees of checkpoints, and counts the contents of files, which it does not
// read.
func (r *Report) checkTrees(chain *checkpoint.Store, made []*checkpoint.Entry) {
	first := checkpoint.Unseen(map[blob.Hash]struct{}{})
	for _, e := range made {
		err := chain.Objects(e, func(h blob.Hash, size int64) bool {
			if !first(h, size) {
				return false
			}
			if size >= 0 {
				r.Unread++
			}
			return true
		})
		if err != nil {
			r.damaged(chainFile(chain), fmt.Errorf("checkpoint %d: %w", e.Number, err))
		}
	}
}

// CheckMoved looks for what rewinds of the session moved away, and adds to the report what no undo
// brings back. root is the .lopen folder.
func (r *Report) CheckMoved(chain *checkpoint.Store, root writer.FS) {
	all, err := chain.LostMoves(context.Background(), root)
	if err != nil {
		r.damaged(movedDir, err)
	}
	for _, m := range all {
		if m.Before.Session != r.ID.String() {
			continue
		}
		is := "is gone"
		if m.There {
			is = "is not as it was any more"
		}
		r.damaged(m.Name, fmt.Errorf("%s (%s), which the rewind after checkpoint %d moved there, %s: neither undo nor a rewind to that checkpoint brings it back", m.Path, m.Listing, m.Before.Number, is))
	}
}

// lostMoves returns what CheckMoved added, for one line.
func (r *Report) lostMoves() string {
	var all []string
	for _, f := range r.Faults {
		if strings.HasPrefix(f.File, movedDir+"/") {
			all = append(all, f.Problem)
		}
	}
	switch len(all) {
	case 0:
		return ""
	case 1:
		return ": " + all[0]
	}
	return fmt.Sprintf(": %s; and %d more", all[0], len(all)-1)
}

// elsewhere looks for the session's newest checkpoint in the other chains, reports whether it is in
// one of them, and checks that one.
func (r *Report) elsewhere(chain *checkpoint.Store) bool {
	chains, err := chain.Others()
	if err != nil {
		r.damaged(chainDir, err)
	}
	for _, c := range chains {
		file := chainFile(c)
		all, _, err := c.List()
		if err != nil {
			r.damaged(file, err)
		}
		i := slices.IndexFunc(all, func(e *checkpoint.Entry) bool { return e.ID.String() == r.checkpoint })
		if i < 0 {
			continue
		}
		seen := map[blob.Hash]struct{}{}
		for _, e := range all {
			if e.Removed != "" {
				continue
			}
			if err := c.Objects(e, checkpoint.Unseen(seen)); err != nil {
				r.damaged(file, fmt.Errorf("checkpoint %d: %w", e.Number, err))
			}
		}
		return true
	}
	return false
}

// CheckData reads every blob that the checkpoints of the session need, which may be many
// bytes, and adds damage to the report. store is the path of .lopen.
func (r *Report) CheckData(ctx context.Context, chain *checkpoint.Store, blobs *blob.Store, store string) error {
	all, _, err := chain.List()
	if err != nil {
		return err
	}
	seen := map[blob.Hash]struct{}{}
	first := checkpoint.Unseen(seen)
	for _, e := range madeBy(all, r.ID) {
		_ = chain.Objects(e, func(h blob.Hash, size int64) bool { // CheckChain reports a folder that cannot be read
			if ctx.Err() != nil || !first(h, size) {
				return false
			}
			err := tooLarge(blobs, h, size)
			if err == nil {
				err = blobs.VerifySized(ctx, h, size)
			}
			if err != nil && ctx.Err() == nil {
				r.damaged(fileOf(err, store), fmt.Errorf("checkpoint %d needs it: %w", e.Number, err))
			}
			return true
		})
	}
	r.Blobs, r.Unread = len(seen), 0
	if ctx.Err() != nil {
		return fmt.Errorf("read blobs: %w", context.Cause(ctx))
	}
	return nil
}

// tooLarge returns an error for a blob of unknown size, -1, that has more bytes than a checkpoint
// stores of one file. It would take any time to read it.
func tooLarge(blobs *blob.Store, h blob.Hash, size int64) error {
	if size >= 0 {
		return nil
	}
	size, err := blobs.Size(h)
	if err == nil && size > files.DefaultMaxBytes {
		err = &writer.Error{Op: "verify blob", Path: h.String(), Class: writer.ClassCorrupt, Err: fmt.Errorf("it has %d bytes, more than any content that is stored", size)}
	}
	return err
}

// CheckBlobs reads every blob, whether a checkpoint needs it or not. It returns their number
// and the damaged ones. store is the path of .lopen.
func CheckBlobs(ctx context.Context, blobs *blob.Store, store string) (n int, damaged []Fault, err error) {
	for h, err := range blobs.All() {
		switch {
		case err == nil:
			n++
			if err = tooLarge(blobs, h, -1); err == nil {
				err = blobs.VerifySized(ctx, h, -1)
			}
			if ctx.Err() != nil {
				return n, damaged, fmt.Errorf("read blobs: %w", context.Cause(ctx))
			}
		case writer.ClassOf(err) != writer.ClassCorrupt: // a damaged pack is reported below
			return n, damaged, fmt.Errorf("list blobs: %w", err)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // a blob that was swept meanwhile is fine
			damaged = append(damaged, Fault{File: fileOf(err, store), Kind: "damaged", Problem: err.Error()})
		}
	}
	return n, damaged, nil
}

// madeBy returns the checkpoints that a session made and that were not removed.
func madeBy(all []*checkpoint.Entry, id session.ID) []*checkpoint.Entry {
	return slices.DeleteFunc(all, func(e *checkpoint.Entry) bool { return e.Session != id.String() || e.Removed != "" })
}

// fileOf returns the file that an error of a blob names, below the store.
func fileOf(err error, store string) string {
	if e, ok := errors.AsType[*writer.Error](err); ok {
		if name, err := filepath.Rel(store, e.Path); err == nil {
			return filepath.ToSlash(name)
		}
	}
	return blobsDir
}
