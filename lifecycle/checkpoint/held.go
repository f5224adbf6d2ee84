package checkpoint

import (
	"container/list"
	"sync"
)

// maxHeld bounds the manifests in memory, in bytes: those of their files, of which their
// texts are parts, and a fingerprint for each path.
const maxHeld = 64 << 20

// held keeps manifests that were read, the most recently used of them: the limits of
// a session read all of its manifests after each checkpoint, and a rewind the same
// ones for what it would do and for doing it. They never change. The one used last
// stays whatever its size.
type held struct {
	mu    sync.Mutex
	used  list.List            // of *heldManifest, the most recently used first. Guarded by mu.
	byID  map[ID]*list.Element // Guarded by mu.
	bytes int64                // Guarded by mu.
	count Access               // Guarded by mu.
}

type heldManifest struct {
	*Manifest
	bytes int64
}

// Access counts how often manifests were asked for.
type Access struct {
	Read int // from the disk
	Held int // there from before
}

// get returns a manifest, which load reads where it is not there. Those who ask for
// one at the same time wait for each other, so that it is read once.
func (h *held) get(id ID, load func() (*Manifest, int64, error)) (*Manifest, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if e, ok := h.byID[id]; ok {
		h.count.Held++
		h.used.MoveToFront(e)
		return e.Value.(*heldManifest).Manifest, nil
	}
	m, bytes, err := load()
	if err != nil {
		return nil, err
	}
	h.count.Read++
	if h.byID == nil {
		h.byID = map[ID]*list.Element{}
	}
	h.byID[id] = h.used.PushFront(&heldManifest{m, bytes})
	for h.bytes += bytes; h.bytes > maxHeld && h.used.Len() > 1; {
		h.drop(h.used.Back())
	}
	return m, nil
}

// forget is called when a checkpoint is removed.
func (h *held) forget(id ID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if e, ok := h.byID[id]; ok {
		h.drop(e)
	}
}

func (h *held) drop(e *list.Element) {
	m := h.used.Remove(e).(*heldManifest)
	delete(h.byID, m.ID)
	h.bytes -= m.bytes
}

// Accesses says how often manifests were asked for since New.
func (s *Store) Accesses() Access {
	s.held.mu.Lock()
	defer s.held.mu.Unlock()
	return s.held.count
}
