//go:build !linux

package bench

import (
	"os"
	"time"
)

// datasync is what the floor of a durable save waits for.
func datasync(f *os.File) error { return f.Sync() }

// cpuTime is not asked for here.
func cpuTime() time.Duration { return 0 }
