package lifecycle

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/lopen-dev/lopen/lifecycle/session"
)

// counters is the content of ids.json: the highest counter given out for each
// "{module}-{day}". Days that are over keep their entry, so that a clock set
// back gives no ID twice.
type counters struct {
	SchemaVersion int               `json:"schemaVersion"`
	Counters      map[string]uint64 `json:"counters"`
}

// nextID reserves an ID: the counter is durable before it is returned. The
// caller holds the store lock.
func (s *Store) nextID(module string, now time.Time) (session.ID, error) {
	c, err := s.loadCounters()
	if err != nil {
		return session.ID{}, err
	}
	key := module + "-" + now.UTC().Format("20060102")
	c.Counters[key]++
	id, err := session.NewID(module, now, c.Counters[key])
	if err != nil {
		return session.ID{}, err
	}
	if err := writeSealed(s.root(), idsFile, c); err != nil {
		return session.ID{}, fmt.Errorf("reserve session id: %w", err)
	}
	return id, nil
}

// reserve has an ID count as given, durably. The caller holds the store lock.
func (s *Store) reserve(id session.ID) error {
	c, err := s.loadCounters()
	if err != nil {
		return err
	}
	key := id.Module + "-" + id.Day
	c.Counters[key] = max(c.Counters[key], id.Counter)
	if err := writeSealed(s.root(), idsFile, c); err != nil {
		return fmt.Errorf("reserve session id again: %w", err)
	}
	return nil
}

// loadCounters reads ids.json and raises it to the sessions that are there,
// which are ahead of one that is missing, damaged, or back from a backup. Only
// the IDs of deleted sessions could come back then, and the log says that this
// happened.
func (s *Store) loadCounters() (counters, error) {
	c, err := s.readCounters()
	if err != nil {
		return c, err
	}
	all, err := s.folders(sessionsDir)
	for _, place := range []string{trashDir, corruptedDir} {
		elsewhere, _ := s.folders(place) // as far as they can be told
		all = append(all, elsewhere...)
	}
	for _, f := range all {
		key := f.id.Module + "-" + f.id.Day
		c.Counters[key] = max(c.Counters[key], f.id.Counter)
	}
	return c, err
}

func (s *Store) readCounters() (counters, error) {
	none := counters{SchemaVersion: 1, Counters: map[string]uint64{}}
	c := counters{}
	err := readSealed(s.root(), idsFile, &c)
	switch {
	case err == nil && c.Counters != nil:
		return c, nil
	case errors.Is(err, fs.ErrNotExist):
		return none, nil
	case err != nil && !errors.Is(err, ErrCorrupt):
		return none, fmt.Errorf("reserve session id: %w", err)
	}
	s.opts.Logger.Warn().AnErr("error", err).Str("file", idsFile).Msg("session counters are damaged: derived again from the sessions that are there")
	return none, nil
}

// A folder is that of a session.
type folder struct {
	id   session.ID
	name string
	path string // below .lopen
}

// folders lists those in one place of the store, in no order: in sessions/, in the trash,
// or in corrupted/, where a name is {id}-{time}, and a number where that was taken.
func (s *Store) folders(in string) ([]folder, error) {
	entries, err := s.root().ReadDir(in)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", in, err)
	}
	return foldersOf(in, entries), nil
}

func foldersOf(in string, entries []fs.DirEntry) []folder {
	all := make([]folder, 0, len(entries))
	for _, e := range entries {
		name := e.Name()
		if in == corruptedDir {
			name = name[:max(strings.LastIndexByte(name, '-'), 0)]
		}
		if id, err := session.ParseID(name); err == nil && e.IsDir() {
			all = append(all, folder{id, e.Name(), in + "/" + e.Name()})
		}
	}
	return all
}
