package session

import (
	"errors"
	"fmt"
)

var (
	// ErrCorrupt is wrapped when a file is not what this package writes:
	// malformed, truncated, too deep, with keys twice, not UTF-8, or breaking a rule.
	ErrCorrupt = errors.New("damaged")
	// ErrChecksum is wrapped when a file is well formed and keeps all rules,
	// but has another checksum: it was edited outside.
	ErrChecksum = errors.New("the checksum does not fit: edited outside")
	// ErrFutureVersion is wrapped when a newer version wrote the file.
	ErrFutureVersion = errors.New("written by a newer version")
)

// An InvalidError is a value that a State cannot hold.
type InvalidError struct {
	Field string
	Value string
	Want  string // what would be right
}

func (e *InvalidError) Error() string {
	v := e.Value
	if len(v) > 100 {
		v = v[:100] + "..."
	}
	return fmt.Sprintf("invalid %s %q: want %s", e.Field, v, e.Want)
}
