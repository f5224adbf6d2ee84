package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"unicode"
	"unicode/utf8"

	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer"
)

const (
	metaFile = "meta.json"
	// MaxName bounds a session's display name, in bytes.
	MaxName = 256
)

// Meta is what a person says of a session. It is written under the store lock and
// not under the lease, so that a session can be named while it runs.
type Meta struct {
	Name   string `json:"name,omitempty"`   // "" is none; the ID stays what it is
	Pinned bool   `json:"pinned,omitempty"` // prune leaves it alone
}

// metaJSON is the content of meta.json.
type metaJSON struct {
	SchemaVersion int `json:"schemaVersion"`
	Meta
}

// Meta returns what is said of a session; the zero value when nothing is.
func (s *Store) Meta(id session.ID) (Meta, error) {
	return readMeta(s.root(), sessionsDir+"/"+id.String()+"/"+metaFile)
}

func readMeta(dir writer.FS, name string) (Meta, error) {
	var m metaJSON
	err := readSealed(dir, name, &m)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return m.Meta, err
}

// SetMeta changes what is said of a session, durably, whoever holds it. A name is
// redacted.
func (s *Store) SetMeta(ctx context.Context, id session.ID, change func(*Meta) error) error {
	lock, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Unlock() }()
	dir, err := s.sessionDir(id)
	if err != nil {
		return fmt.Errorf("session %s: %w", id, err)
	}
	defer dir.Close()
	m, err := s.Meta(id)
	if err != nil && !errors.Is(err, ErrCorrupt) { // a damaged one says nothing
		return err
	}
	was := m
	if err := change(&m); err != nil {
		return err
	}
	m.Name, _ = s.opts.Policy.redactor().String(m.Name)
	if err := validName(m.Name); err != nil {
		return err
	}
	if err := writer.RemoveTemps(dir, ".", func(of string) bool { return of == metaFile }); err != nil {
		return err
	}
	if err := writeMeta(dir, m); err != nil {
		return err
	}
	if m.Name != was.Name {
		s.Logger(id).Info().Str("name", m.Name).Msg("session renamed")
	}
	if m.Pinned != was.Pinned {
		s.Logger(id).Info().Msg("session " + pinnedText(m.Pinned))
	}
	return nil
}

// pinnedText is the end of the log line of a pin.
func pinnedText(pinned bool) string {
	if pinned {
		return "pinned"
	}
	return "unpinned"
}

func writeMeta(dir writer.FS, m Meta) error {
	return writeSealed(dir, metaFile, metaJSON{1, m})
}

func validName(name string) error {
	bad := len(name) > MaxName || !utf8.ValidString(name)
	for _, r := range name {
		bad = bad || !unicode.IsPrint(r)
	}
	if bad {
		return &Error{Op: "name session", Path: fmt.Sprintf("%q", name), Class: writer.ClassInvalid,
			Err: fmt.Errorf("give at most %d bytes of printable text on one line", MaxName)}
	}
	return nil
}
