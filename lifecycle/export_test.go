package lifecycle

// What crash tests need: a store on a simulated disk, with small files.
var (
	OpenOn = openOn
	InitOn = initOn
)

// Shrink makes records and segments of a store small, both in bytes.
func (s *Store) Shrink(maxRecord int, segment int64) { s.maxRecord, s.segment = maxRecord, segment }

// CheckpointLimit is how many bytes the checkpoints of the project may take.
func (s *Store) CheckpointLimit(cps *Checkpoints) (int64, error) { return s.checkpointLimit(cps) }
