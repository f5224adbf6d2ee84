package writer

import "time"

// attempts bounds the retries of a call that failed for want of a resource.
// fsync and close are never retried: after a failure the kernel may have dropped
// the pages, and a second call that says "fine" proves nothing.
const attempts = 4

// Retry calls fn again while it fails for want of a resource, with 1, 4 and
// 16 ms in between: descriptors and memory come back when somebody else is done.
// It is not for fsync and close, which are called once.
func Retry(fn func() error) error {
	err := fn()
	for i, pause := 1, time.Millisecond; i < attempts && err != nil && ClassOf(err) == ClassTransient; i, pause = i+1, 4*pause {
		time.Sleep(pause)
		err = fn()
	}
	return err
}
