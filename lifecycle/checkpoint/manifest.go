package checkpoint

import (
	"time"

	"github.com/lopen-dev/lopen/cache/files"
	"github.com/lopen-dev/lopen/writer/blob"
)

// A Reason says why a checkpoint was made.
type Reason string

// The reasons.
const (
	Manual       Reason = "manual"
	BeforeTask   Reason = "before-task"
	AfterTask    Reason = "after-task"
	BeforeRewind Reason = "before-rewind" // what undo goes back to
)

func (r Reason) valid() bool {
	return r == Manual || r == BeforeTask || r == AfterTask || r == BeforeRewind
}

// Tasks are the counts of the State that a checkpoint is of.
type Tasks struct {
	Total     int      `json:"total"`
	Completed int      `json:"completed"`
	Active    []string `json:"active"` // IDs
}

// Meta is what the caller says of a checkpoint.
type Meta struct {
	Seq      uint64    `json:"seq"` // of the session when it was made
	At       time.Time `json:"at"`
	Reason   Reason    `json:"reason"`
	Task     string    `json:"task,omitempty"` // the ID of the one that it stands before or after
	Tasks    Tasks     `json:"tasks"`
	Messages int       `json:"messages"` // how many the session had
}

// A Header is a manifest without the files.
type Header struct {
	ID ID `json:"id"`
	Meta
	FilesModified int   `json:"filesModified"` // in comparison to the base; without one, all
	Bytes         int64 `json:"bytes"`         // of the contents, each file counted
}

// A Manifest is a checkpoint. It is immutable.
type Manifest struct {
	Header
	// Files are the project's files. Unlike those of [files.Take] they have an entry
	// for every folder that something was recorded in.
	Files *files.Snapshot

	from *Store // that has it in its folder; nil in a manifest decoded elsewhere
}

// Blobs calls fn with each content that the checkpoint depends on, and its size in
// bytes; one that several files have comes several times.
func (m *Manifest) Blobs(fn func(h blob.Hash, size int64)) {
	for i := range m.Files.Files {
		if f := &m.Files.Files[i]; f.Mode.IsRegular() {
			fn(f.Hash, f.Size)
		}
	}
}
