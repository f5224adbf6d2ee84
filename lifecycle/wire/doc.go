// Package wire is the JSON of a session: state.json, metrics.json, the records of the log
// and the messages in it. It encodes the values of packages session and record, decodes
// them strictly, and replays records. It knows neither goroutines nor the disk.
//
// A member is named in one place, the json tag of its field; object.go reads and writes
// structs by their tags. The tree of tasks and the records are read and written in one
// pass and without a copy of the file: a plan of 100,000 tasks takes less than half of the
// time that encoding/json needs for it.
//
// [EncodeChange] writes the difference of two States as a record. A [Replay] goes the other
// way: it takes both files, or nothing, applies records and returns the State. For any
// two States a and b, replaying EncodeChange(a, b) over a gives b, byte by byte as
// it is written.
//
// # Concurrency
//
// Functions may be called from any goroutine. A Replay belongs to one.
//
// # Crash safety
//
// The two files are made for being replaced one after the other, metrics.json first. Each
// ends with a CRC-32C of all bytes before it, and state.json names the last record that
// changed the iterations, so that a Replay applies to each file the records it lacks. What
// is damaged, what somebody edited and what a newer version wrote have an error each.
//
// # Caveats
//
// The strings of a decoded State share the memory of the file's content, which stays
// in memory while any of them is used.
package wire
