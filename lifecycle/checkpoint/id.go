package checkpoint

import (
	"encoding/hex"
	"errors"
	"strconv"

	"github.com/lopen-dev/lopen/writer"
)

// String is the ID in 64 hex digits.
func (id ID) String() string { return hex.EncodeToString(id[:]) }

// Short is the begin of the ID that messages show.
func (id ID) Short() string { return id.String()[:8] }

// IsZero says that it is none.
func (id ID) IsZero() bool { return id == ID{} }

// MarshalText is String; it never fails.
func (id ID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText is [ParseID].
func (id *ID) UnmarshalText(text []byte) (err error) {
	*id, err = ParseID(string(text))
	return err
}

// ParseID reads what String returns and nothing else. The error has class invalid.
func ParseID(s string) (id ID, err error) {
	b, err := hex.DecodeString(s)
	if err != nil || len(b) != len(id) || ID(b).String() != s {
		return ID{}, &writer.Error{Op: "parse checkpoint", Path: strconv.Quote(s), Class: writer.ClassInvalid, Err: errors.New("the ID of a checkpoint has 64 hex digits")}
	}
	return ID(b), nil
}
