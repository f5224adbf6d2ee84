package lifecycle

import (
	"maps"
	"slices"
	"strings"

	"github.com/lopen-dev/lopen/cache/files"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

// loopsWork is what the files would be now if only the loop, and who made a
// checkpoint by hand, had changed them since the target. What came about between two
// tasks is somebody else's, although the checkpoint before the next task has it: a
// rewind keeps that.
func (p *rewindPlanner) loopsWork(target, last *checkpoint.Manifest) (*files.Snapshot, error) {
	if last.ID <= target.ID {
		return last.Files, nil
	}
	all, err := p.cps.List()
	if err != nil {
		return nil, err
	}
	rewound, err := p.rewinds()
	if err != nil {
		return nil, err
	}
	known := byPath(target)
	// What was the loop's at the checkpoints that a rewind went back to: it is again then.
	then := map[checkpoint.ID]map[string]files.Fingerprint{}
	for _, to := range rewound {
		then[to] = nil
	}
	if _, ok := then[target.ID]; ok {
		then[target.ID] = maps.Clone(known)
	}
	before := target
	for _, info := range all {
		if info.ID <= target.ID || info.ID > last.ID {
			continue
		}
		m, err := p.cps.Load(info.ID)
		if err != nil {
			continue // what it would tell counts as somebody else's
		}
		own := m.Reason == checkpoint.Manual || m.Reason == checkpoint.AfterTask && before.Reason == checkpoint.BeforeTask && before.ID+1 == m.ID
		if own {
			for _, c := range checkpoint.Diff(before.Files, m.Files) {
				if c.Old != nil && c.New == nil || c.From != "" {
					delete(known, c.Old.Path)
				}
				if c.New != nil {
					known[c.New.Path] = *c.New
				}
			}
		}
		before = m
		if _, ok := then[m.ID]; ok {
			then[m.ID] = maps.Clone(known)
		}
		// It was lopen that changed the files after this one, unless that was undone: then
		// the last is this one.
		if to, ok := rewound[m.ID]; ok && m.ID != last.ID {
			if back, err := p.cps.Load(to); err == nil {
				before = back
				if known = maps.Clone(then[to]); known == nil {
					known = byPath(back) // from before the target
				}
			}
		}
	}
	// A folder is the loop's if the newest checkpoint has it and something of the loop's
	// is in it: its own entry follows from that.
	for _, f := range last.Files.Files {
		if f.Mode.IsDir() {
			if _, ok := known[f.Path]; !ok && holdsAny(known, f.Path) {
				known[f.Path] = f
			}
		}
	}
	sorted := slices.SortedFunc(maps.Values(known), func(a, b files.Fingerprint) int { return strings.Compare(a.Path, b.Path) })
	return &files.Snapshot{At: last.Files.At, Files: sorted, Skipped: last.Files.Skipped, Paths: last.Files.Paths}, nil
}

func byPath(m *checkpoint.Manifest) map[string]files.Fingerprint {
	all := make(map[string]files.Fingerprint, len(m.Files.Files))
	for _, f := range m.Files.Files {
		all[f.Path] = f
	}
	return all
}

// holdsAny says whether something known lies in a folder.
func holdsAny(known map[string]files.Fingerprint, dir string) bool {
	for path := range known {
		if strings.HasPrefix(path, dir+"/") {
			return true
		}
	}
	return false
}

// rewinds are the checkpoints that the session's files were brought back to, by the
// one that was made before each.
func (p *rewindPlanner) rewinds() (map[checkpoint.ID]checkpoint.ID, error) {
	makers, err := p.makers()
	if err != nil {
		return nil, err
	}
	all := map[checkpoint.ID]checkpoint.ID{}
	for _, m := range makers {
		err := p.store.Log(m.id, 0, func(r session.Record) error {
			if r.Event != session.EventRewindEnd || r.Rewind == nil || !r.Rewind.Files {
				return nil
			}
			before, err := checkpoint.ParseID(r.Rewind.Before)
			if err != nil || before > m.top {
				return nil //nolint:nilerr // of a later version: no checkpoint here; or behind what was inherited
			}
			to, err := checkpoint.ParseID(r.Rewind.To)
			if err == nil {
				all[before] = to
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}
