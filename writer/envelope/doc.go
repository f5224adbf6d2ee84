// Package envelope seals what this project writes: a version first, a checksum last.
//
// A [Seal] is the checksum and how it is written. A [Format] is a JSON object with a
// version in front and a seal at its end, on one line:
//
//	{"version":1,"name":"value","checksum":"crc32c:0123abcd"}
//
// Every checksum is the CRC-32C of all bytes before it, so it is compared before anything is
// parsed. Bytes that do not match are [ErrCorrupt], and a file of a newer version is
// [ErrFutureVersion].
//
// # Concurrency
//
// Everything may be called from any goroutine.
package envelope
