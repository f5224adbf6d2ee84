package lifecycle

import (
	"context"
	"errors"
	"slices"

	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer"
)

// forgetCheckpoints removes the entries of the chain that only a session needs that is
// being deleted for good, pinned or not: those on its line which are on no other
// session's, and which no rewind of another needs. The line of a session begins with the entries
// that it made, or with the one that its journal names where it made none. The caller
// holds the store lock, so that no session is made or moved meanwhile.
func (s *Store) forgetCheckpoints(ctx context.Context, deleted, folder string) error {
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
	own, err := c.line(s.root(), folder, deleted)
	if err != nil {
		s.opts.Logger.Warn().Err(err).Msg("what checkpoints a deleted session came from is not known")
	}
	there, err := s.folders()
	if err != nil {
		return err
	}
	needed := neededByRewinds(all, func(id string) bool { return there[id] != nil })
	for id, folders := range there {
		for _, folder := range folders {
			line, err := c.line(s.root(), folder, id)
			if err != nil { // it may need any
				s.opts.Logger.Warn().Err(err).Str("session", id).Msg("checkpoints of a deleted session stay: which of them this one needs is not known")
				return nil
			}
			for number := range line {
				needed[number] = true
			}
		}
	}
	n, err := cps.Forget(ctx, "its session was deleted", func(e *checkpoint.Entry) bool {
		return own[e.Number] && !needed[e.Number]
	})
	if n > 0 {
		s.opts.Logger.Info().Str("session", deleted).Int("checkpoints", n).Msg("checkpoints of a deleted session removed")
	}
	return err
}

// folders are those of all sessions, by ID: in their place, in the trash, and damaged.
func (s *Store) folders() (map[string][]string, error) {
	there := map[string][]string{}
	ids, err := s.ids()
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		there[id.String()] = append(there[id.String()], sessionsDir+"/"+id.String())
	}
	trash, err := s.Trash()
	if err != nil {
		return nil, err
	}
	for _, x := range trash {
		there[x.ID.String()] = append(there[x.ID.String()], trashDir+"/"+x.ID.String())
	}
	corrupted, err := s.corrupted()
	for _, folder := range corrupted {
		id, _ := asideID(folder)
		there[id.String()] = append(there[id.String()], corruptedDir+"/"+folder)
	}
	return there, err
}

// chainLines finds the lines of sessions in the chain.
type chainLines struct {
	cps     *Checkpoints
	numbers map[string]uint64   // of entries, by ID
	made    map[string][]uint64 // by session
}

// line are the numbers on the lines of a session. A session that made none, is no fork
// and was not recovered has none.
func (c *chainLines) line(root writer.FS, folder, id string) (map[uint64]bool, error) {
	ends := c.made[id]
	if len(ends) == 0 {
		name, err := inherited(root, folder, id)
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
		for number := range back {
			line[number] = true
		}
	}
	return line, nil
}

// inherited is the checkpoint that a session in a folder came from, "" for none.
func inherited(root writer.FS, folder, name string) (string, error) {
	buf := make([]byte, summaryBytes)
	if n, err := readHead(root, folder+"/"+stateFile, buf); err == nil {
		if sum, err := session.DecodeSummary(buf[:n]); err == nil && sum.Lineage == nil {
			return "", nil
		}
	}
	id, err := session.ParseID(name)
	if err != nil {
		return "", err
	}
	dir, err := openDir(root, folder)
	if err != nil {
		return "", err
	}
	defer dir.Close()
	ld, err := join(dir, id)
	if err != nil {
		return "", err
	}
	return ld.at.Checkpoint, nil
}
