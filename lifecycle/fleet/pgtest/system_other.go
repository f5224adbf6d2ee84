//go:build !linux

package pgtest

import (
	"errors"
	"io"
	"os/exec"
	"time"
)

const supported = false

var errUnsupported = errors.New("PostgreSQL servers are started on Linux only")

func startReaper() (*exec.Cmd, io.WriteCloser, io.Reader, error) {
	return nil, nil, nil, errUnsupported
}

func isolate(*exec.Cmd) error { return errUnsupported }

func chown(string) error { return errUnsupported }

func free(string) int64 { return 0 }

func cpu(string) (time.Duration, error) { return 0, errUnsupported }

func killAll(string) error { return errUnsupported }

func freeze(string) error { return errUnsupported }

func thaw(string) error { return errUnsupported }

func sweep(string) error { return errUnsupported }

func remove(string) error { return errUnsupported }
