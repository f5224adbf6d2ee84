package lifecycle

import (
	"errors"

	"github.com/lopen-dev/lopen/writer"
)

// absent returns the error for an argument that is nil and may not be.
func absent(op, of, argument string) error {
	return &Error{Op: op, Path: of, Class: writer.ClassInvalid, Err: errors.New("the " + argument + " is nil")}
}
