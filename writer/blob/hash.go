package blob

import (
	"encoding/hex"
	"errors"
	"strconv"

	"github.com/lopen-dev/lopen/writer"
)

// A Hash names a content by its SHA-256. It is comparable, and every value is valid.
type Hash [32]byte

// shardLen is the number of hex digits that name a blob's folder: 256 folders
// keep each one small.
const shardLen = 2

// String returns the hash as 64 lower-case hex digits.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// MarshalText returns what String returns. It never fails.
func (h Hash) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// UnmarshalText parses text as ParseHash does. After an error h is unchanged.
func (h *Hash) UnmarshalText(text []byte) error {
	parsed, err := ParseHash(string(text))
	if err == nil {
		*h = parsed
	}
	return err
}

// ParseHash parses what String returns and nothing else, so that each hash has one text.
// The error has class invalid.
func ParseHash(s string) (Hash, error) {
	var h Hash
	// DecodeString takes upper-case digits as well.
	b, err := hex.DecodeString(s)
	if err != nil || len(b) != len(h) || hex.EncodeToString(b) != s {
		return Hash{}, &writer.Error{Op: "parse hash", Path: strconv.Quote(s[:min(len(s), 80)]), Class: writer.ClassInvalid, Err: errors.New("a hash is 64 lower-case hex digits")}
	}
	return Hash(b), nil
}

// name returns the path inside the store that the blob has as a file of its own.
func (h Hash) name() string { return h.shard() + "/" + h.String()[shardLen:] }

// folder returns the folder of that file.
func (h Hash) folder() folder { return folder(h[0]) }

// shard returns the name of that folder.
func (h Hash) shard() string { return h.folder().name() }
