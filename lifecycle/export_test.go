package lifecycle

// What crash tests need: a store on a simulated disk, with small files.
var (
	OpenOn = openOn
	InitOn = initOn
)

// Shrink makes records and segments of a store small, both in bytes.
func (s *Store) Shrink(maxRecord int, segment int64) { s.maxRecord, s.segment = maxRecord, segment }
