package bundle

import (
	"errors"
	"io"

	"github.com/lopen-dev/lopen/writer"
)

// failure is an error with what was done and the name of the file. What an inner error without
// a name says becomes its own.
func failure(op, name string, err error) *writer.Error {
	if errors.Is(err, io.EOF) {
		err = errors.New(err.Error()) // it must not pass for the end
	}
	e := writer.NewError(op, name, writer.NotCommitted, err)
	if inner, ok := err.(*writer.Error); ok && inner.Op == "" { //nolint:errorlint // what wraps one has a text of its own
		e.Err = inner.Err
	}
	return e
}

// invalid makes an error one of class invalid. It has no name yet.
func invalid(err error) error { return &writer.Error{Class: writer.ClassInvalid, Err: err} }

// nameOf is the name of a file, for messages.
func nameOf(of any) string {
	if f, ok := of.(interface{ Name() string }); ok {
		return f.Name()
	}
	return "stream"
}
