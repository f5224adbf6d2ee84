package blob

import (
	"encoding/hex"
	"errors"

	"github.com/lopen-dev/lopen/writer"
)

// A Hash names a content, by its SHA-256. It is comparable and has no invalid values.
type Hash [32]byte

// shardLen is the number of hex digits that name a blob's folder: 256 folders
// keep each one small.
const shardLen = 2

// String is the hash as 64 lower-case hex digits.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// MarshalText is String; it never fails.
func (h Hash) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// UnmarshalText is ParseHash. After an error h is as it was.
func (h *Hash) UnmarshalText(text []byte) error {
	parsed, err := ParseHash(string(text))
	if err == nil {
		*h = parsed
	}
	return err
}

// ParseHash reads what String returns and nothing else, so that two texts are
// never one blob. The error has class invalid.
func ParseHash(s string) (Hash, error) {
	var h Hash
	// DecodeString takes upper-case digits as well.
	b, err := hex.DecodeString(s)
	if err != nil || len(b) != len(h) || hex.EncodeToString(b) != s {
		return Hash{}, &writer.Error{Op: "parse hash", Path: quote(s), Class: writer.ClassInvalid, Err: errors.New("a hash is 64 lower-case hex digits")}
	}
	return Hash(b), nil
}

// name is the blob's path inside the store.
func (h Hash) name() string { return h.shard() + "/" + h.String()[shardLen:] }

// folder is the one that the blob is in when it has a file of its own.
func (h Hash) folder() folder { return folder(h[0]) }

// shard is the name of folder.
func (h Hash) shard() string { return h.folder().name() }
