package lifecycle

import (
	"time"

	"github.com/lopen-dev/lopen/lifecycle/history"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer"
)

// What crash tests need: a store on a simulated disk, with small files.
var (
	OpenOn = openOn
	InitOn = initOn
)

// Shrink makes records and segments of a store small, both in bytes.
func (s *Store) Shrink(maxRecord int, segment int64) { s.maxRecord, s.segment = maxRecord, segment }

// CheckpointLimit is how many bytes the checkpoints of the project may take.
func (s *Store) CheckpointLimit(cps *Checkpoints) (int64, error) { return s.checkpointLimit(cps) }

// ShowAtOnce has the readable files of sessions follow each commit.
func (s *Store) ShowAtOnce() { s.pace = -1 }

// ShowWhenAsked has the readable files of sessions follow Flush and Close alone.
func (s *Store) ShowWhenAsked() { s.pace = time.Hour }

// Snapshots lists the snapshots of a session that can be read, oldest first.
func (s *Store) Snapshots(id session.ID) ([]history.Manifest, error) {
	return within(s, "snapshots of", id, func(dir writer.FS) ([]history.Manifest, error) {
		all, _, err := history.List(dir)
		return all, err
	})
}
