package checkpoint

import (
	"encoding/hex"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/blob"
)

// An ID names an entry of a chain: the SHA-256 of its line. The zero value is none.
type ID blob.Hash

// A Reason says why a checkpoint was made.
type Reason string

// The reasons.
const (
	Manual       Reason = "manual"
	BeforeTask   Reason = "before-task"
	AfterTask    Reason = "after-task"
	BeforeRewind Reason = "before-rewind" // what undo goes back to
	AfterRewind  Reason = "after-rewind"  // what the rewind made
)

func (r Reason) valid() bool {
	return slices.Contains([]Reason{Manual, BeforeTask, AfterTask, BeforeRewind, AfterRewind}, r)
}

// Tasks are the counts of the State that a checkpoint is of.
type Tasks struct {
	Total     int `json:"total"`
	Completed int `json:"completed"`
}

// Git is what the repository was at a checkpoint; the zero value without one.
type Git struct {
	Head   string `json:"head,omitempty"`
	Branch string `json:"branch,omitempty"`
}

// Meta is what the caller says of a checkpoint.
type Meta struct {
	Session     string    `json:"session"`               // its ID
	Incarnation string    `json:"incarnation,omitempty"` // of the session's folder
	Seq         uint64    `json:"seq"`                   // the session's newest record
	Parent      uint64    `json:"parent,omitempty"`      // the number of the entry that the session last knew the files by; 0 is none
	At          time.Time `json:"at"`
	Reason      Reason    `json:"reason"`
	Task        string    `json:"task,omitempty"` // the ID of the one that it stands before or after, or that a rewind sets back
	Tasks       Tasks     `json:"tasks"`
	Messages    int       `json:"messages,omitempty"` // how many the session had
	Git         Git       `json:"git,omitzero"`
	// Target is the number of the entry that a rewind goes back to; of BeforeRewind and
	// AfterRewind.
	Target uint64 `json:"target,omitempty"`
}

// Active is a task at work.
type Active struct {
	Session string `json:"session"`
	Task    string `json:"task"`
	Begun   uint64 `json:"begun"` // the number of the entry before it
}

// An Entry is a checkpoint. It is immutable.
type Entry struct {
	Number   uint64 `json:"number"`   // from 1, in the order of the chain; never given twice
	Previous ID     `json:"previous"` // the entry before it in the chain
	Meta
	Root  blob.Hash `json:"root"`  // of the tree
	Rules blob.Hash `json:"rules"` // of the ignore rules, see [Store.Rules]
	// By are the tasks that were active since the previous entry, and Active those that
	// are after this one.
	By     []Active `json:"by,omitempty"`
	Active []Active `json:"active,omitempty"`
	Cut    bool     `json:"cut,omitempty"` // one of By ended without an entry of its own
	// Changed counts the paths that differ from the previous entry, Files the files and
	// symlinks, and Bytes their contents, each file counted.
	Changed int   `json:"changed"`
	Files   int   `json:"files"`
	Bytes   int64 `json:"bytes"`

	ID      ID     `json:"-"`
	Pinned  bool   `json:"-"` // set by a later line
	Removed string `json:"-"` // why, set by a later line; its objects may be gone

	rules *Rules // of what Look returned, where no object has them
}

// SetBack says that it has the tree of a failed task, whose files were set back then.
func (e *Entry) SetBack() bool { return e.Reason == BeforeRewind && e.Task != "" }

// Contested says that nobody can tell which task changed what since the previous entry.
func (e *Entry) Contested() bool { return len(e.By) > 1 || e.Cut }

// String is the ID in 64 hex digits.
func (id ID) String() string { return hex.EncodeToString(id[:]) }

// Short is the begin of the ID that messages show.
func (id ID) Short() string { return id.String()[:8] }

// IsZero says that it is none.
func (id ID) IsZero() bool { return id == ID{} }

// MarshalText is String; it never fails.
func (id ID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText is [ParseID].
func (id *ID) UnmarshalText(text []byte) (err error) {
	*id, err = ParseID(string(text))
	return err
}

// ParseID reads what String returns and nothing else. The error has class invalid.
func ParseID(s string) (id ID, err error) {
	b, err := hex.DecodeString(s)
	if err != nil || len(b) != len(id) || ID(b).String() != s {
		return ID{}, &writer.Error{Op: "parse checkpoint", Path: strconv.Quote(s), Class: writer.ClassInvalid, Err: errors.New("the ID of a checkpoint has 64 hex digits")}
	}
	return ID(b), nil
}
