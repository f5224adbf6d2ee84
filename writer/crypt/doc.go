// Package crypt encrypts streams in the format of age (age-encryption.org/v1), so that the
// age command opens what this package wrote, and the other way round.
//
// A [Key] is parsed from one text by [ParseKey]: public keys encrypt, private keys and a
// passphrase encrypt and decrypt. [Encrypted] recognises a file by its first bytes.
//
// # Memory and time
//
// A stream takes some hundred kilobytes, whatever its length. A passphrase takes 256 MiB and
// about a second for each file: who writes many files makes a key of its own by [NewKey] and
// encrypts that one with the passphrase.
//
// # Concurrency
//
// A Key may be used from any goroutine. What its methods return belongs to one goroutine,
// except for the [io.ReaderAt].
package crypt
