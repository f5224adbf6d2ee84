package sidecar

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/folder"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/envelope"
)

// A State is what has become of a transaction.
type State string

// The states.
const (
	InProgress State = "in-progress"
	Committed  State = "committed"
	RolledBack State = "rolled-back"
)

// A Transaction is its manifest.
type Transaction struct {
	ID          string        `json:"id"`
	Session     string        `json:"session"`
	Incarnation string        `json:"incarnation,omitempty"` // of the session
	Begun       time.Time     `json:"begun"`
	Begin       checkpoint.ID `json:"begin"`            // the checkpoint that a rollback goes back to
	Seq         uint64        `json:"seq"`              // the session's record at the begin
	Base        string        `json:"base"`             // the commit that the branch begins at
	Origin      string        `json:"origin,omitempty"` // the committed transaction that this one continues
	State       State         `json:"state"`
	Ended       time.Time     `json:"ended,omitzero"`
	Commit      string        `json:"commit,omitempty"` // on main
	Before      uint64        `json:"before,omitempty"` // number of the checkpoint that undo of the rollback goes back to
}

var manifestFormat = envelope.Format{Key: "transaction", Version: 1, Max: 64 << 10, Seal: envelope.Checksum, File: true}

// idForm is how an ID looks: the session's, and a number.
var idForm = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,200}$`) })

func manifestName(id string) string { return path.Join(manifestDir, id+".json") }

// Find reads the manifest of a transaction. The error wraps folder.ErrNotFound if there is none.
func (s *Store) Find(id string) (*Transaction, error) {
	if !idForm().MatchString(id) {
		return nil, fmt.Errorf("transaction %s: %w", strconv.Quote(id), folder.ErrNotFound)
	}
	data, err := writer.ReadFile(s.root, manifestName(id), int64(manifestFormat.Max))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("transaction %s is not known here: there is no %s: %w", id, filepath.Join(s.root.Name(), manifestName(id)), folder.ErrNotFound)
	}
	if err != nil {
		return nil, err
	}
	t := &Transaction{}
	if err = manifestFormat.Decode(data, t); err == nil && t.ID != id {
		err = fmt.Errorf("it is of transaction %s: %w", strconv.Quote(t.ID), envelope.ErrCorrupt)
	}
	if err != nil {
		class := writer.ClassCorrupt
		if errors.Is(err, envelope.ErrFutureVersion) {
			class = writer.ClassFutureVersion
		}
		return nil, &writer.Error{Op: "read transaction", Path: filepath.Join(s.root.Name(), manifestName(id)), Class: class,
			Err: fmt.Errorf("%w; its session can begin another one: lopen run --no-resume --transaction", err)}
	}
	return t, nil
}

// save writes a manifest durably. The caller holds the lock.
func (s *Store) save(t *Transaction) error {
	data, err := manifestFormat.Encode(t)
	if err != nil {
		return err
	}
	return writer.ReplaceFile(s.root, manifestName(t.ID), data, filePerm)
}

// others reports whether a session that exists has a transaction in progress: main gets no
// changes from outside then. One that cannot be read counts.
func (s *Store) others(ctx context.Context, chain []*checkpoint.Entry) (bool, error) {
	entries, err := s.root.ReadDir(manifestDir)
	if err != nil {
		return false, err
	}
	for _, e := range entries {
		id, ok := strings.CutSuffix(e.Name(), ".json")
		if !ok || strings.HasPrefix(id, ".") {
			continue
		}
		if t, err := s.Find(id); err != nil || s.Status(ctx, t, chain).State == InProgress && s.alive(t) {
			return true, nil
		}
	}
	return false, nil
}

// alive reports whether the session of a transaction exists.
func (s *Store) alive(t *Transaction) bool { return s.opts.Alive == nil || s.opts.Alive(t.Session) }

// newID returns the first ID of a session that is free. The caller holds the lock.
func (s *Store) newID(session string) (string, error) {
	for n := 1; ; n++ {
		id := fmt.Sprintf("%s-t%d", session, n)
		if _, err := s.root.Lstat(manifestName(id)); errors.Is(err, fs.ErrNotExist) {
			return id, nil
		} else if err != nil {
			return "", err
		}
	}
}

// Rewound returns the number of the checkpoint that undo of the session's last rewind since the
// begin goes back to, 0 if there was none. chain are all entries of the checkpoints.
func (t *Transaction) Rewound(chain []*checkpoint.Entry) (before uint64) {
	for _, e := range slices.Backward(chain) {
		if e.ID == t.Begin {
			break
		}
		if t.rewound(e) {
			return e.Parent
		}
	}
	return 0
}

// rewound reports whether an entry is the result of a rewind of the session.
func (t *Transaction) rewound(e *checkpoint.Entry) bool {
	return e.Session == t.Session && e.Reason == checkpoint.AfterRewind && e.Task == ""
}

// rolledBack reports whether the files are those of before the transaction: a rewind to its
// begin was made and not undone. An undo is a rewind to the checkpoint that the one before it
// made first, and so is the undo of an undo.
func (t *Transaction) rolledBack(chain []*checkpoint.Entry) bool {
	is, undo := t.State == RolledBack, t.Before
	for _, e := range chain {
		if undo > 0 && e.Number > undo && e.Target == undo && t.rewound(e) {
			is, undo = !is, e.Parent
		}
	}
	return is && t.State == RolledBack
}
