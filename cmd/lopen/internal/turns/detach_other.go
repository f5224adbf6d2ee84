//go:build !unix

package turns

import (
	"errors"
	"os"
	"time"
)

// Detaches says whether this system has processes that outlive what started them and all above it.
const Detaches = false

// A Worker is a process that works on an event.
type Worker struct{}

// Detach returns an error: see Detaches.
func Detach([]string, string, []string, []byte) (*Worker, error) { return nil, errors.ErrUnsupported }

// Limit does nothing.
func (*Worker) Limit(time.Duration) {}

// Line returns an error.
func (*Worker) Line() ([]byte, error) { return nil, errors.ErrUnsupported }

// Close does nothing.
func (*Worker) Close() {}

// Received returns an error.
func Received() ([]byte, *os.File, <-chan struct{}, error) {
	return nil, nil, nil, errors.ErrUnsupported
}
