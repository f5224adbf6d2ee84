package blob

import (
	"bytes"
	"io"
	"slices"
	"sync"

	"github.com/lopen-dev/lopen/writer"
)

// maxKept bounds the packs that a Reading keeps open.
const maxKept = 16

// A Reading reads many contents of a Store. The packs that it reads from stay open until
// Release: to open one is dearer than to read a small content, above all if it is encrypted.
// Its methods are safe for concurrent use.
type Reading struct {
	s *Store

	keepMu sync.Mutex
	kept   []kept // Guarded by keepMu: the one that was read last first; replaced, never changed.
}

// Reading returns one that excludes no sweep. A [Hold] is one that does.
func (s *Store) Reading() *Reading { return &Reading{s: s} }

// A kept is a pack that stays open.
type kept struct {
	pack *pack
	f    writer.File
}

// Size is [Store.Size] by the index alone: no sweep removes a pack during the Hold.
func (h *Hold) Size(hash Hash) (int64, error) {
	if _, r := h.inPack(hash); r != nil {
		return int64(r.size()), nil
	}
	return h.s.Size(hash)
}

// Has reports whether the store has a content of size bytes where [Batch.Put] looks for it: a
// small one in a pack. It costs no look at the disk for those.
func (h *Hold) Has(hash Hash, size int64) bool {
	if _, r := h.inPack(hash); r != nil || size <= int64(h.s.packMax) {
		return r != nil
	}
	has, err := h.s.Has(hash)
	return has && err == nil
}

// Open is [Store.Open].
func (h *Reading) Open(hash Hash) (io.ReadCloser, error) {
	if p, r := h.inPack(hash); r != nil {
		if data, err := h.read(p, r); err == nil {
			return io.NopCloser(bytes.NewReader(data)), nil
		}
	}
	return h.s.Open(hash) // another pack may have it, and the error is that of all
}

// Read is [Store.Read].
func (h *Reading) Read(hash Hash, limit int64) ([]byte, error) {
	if p, r := h.inPack(hash); r != nil && int64(r.size()) <= limit {
		if data, err := h.read(p, r); err == nil {
			return data, nil
		}
	}
	return h.s.Read(hash, limit)
}

// inPack returns the first pack that has a content, and its record; nil if there is none. Those
// that were read last come first, since a tree's contents stand together.
func (h *Reading) inPack(hash Hash) (*pack, *record) {
	h.keepMu.Lock()
	kept := h.kept
	h.keepMu.Unlock()
	for _, k := range kept {
		if x, err := h.s.index(opPut, k.pack); err == nil {
			if r := x.find(hash); r != nil {
				return k.pack, r
			}
		}
	}
	packs, _ := h.s.known() // an error is that of the caller's second look
	for _, p := range packs {
		if x, err := h.s.index(opPut, p); err == nil {
			if r := x.find(hash); r != nil {
				return p, r
			}
		}
	}
	return nil, nil
}

// read reads a content from a pack, and keeps the pack open.
func (h *Reading) read(p *pack, r *record) ([]byte, error) {
	h.keepMu.Lock()
	defer h.keepMu.Unlock()
	for i, k := range h.kept {
		if k.pack == p {
			if i > 0 {
				h.kept = slices.Concat([]kept{k}, h.kept[:i], h.kept[i+1:])
			}
			return h.s.readObject(k.f, r)
		}
	}
	f, _, err := h.s.openPack("read blob", p)
	if err != nil {
		return nil, err
	}
	if len(h.kept) == maxKept {
		_ = h.kept[maxKept-1].f.Close() // nothing was written to it
		h.kept = h.kept[: maxKept-1 : maxKept-1]
	}
	h.kept = append([]kept{{p, f}}, h.kept...)
	return h.s.readObject(f, r)
}

// Release closes the packs. What is read later opens them again.
func (h *Reading) Release() {
	h.keepMu.Lock()
	defer h.keepMu.Unlock()
	for _, k := range h.kept {
		_ = k.f.Close() // nothing was written to it
	}
	h.kept = nil
}
