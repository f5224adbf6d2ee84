package find

import (
	"slices"
	"strings"

	"github.com/lopen-dev/lopen/cache/search"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
)

// heldFiles are the files that a checkpoint of a task found changed, until the next record shows whether that is the
// attempt which changed them: it names them as well.
type heldFiles struct {
	Task string            `json:"task"`
	Docs []search.Document `json:"docs"`
}

// changed calls fn with the files that a record without an attempt says have changed, or holds them.
func (t *tail) changed(r *record.Record, fn func(*search.Document) error) error {
	h := heldFiles{}
	for i := range r.Ops {
		op := &r.Ops[i]
		paths := possible(op.Paths)
		if op.Name != record.OpFilesChanged || len(paths) == 0 {
			continue
		}
		h.Task = op.Task
		h.Docs = append(h.Docs, search.Document{Number: r.Seq, Time: r.At, Kind: "files", Files: paths, Text: op.To + " " + strings.Join(paths, "\n")})
	}
	if r.Checkpoint != "" && h.Task != "" {
		t.Held = &h
		return nil
	}
	return h.each(fn)
}

// release calls fn with the files that were held, unless an attempt of the record names them.
func (t *tail) release(r *record.Record, fn func(*search.Document) error) error {
	h := t.Held
	if h == nil {
		return nil
	}
	t.Held = nil
	named := func(path string) bool {
		return slices.ContainsFunc(r.Attempts, func(a record.Attempt) bool {
			return a.Task == h.Task && slices.ContainsFunc(a.Files, func(f record.FileChange) bool { return f.Path == path })
		})
	}
	h.Docs = slices.DeleteFunc(h.Docs, func(d search.Document) bool {
		return !slices.ContainsFunc(d.Files, func(path string) bool { return !named(path) })
	})
	return h.each(fn)
}

func (h *heldFiles) each(fn func(*search.Document) error) error {
	for i := range h.Docs {
		if err := fn(&h.Docs[i]); err != nil {
			return err
		}
	}
	return nil
}

// possible returns the paths that a file can have. A log that was imported may have others.
func possible(paths []string) []string {
	return slices.DeleteFunc(slices.Clone(paths), func(path string) bool { return strings.ContainsRune(path, 0) })
}
