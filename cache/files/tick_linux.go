package files

import (
	"time"

	"golang.org/x/sys/unix"
)

// tickNow returns the time that a file system would write now, in nanoseconds since 1970: the
// kernel's clock that advances with its tick.
func tickNow() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_REALTIME_COARSE, &ts); err != nil {
		return time.Now().Add(-tick).UnixNano()
	}
	return ts.Nano()
}

// tick is at least that of the kernel's clock.
const tick = 10 * time.Millisecond

// waitTick returns when the clock of file systems shows a later time. It sleeps in the kernel,
// because the clocks that a test may stand still for are none of a file system's.
func waitTick() {
	began := tickNow()
	for n := 0; tickNow() == began && n < 100; n++ {
		_ = unix.Nanosleep(&unix.Timespec{Nsec: 500_000}, nil) // an early end costs one more turn
	}
}
