// Package wire is the JSON of a session: state.json, metrics.json, the records of the log
// and the messages in it. It encodes the values of packages session and record, decodes
// them strictly, and replays records. It knows neither goroutines nor the disk.
//
// A member is named in one place, the json tag of its field; object.go reads and writes
// structs by their tags. The tree of tasks and the records are read and written in one
// pass and without a copy of the file: a plan of 100,000 tasks takes less than half of the
// time that encoding/json needs for it.
//
// [EncodeChange] encodes the difference of two States as a record. A [Replay] does the
// reverse: it begins with both files, or with nothing, applies records and returns the
// State. For any two States a and b, replaying EncodeChange(a, b) over a gives a State with
// the same encoding as b.
//
// # Concurrency
//
// Functions may be called from any goroutine. A Replay belongs to one goroutine.
//
// # Crash safety
//
// The two files may be of different records, because they are replaced one after the other,
// metrics.json first. Each ends with a CRC-32C of all bytes before it. state.json names the
// last record that changed the iterations, so that a Replay applies to each file the records
// that it lacks. There is one error each for damage, for an edit, and for a newer version.
//
// # Caveats
//
// The strings of a decoded State share the memory of the file's content, which stays in
// memory while any of them is used.
package wire
