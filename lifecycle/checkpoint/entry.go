package checkpoint

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lopen-dev/lopen/cache/files"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/blob"
)

// An ID names an entry of a chain: the SHA-256 of its line. The zero value means none.
type ID blob.Hash

// A Reason says why a checkpoint was made.
type Reason string

// The reasons.
const (
	Manual       Reason = "manual"
	BeforeTask   Reason = "before-task"
	AfterTask    Reason = "after-task"
	BeforeRewind Reason = "before-rewind" // the target of undo
	AfterRewind  Reason = "after-rewind"  // the result of a rewind
)

func (r Reason) valid() bool {
	return slices.Contains([]Reason{Manual, BeforeTask, AfterTask, BeforeRewind, AfterRewind}, r)
}

// Tasks are the counts of tasks in the State of a checkpoint.
type Tasks struct {
	Total     int `json:"total"`
	Completed int `json:"completed"`
	// Dependencies are the IDs of the tasks that the active one waits for, the first ones.
	Dependencies []string `json:"dependencies,omitempty"`
}

// Git is the state of the repository at a checkpoint; zero if there is none.
type Git struct {
	Head   string `json:"head,omitempty"`
	Branch string `json:"branch,omitempty"`
	// BranchSum tells the branch from others where Branch does not have its whole name: see [Git.Hide].
	BranchSum string `json:"branchSum,omitempty"`
}

// Hide puts shown in the place of the branch's name, if it is another text.
func (g *Git) Hide(shown string) {
	if shown != g.Branch {
		g.Branch, g.BranchSum = shown, g.branchSum()
	}
}

// Same reports whether the HEAD and the branch of two states are the same, whatever of the branch's name is hidden.
func (g Git) Same(other Git) bool { return g.Head == other.Head && g.branchSum() == other.branchSum() }

// branchSum is a hash of the branch's name.
func (g Git) branchSum() string {
	return cmp.Or(g.BranchSum, fmt.Sprintf("%x", sha256.Sum256([]byte(g.Branch)))[:16])
}

// Meta is the caller's part of a checkpoint.
type Meta struct {
	Session     string    `json:"session"`               // ID of the session
	Incarnation string    `json:"incarnation,omitempty"` // of the session
	Seq         uint64    `json:"seq"`                   // the session's newest record
	Parent      uint64    `json:"parent,omitempty"`      // number of the session's checkpoint before; 0 means none
	At          time.Time `json:"at"`
	Reason      Reason    `json:"reason"`
	Task        string    `json:"task,omitempty"` // ID of the task that begins, ended or is set back
	Tasks       Tasks     `json:"tasks"`
	Messages    int       `json:"messages,omitempty"` // number of the session's messages
	Git         Git       `json:"git,omitzero"`
	// Only is the caller's own list of files and folders, see [CleanOnly]; nil is the whole tree. Other
	// paths are in the tree as in the entry before; of the first entry they are as they are. A rewind
	// to the entry touches what is in the list alone. Its reason is Manual.
	Only []string `json:"only,omitempty"`
	// Target is the number of the entry that a rewind returns to; set with BeforeRewind and
	// AfterRewind, unless that one is in an imported chain.
	Target uint64 `json:"target,omitempty"`
}

// Active is an active task.
type Active struct {
	Session string `json:"session"`
	Task    string `json:"task"`
	Begun   uint64 `json:"begun"` // number of the entry before the task
}

// An Entry is a checkpoint. It is immutable.
type Entry struct {
	Number   uint64 `json:"number"`   // from 1, in the order of the chain; never given twice
	Previous ID     `json:"previous"` // the entry before it in the chain
	Meta
	Root  blob.Hash `json:"root"`  // hash of the tree's root
	Rules blob.Hash `json:"rules"` // hash of the ignore rules, see [Store.Rules]
	// Mounts are the mount points in the tree, sorted. What is mounted elsewhere is not in the tree.
	// Volumes are what identifies the volumes at these, see [mount.Volume]; none where nothing is known.
	Mounts  []string `json:"mounts,omitempty"`
	Volumes []string `json:"volumes,omitempty"`
	// Older are paths in the tree that the entry before did not have, although what is there is older:
	// somebody moved it from where nothing is recorded. Sorted; a folder stands for all beneath it.
	Older []string `json:"older,omitempty"`
	// By are the tasks that were active since the previous entry. Active are the tasks that
	// are active after this one.
	By     []Active `json:"by,omitempty"`
	Active []Active `json:"active,omitempty"`
	Cut    bool     `json:"cut,omitempty"` // one of By ended without an entry
	// Changed is the number of paths that differ from the previous entry, Files that of files
	// and symlinks, and Bytes the size of all files.
	Changed int   `json:"changed"`
	Files   int   `json:"files"`
	Bytes   int64 `json:"bytes"`
	// Taken is what was stored although rules ignore it that are not in force. Hidden is the number
	// of paths that such rules ignore and that were not stored, each with all beneath it.
	Taken  files.Budget `json:"taken,omitzero"`
	Hidden int          `json:"hidden,omitempty"`
	// Unstable is the number of folders that changed while they were looked at.
	Unstable int `json:"unstable,omitempty"`

	ID      ID     `json:"-"`
	Pinned  bool   `json:"-"` // set by a later line
	Removed string `json:"-"` // why it was removed, set by a later line; its objects may be gone

	rules *Rules // set by Look, which stores no rules
}

// SetBack reports whether the entry has the tree of a failed task whose files were set back.
func (e *Entry) SetBack() bool { return e.Reason == BeforeRewind && e.Task != "" }

// thinnedWhy begins the reason of entries that Thin removed.
const thinnedWhy = "checkpoints took more than "

// Thinned reports whether Thin removed the entry.
func (e *Entry) Thinned() bool { return strings.HasPrefix(e.Removed, thinnedWhy) }

// Contested reports whether it is unknown which task changed what since the previous entry.
func (e *Entry) Contested() bool { return len(e.By) > 1 || e.Cut }

// String returns the ID as 64 hex digits.
func (id ID) String() string { return hex.EncodeToString(id[:]) }

// Short returns the first 8 digits, which messages show.
func (id ID) Short() string { return id.String()[:8] }

// IsZero reports whether the ID is the zero value.
func (id ID) IsZero() bool { return id == ID{} }

// MarshalText returns what String returns. It never fails.
func (id ID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText parses text as [ParseID] does.
func (id *ID) UnmarshalText(text []byte) (err error) {
	*id, err = ParseID(string(text))
	return err
}

// ParseID parses what String returns and nothing else. The error has class invalid.
func ParseID(s string) (id ID, err error) {
	b, err := hex.DecodeString(s)
	if err != nil || len(b) != len(id) || ID(b).String() != s {
		return ID{}, &writer.Error{Op: "parse checkpoint", Path: strconv.Quote(s), Class: writer.ClassInvalid, Err: errors.New("the ID of a checkpoint has 64 hex digits")}
	}
	return ID(b), nil
}
