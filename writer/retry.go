package writer

import "time"

// attempts bounds how often a call is made that fails with class transient.
const attempts = 4

// Retry calls fn up to four times while its error has class transient, with pauses of
// 1, 4 and 16 ms: descriptors and memory become free when others finish. It must not be
// used for fsync and close: after a failure the kernel may have dropped the pages, and a
// second call that succeeds proves nothing.
func Retry(fn func() error) error {
	err := fn()
	for i, pause := 1, time.Millisecond; i < attempts && err != nil && ClassOf(err) == ClassTransient; i, pause = i+1, 4*pause {
		time.Sleep(pause)
		err = fn()
	}
	return err
}
