package checkpoint

import (
	"fmt"

	"github.com/lopen-dev/lopen/writer/blob"
)

// Limits bound a session's checkpoints. 0 is no limit.
type Limits struct {
	Count int   // so many stay
	Bytes int64 // of contents, each counted once, however many checkpoints have it
	// Undo is the checkpoint that undo goes back to; 0 when nothing can be undone.
	Undo ID
}

// Retired is a checkpoint that the limits do not keep.
type Retired struct {
	ID    ID     `json:"id"`
	Why   string `json:"why"`
	Bytes int64  `json:"bytes"` // of contents that no other checkpoint of the session has once those before it are gone
}

// Retire says which checkpoints have to go, the oldest first. all are those of a
// session in ascending order. Pinned ones stay, and so does that of undo, and the
// newest: without it nobody could tell the loop's work from other changes. So the
// limits may be exceeded after it.
func Retire(all []*Manifest, pinned func(ID) bool, limits Limits) []Retired {
	holders := map[blob.Hash]int{}
	var total int64
	for _, m := range all {
		eachOnce(m, func(h blob.Hash, size int64) {
			if holders[h]++; holders[h] == 1 {
				total += size
			}
		})
	}
	var gone []Retired
	count := len(all)
	for i, m := range all {
		var why string
		switch {
		case limits.Count > 0 && count > limits.Count:
			why = fmt.Sprintf("more than %d checkpoints", limits.Count)
		case limits.Bytes > 0 && total > limits.Bytes:
			why = fmt.Sprintf("checkpoints have more than %d bytes", limits.Bytes)
		default:
			return gone
		}
		if i == len(all)-1 || m.ID == limits.Undo || pinned(m.ID) {
			continue
		}
		var freed int64
		eachOnce(m, func(h blob.Hash, size int64) {
			if holders[h]--; holders[h] == 0 {
				freed += size
			}
		})
		total -= freed
		count--
		gone = append(gone, Retired{m.ID, why, freed})
	}
	return gone
}

// eachOnce is Blobs without repetitions.
func eachOnce(m *Manifest, fn func(h blob.Hash, size int64)) {
	seen := map[blob.Hash]struct{}{}
	m.Blobs(func(h blob.Hash, size int64) {
		if _, ok := seen[h]; !ok {
			seen[h] = struct{}{}
			fn(h, size)
		}
	})
}
