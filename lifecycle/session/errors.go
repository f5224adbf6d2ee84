package session

import (
	"errors"
	"fmt"
)

var (
	// ErrEdited is wrapped by the error for a file that is well formed and breaks no
	// critical rule, but has a wrong checksum: it was edited outside.
	ErrEdited = errors.New("the checksum does not fit: edited outside")
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
