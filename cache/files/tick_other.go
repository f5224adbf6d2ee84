//go:build !linux

package files

import "time"

// tick is at least that of the kernel's clock.
const tick = 10 * time.Millisecond

// tickNow returns a time before that which a file system would write now.
func tickNow() int64 { return time.Now().Add(-tick).UnixNano() }

// waitTick returns when the clock of file systems shows a later time.
func waitTick() { time.Sleep(2 * tick) }
