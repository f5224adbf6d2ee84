package lifecycle

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/writer"
)

// forgetCheckpoints removes the entries of the chain that only a session needs that is
// being deleted for good, pinned or not: those on its line which are on no other
// session's, and which no rewind of another needs. The line of a session begins with the entries
// that it made, or with the one that its journal names where it made none. The caller
// holds the store lock, so that no session is made or moved meanwhile.
func (s *Store) forgetCheckpoints(ctx context.Context, deleted folder) error {
	cps, err := s.Checkpoints()
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	defer cps.Close()
	all, _, err := cps.List()
	if err != nil {
		return err
	}
	c := chainLines{cps: cps, numbers: map[string]uint64{}, made: map[string][]uint64{}}
	for _, e := range all {
		c.numbers[e.ID.String()] = e.Number
		c.made[e.Session] = append(c.made[e.Session], e.Number)
	}
	own, err := c.line(s.root(), deleted)
	if err != nil {
		s.opts.Logger.Warn().Err(err).Msg("what checkpoints a deleted session came from is not known")
	}
	var folders []folder
	there := map[string]bool{}
	for _, place := range []string{sessionsDir, trashDir, corruptedDir} {
		some, err := s.folders(place)
		if err != nil {
			return err
		}
		for _, f := range some {
			folders, there[f.id.String()] = append(folders, f), true
		}
	}
	needed := neededByRewinds(all, func(id string) bool { return there[id] })
	for _, f := range folders {
		line, err := c.line(s.root(), f)
		if err != nil { // it may need any
			s.Logger(f.id).Warn().Err(err).Msg("checkpoints of a deleted session stay: which of them this one needs is not known")
			return nil
		}
		maps.Copy(needed, line)
	}
	n, err := cps.Forget(ctx, "its session was deleted", func(e *checkpoint.Entry) bool {
		return own[e.Number] && !needed[e.Number]
	})
	if n > 0 {
		s.opts.Logger.Info().Stringer("session", deleted.id).Int("checkpoints", n).Msg("checkpoints of a deleted session removed")
	}
	return err
}

// chainLines finds the lines of sessions in the chain.
type chainLines struct {
	cps     *Checkpoints
	numbers map[string]uint64   // of entries, by ID
	made    map[string][]uint64 // by session
}

// line are the numbers on the lines of a session. A session that made none, is no fork
// and was not recovered has none.
func (c *chainLines) line(root writer.FS, f folder) (map[uint64]bool, error) {
	ends := c.made[f.id.String()]
	if len(ends) == 0 {
		name, err := inherited(root, f)
		if err != nil {
			return nil, err
		}
		if number, ok := c.numbers[name]; ok {
			ends = []uint64{number}
		}
	}
	line := map[uint64]bool{}
	for _, end := range slices.Backward(ends) {
		if line[end] {
			continue
		}
		back, err := c.cps.Line(end)
		if err != nil {
			return nil, err
		}
		maps.Copy(line, back)
	}
	return line, nil
}

// inherited is the checkpoint that a session in a folder came from, "" for none.
func inherited(root writer.FS, f folder) (string, error) {
	dir, err := openDir(root, f.path)
	if err != nil {
		return "", err
	}
	defer dir.Close()
	ld, err := join(dir, f.id)
	if err != nil {
		return "", err
	}
	return ld.at.Checkpoint, nil
}
