package carry

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/lopen-dev/lopen/lifecycle/bundle"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/folder"
	"github.com/lopen-dev/lopen/lifecycle/repair"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/wire"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/blob"
)

// maxChain bounds a chain of checkpoints that comes, in bytes, as package checkpoint has it.
const maxChain = 32 << 20

// check checks what came as a whole: all that the header names is there, every session can be
// read and is what the header says, and every checkpoint has what it needs.
func (r *Received) check() error {
	for _, s := range r.header.Sessions {
		a, err := r.checkSession(s)
		if err != nil {
			return err
		}
		r.Sessions = append(r.Sessions, a)
	}
	for i := range r.chains {
		if err := r.checkChain(&r.chains[i]); err != nil {
			return err
		}
	}
	r.Objects = len(r.sizes)
	for _, d := range r.header.Documents {
		if err := r.checkDocument(d); err != nil {
			return err
		}
		r.Documents = append(r.Documents, PlacedDocument{Path: d.Path, Kind: d.Kind})
	}
	return nil
}

// checkSession checks a session, and writes its readable files anew.
func (r *Received) checkSession(s bundle.Session) (a Arrival, err error) {
	id, err := session.ParseID(s.ID)
	if err != nil {
		return a, err
	}
	ld, err := r.load(id)
	if err != nil {
		return a, err
	}
	dir, err := r.session(s.ID)
	if err != nil {
		return a, err
	}
	defer dir.Close()
	st, at, p := ld.State, ld.At, ld.State.Progress()
	if at.Incarnation != s.Incarnation || at.Seq != s.Seq || string(st.Status()) != s.Status || p.Done != s.Done || p.Total != s.Total {
		return a, refused(sessionsDir+"/"+s.ID, "its log is at record %d (%s, %d/%d tasks done, incarnation %s), and the header says record %d (%s, %d/%d, %s)",
			at.Seq, st.Status(), p.Done, p.Total, at.Incarnation, s.Seq, s.Status, s.Done, s.Total, s.Incarnation)
	}
	if w := at.Rewinding; w != nil {
		if _, err := checkpoint.ParseID(w.Before); err != nil {
			return a, refused(sessionsDir+"/"+s.ID, "a rewind was begun, and what it names is no checkpoint: %w", err)
		}
		a.Rewind = w.Before
	}
	r.belong(id.Module, st.Header().Resources)
	if err := r.target.Staging.publish(sessionsDir+"/"+s.ID, st, at); err != nil {
		return a, err
	}
	ld.Stale = nil // the files that were missing are there now
	report := repair.Verify(repair.Subject{ID: id, Dir: dir, Others: r.target.Others, Loaded: ld})
	switch report.Condition {
	case repair.Corrupt, repair.Unreadable, repair.Edited:
		return a, r.unreadable(s.ID, cmp.Or(report.Err, errors.New(string(report.Condition))))
	}
	a = Arrival{ID: s.ID, Was: s.ID, Seq: at.Seq, Messages: at.Messages, Status: s.Status, Done: p.Done, Total: p.Total,
		Condition: string(report.Condition), Rewind: a.Rewind, at: at, settings: st.Header().Settings, turn: st.Header().Holder != nil}
	if w := st.Header().Worktree; w != nil {
		a.Worktree = w.Path
	}
	if l := st.Header().Lineage; l != nil {
		a.origin = l.From.String()
	}
	return a, nil
}

// unreadable is the error for a session that came and cannot be read.
func (r *Received) unreadable(id string, err error) error {
	class := writer.ClassOf(err)
	if e, ok := errors.AsType[*writer.Error](err); ok {
		err = e.Err // its path is one of the staging folder
	}
	return &writer.Error{Op: opImport, Path: sessionsDir + "/" + id, Class: class, Err: err}
}

// publish writes the readable files of a session that is staged.
func (s *Staging) publish(dir string, st *session.State, at session.Mark) error {
	for i, data := range [][]byte{wire.EncodeState(st, at), wire.EncodeMetrics(st, at)} {
		if err := writer.ReplaceFile(s.FS, dir+"/"+folder.Readable[i], data, filePerm); err != nil {
			return err
		}
	}
	return nil
}

// checkChain checks a chain of checkpoints with all that its entries need, and reads its lines.
func (r *Received) checkChain(c *lines) error {
	dir, err := writer.OpenDir(r.target.Staging.FS, chainsDir)
	if err != nil {
		return err
	}
	defer dir.Close()
	if r.folder != nil && r.trees != nil {
		if err := r.folder.Commit(); err != nil {
			return err
		}
		r.folder = nil
	}
	trees := r.trees
	if trees == nil { // no object came
		trees = blob.New(dir)
	}
	entries, err := checkpoint.New(dir, c.name, trees, nil, checkpoint.Options{}).CheckBrought(func(h blob.Hash) (int64, bool) {
		n, ok := r.sizes[h]
		return n, ok
	})
	if err != nil {
		return fmt.Errorf("%s %s: %w", opImport, chainEntry(c.name), err)
	}
	for _, e := range entries {
		if _, err := session.ParseID(e.Session); err != nil && e.Session != "" { // without a session a person made it
			return refused(chainEntry(c.name), "checkpoint %d: %w", e.Number, err)
		}
		if e.Removed == "" {
			r.Checkpoints++
		}
	}
	c.data, err = writer.ReadFile(dir, c.name+chainSuffix, maxChain)
	return err
}

// checkDocument returns an error if a document did not come or is no text.
func (r *Received) checkDocument(d bundle.Document) error {
	data, err := r.Document(d)
	if err != nil {
		return err
	}
	switch {
	case folder.SHA256(data) != d.SHA256:
		return refused(documentEntry(d.SHA256), "its content has another hash")
	case !utf8.Valid(data) || strings.ContainsRune(string(data), 0):
		return refused(documentEntry(d.SHA256), "it is no text in UTF-8")
	}
	return nil
}

// Document returns the content of a document that came.
func (r *Received) Document(d bundle.Document) ([]byte, error) {
	if !r.arrived[documentEntry(d.SHA256)] {
		return nil, refused(documentEntry(d.SHA256), "the header names it and it did not come")
	}
	return writer.ReadFile(r.target.Staging.FS, documentEntry(d.SHA256), maxDocument)
}
