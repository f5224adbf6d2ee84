// Package envelope seals small JSON objects: a version in front, a checksum at the end,
// one line.
//
//	{"version":1,"name":"value","checksum":"crc32c:0123abcd"}
//
// The checksum is that of all bytes before its comma, so a line can be checked without
// knowing what is in it. A version stands in every line, and is believed only where the
// checksum fits: a damaged line is corrupt, not of the future.
package envelope
