package carry

import (
	"time"

	"github.com/lopen-dev/lopen/lifecycle/bundle"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

// A Report is what came with an import, and what became of it.
type Report struct {
	At          time.Time      `json:"at"` // when it was written
	From        bundle.Project `json:"from"`
	Sessions    []Arrival      `json:"sessions"`
	Checkpoints int            `json:"checkpoints"`
	// Apart says that the checkpoints are beside those of the project: only a forced rewind
	// brings their files back.
	Apart bool `json:"apart,omitempty"`
	// Objects are the contents that checkpoints need: all that came, and those that were here.
	Objects      int              `json:"objects"`
	ObjectsKnown int              `json:"objectsKnown"`
	Bytes        int64            `json:"bytes"` // of all that came
	Documents    []PlacedDocument `json:"documents"`
	Kept         []string         `json:"kept,omitempty"` // folders in the trash and in corrupted/ that a backup brought
	Files        Files            `json:"files"`
	NoMessages   bool             `json:"noMessages,omitempty"`
	Redacted     bool             `json:"redacted,omitempty"`
}

// An Arrival is a session that came.
type Arrival struct {
	ID        string `json:"id"`            // here
	Was       string `json:"was"`           // where it comes from
	Known     bool   `json:"known"`         // it was here already, and is as it was
	Seq       uint64 `json:"seq"`           // its last record
	Here      uint64 `json:"here,omitzero"` // of a session that was here: its last record
	Messages  uint64 `json:"messages"`
	Status    string `json:"status"`
	Done      int    `json:"done"`
	Total     int    `json:"total"`
	Condition string `json:"condition"`      // of its files, as [repair.Verify] has it
	Paths     bool   `json:"paths,omitzero"` // its command and check have this project's folder now
	// Rewind is the ID of the checkpoint before a rewind that was begun and not ended; "" if there
	// is none. The session is as it was then: its holder here must not end it, on other files.
	Rewind string `json:"rewind,omitempty"`
	// Worktree is the path of the linked work tree in which it worked; "" if it worked in the
	// project's folder, as it does here.
	Worktree string `json:"worktree,omitempty"`

	at       session.Mark
	settings session.Settings
	origin   string // the ID of the session that it comes from; "" if it is no fork
	turn     bool   // a process there has its turn in it
	anew     bool   // it is written anew
}

// What became of a document.
const (
	DocumentWritten   = "written"
	DocumentSame      = "same"      // it was here
	DocumentDifferent = "different" // another one was here, and stays
	DocumentLeft      = "left"      // it may not be written; Why says why
)

// A PlacedDocument is a document that came.
type PlacedDocument struct {
	Path   string `json:"path"` // in the project
	Kind   string `json:"kind"`
	Became string `json:"became"`
	Why    string `json:"why,omitempty"`
}

// Files compares the project's files as they were with those that are here.
type Files struct {
	Listed    int      `json:"listed"`
	Equal     int      `json:"equal"`
	Different int      `json:"different"`
	Missing   int      `json:"missing"`
	Names     []string `json:"names,omitempty"` // the first that are different or missing
}
