// Package output stores what the attempts of a session print, as files in one folder of the
// session: for people, who read them with `lopen session output`.
//
// The files of an attempt have one name, its iteration in six digits; where that is taken,
// because a kill or a rewind gave the number to another start, -2 and so on follow:
//
//	000012.json      what attempt it is of, a line; how it ended, another line
//	000012.log       what people see: the rendered output, what went to stderr, the check's
//	000012.log.N     the end of a log that is larger, from byte N on
//	000012.raw       stdout and stderr as they came; 000012.raw.N likewise
//	000012.prompt.md the prompt
//
// # Bounds
//
// A log takes at most 16 MiB, and so does a raw output: the first 8 MiB stay, and of the
// rest the last 4 to 8 MiB, in files of 4 MiB. A [Reader] says how many bytes are missing
// between. The folder takes at most 256 MiB: the oldest attempts go, those that succeeded
// before the others. What waits in memory is at most one line, 1 MiB of a log and 4 MiB of
// a raw output.
//
// When an attempt has ended, its files above a threshold are compressed, while the loop goes on.
// Their names get the suffix .zst or .gz.
//
// # Redaction
//
// Credentials are hidden before anything is written. Text is cut at the ends of lines, and
// a private key that has begun waits for its end; an event in JSON is redacted as a value
// and stays one.
//
// # Failures
//
// What is written is not synced: output is not worth a run's time. What was written when the
// process is killed can be read. A compressed file is durable before the original is removed. The first failure of a write ends the output of an attempt.
// So does a disk that is nearly full: the last of its room is the journal's.
//
// # Concurrency
//
// The methods of a [Writer], and the streams that it gives, may be used from any goroutine.
// Readers take no lock and may read while another process writes.
package output
