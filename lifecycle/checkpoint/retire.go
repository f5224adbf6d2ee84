package checkpoint

import (
	"errors"
	"fmt"

	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/blob"
)

// Limits bound a session's checkpoints. 0 is no limit.
type Limits struct {
	Count int   // so many stay
	Bytes int64 // of contents, each counted once, however many checkpoints have it
	// Undo is the checkpoint that undo goes back to; 0 when nothing can be undone.
	Undo ID
	// Last is the one that the loop last knew the files by, which after a rewind is not
	// the newest; 0 for none.
	Last ID
}

// Retired is a checkpoint that the limits do not keep.
type Retired struct {
	ID  ID     `json:"id"`
	Why string `json:"why"`
}

// Retire says which checkpoints have to go, the oldest first. all are those of a
// session in ascending order. Pinned ones stay, those that cannot be read, that of undo,
// the newest and the last that the loop knew: without it nobody could tell the loop's
// work from other changes. So the limits may be exceeded after it.
//
// load is called only when the checkpoints have more bytes than the limit if what they
// share is counted in each: a manifest of many files takes a while to read.
func Retire(all []Info, load func(ID) (*Manifest, error), limits Limits) (gone []Retired, err error) {
	var upper int64
	for _, info := range all {
		upper += info.Bytes
	}
	held := ledger{holders: map[blob.Hash]int{}}
	manifests := map[ID]*Manifest{}
	if limits.Bytes > 0 && upper > limits.Bytes {
		for _, info := range all {
			m, err := load(info.ID)
			if errors.Is(err, writer.ErrCorrupt) || errors.Is(err, writer.ErrFutureVersion) {
				continue // it holds what nobody knows
			}
			if err != nil {
				return nil, err
			}
			manifests[info.ID] = m
			held.add(m)
		}
	}
	count := len(all)
	for i, info := range all {
		var why string
		switch {
		case limits.Count > 0 && count > limits.Count:
			why = fmt.Sprintf("more than %d checkpoints", limits.Count)
		case limits.Bytes > 0 && held.total > limits.Bytes:
			why = fmt.Sprintf("checkpoints have more than %d bytes", limits.Bytes)
		default:
			return gone, nil
		}
		if i == len(all)-1 || info.ID == limits.Undo || info.ID == limits.Last || info.Pinned || info.Err != nil {
			continue
		}
		if m := manifests[info.ID]; m != nil {
			held.remove(m)
		} else if len(manifests) > 0 {
			continue
		}
		count--
		gone = append(gone, Retired{info.ID, why})
	}
	return gone, nil
}

// A ledger counts the bytes of contents, each once.
type ledger struct {
	holders map[blob.Hash]int // how many checkpoints have it
	total   int64
}

func (l *ledger) add(m *Manifest) {
	eachOnce(m, func(h blob.Hash, size int64) {
		if l.holders[h]++; l.holders[h] == 1 {
			l.total += size
		}
	})
}

func (l *ledger) remove(m *Manifest) {
	eachOnce(m, func(h blob.Hash, size int64) {
		if l.holders[h]--; l.holders[h] == 0 {
			l.total -= size
		}
	})
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
