package carry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/lopen-dev/lopen/lifecycle/bundle"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/folder"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/blob"
)

// wholeDir is the staging folder of chains that have entries of other sessions as well.
const wholeDir = "whole"

// A One is a source of one session of another source: with the checkpoints on its line, the
// contents that these need, and the documents that belong to it. What is left out is not read,
// so damage in it does no harm. The other source must be able to go on without that.
type One struct {
	Source
	Session string // its ID; the header of the other source names it
	// Contents has every object of the other source. A folder of a checkpoint may come behind
	// contents that it names, so that the stream alone does not tell what is needed.
	Contents *blob.Store
}

// A Whole is a source of which the settings of the project, if there are none here, the trash and
// the damaged sessions are taken as well: a backup. Those in a bundle are somebody else's.
type Whole struct{ Source }

// An Exact is a source of sessions that are continued here under their own IDs: their logs stay byte
// for byte, so that what is appended here continues them there as well. What only the other place
// had, its folders and a linked work tree, is for whoever opens the session to change.
type Exact struct {
	Source
	// Over says that sessions of these IDs that are here make way, in the same step. The caller knows
	// that nothing of them is lost by it.
	Over bool
}

// Header returns the header of the other source without the other sessions.
func (o *One) Header() *bundle.Header {
	h := *o.Source.Header()
	h.Sessions = slices.DeleteFunc(slices.Clone(h.Sessions), func(s bundle.Session) bool { return s.ID != o.Session })
	return &h
}

// leaves reports whether an entry is left out.
func (r *Received) leaves(e bundle.Entry) bool {
	if r.one == nil {
		return false
	}
	if e.Name == "" {
		return !r.needed[e.Object]
	}
	k, of, _ := parseEntry(e.Name)
	return k == ofSession && of != r.one.Session || k == ofKept
}

// chain takes a chain of checkpoints.
func (r *Received) chain(ctx context.Context, name string) error {
	entry := chainEntry(name)
	if r.one != nil {
		if err := r.target.Staging.put(ctx, wholeDir+"/"+name+chainSuffix, r.source); err != nil {
			return err
		}
		text, err := r.ofLine(name)
		if err != nil {
			return fmt.Errorf("%s %s: %w", opImport, entry, err)
		}
		if len(text) == 0 {
			return nil
		}
		if err := r.target.Staging.put(ctx, entry, bytes.NewReader(text)); err != nil {
			return err
		}
	} else if err := r.target.Staging.put(ctx, entry, r.source); err != nil {
		return err
	}
	r.arrived[entry] = true
	r.chains = append(r.chains, lines{name: name})
	return nil
}

// ofLine returns the lines of a chain that are on the line of the one session, and adds what
// they need to r.needed. All of that session has come.
func (r *Received) ofLine(name string) ([]byte, error) {
	id, err := session.ParseID(r.one.Session)
	if err != nil {
		return nil, err
	}
	ld, err := r.load(id)
	if err != nil {
		return nil, err
	}
	dir, err := writer.OpenDir(r.target.Staging.FS, wholeDir)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	chain := checkpoint.New(dir, name, r.one.Contents, nil, checkpoint.Options{})
	entries, _, err := chain.List()
	if err != nil {
		return nil, err
	}
	wanted, err := lineOf(chain, entries, bundle.Session{ID: id.String(), Incarnation: ld.At.Incarnation}, newestOf(ld.At))
	if err != nil {
		return nil, err
	}
	var size int64
	text, err := chain.Extract(func(e *checkpoint.Entry) (included bool, left string, err error) {
		if included = wanted[e.Number]; !included || e.Removed != "" {
			return included, "", nil
		}
		var lost error
		err = chain.Objects(e, func(h blob.Hash, _ int64) bool {
			if r.needed[h] || lost != nil {
				return false
			}
			n, err := r.one.Contents.Size(h)
			if errors.Is(err, fs.ErrNotExist) {
				err = refused(name, "object %s is missing", h)
			}
			lost, size, r.needed[h] = err, size+n, true
			return err == nil
		})
		if lost != nil {
			err = lost
		}
		return true, "", err
	})
	if err != nil {
		return nil, err
	}
	return text, r.room(size)
}

// load loads a session that is staged.
func (r *Received) load(id session.ID) (*folder.Contents, error) {
	dir, err := r.session(id.String())
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	ld, err := folder.Load(dir, id)
	if err != nil {
		return nil, r.unreadable(id.String(), err)
	}
	return ld, nil
}

// belong removes the documents that do not belong to the one session: neither to its module nor
// to one of its prompts.
func (r *Received) belong(module string, resources []session.Resource) {
	if r.one == nil {
		return
	}
	r.header.Documents = slices.DeleteFunc(slices.Clone(r.header.Documents), func(d bundle.Document) bool {
		return d.Module != module && !slices.ContainsFunc(resources, func(s session.Resource) bool { return s.Path == d.Path })
	}) // the header is one of ours
}
