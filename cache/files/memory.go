package files

import (
	"crypto/sha256"
	"path"
	"sync"
	"time"

	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/blob"
)

// A Memory has the hashes of the snapshots that were remembered. It lies where nobody who works in the
// tree writes: a snapshot spares the reading of files, so a forged one hides their changes. Any
// goroutine may call its methods.
type Memory interface {
	// Note replaces the SHA-256 under a key. It need not survive a power cut. What cannot be noted costs
	// that every file is read, so it logs an error and returns none.
	Note(key string, sum [sha256.Size]byte)
	// Noted reports whether sum is what was noted last under a key.
	Noted(key string, sum [sha256.Size]byte) bool
}

// Remember saves a snapshot and notes its hash under a key. Of two that do so for one key at once the
// caller excludes one.
func Remember(dir writer.FS, name string, s *Snapshot, m Memory, key string) error {
	data := s.Encode()
	if err := writer.MkdirDurable(dir, path.Dir(name)); err != nil {
		return err
	}
	if err := writer.ReplaceFile(dir, name, data, 0o600); err != nil || m == nil {
		return err
	}
	m.Note(key, sha256.Sum256(data))
	return nil
}

// Recall loads a snapshot, and reports whether it is what Remember saved last under the key (known).
// Without a Memory none is. One that is not known was written by anybody: it can be compared with,
// and Take reads every file although it is the base. The error is an
// fs.ErrNotExist when there is none, and one of Decode for what is damaged.
func Recall(dir writer.FS, name string, m Memory, key string) (s *Snapshot, known bool, err error) {
	data, err := read(dir, name)
	if err != nil {
		return nil, false, err
	}
	if s, err = Decode(data); err != nil {
		return nil, false, err
	}
	if known = m != nil && m.Noted(key, sha256.Sum256(data)); !known {
		s.At, s.Stored = time.Time{}, blob.Hash{}
	}
	return s, known, nil
}

// maxOwn bounds what an own Memory has.
const maxOwn = 1024

// own is a Memory of this process.
type own struct {
	mu   sync.Mutex
	sums map[string][sha256.Size]byte // Guarded by mu.
}

// Own returns a Memory that ends with the process.
func Own() Memory { return &own{sums: map[string][sha256.Size]byte{}} }

func (o *own) Note(key string, sum [sha256.Size]byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.sums) >= maxOwn {
		clear(o.sums) // it costs reading
	}
	o.sums[key] = sum
}

func (o *own) Noted(key string, sum [sha256.Size]byte) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	noted, known := o.sums[key]
	return known && noted == sum
}
