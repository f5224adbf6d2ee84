//go:build unix

package process

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// flockShared takes a shared lock: that of a process left behind by an earlier
// command must not keep the next one from being seen.
// It returns false while somebody has an exclusive one.
func flockShared(f *os.File) (bool, error) { return take(f, syscall.LOCK_SH) }

// tryFlock takes an exclusive lock if nobody has any.
func tryFlock(f *os.File) (bool, error) { return take(f, syscall.LOCK_EX) }

func take(f *os.File, how int) (bool, error) {
	err := syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}

func unlock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_UN) }

func signalGroup(pgid int, sig syscall.Signal) error { return syscall.Kill(-pgid, sig) }

// ours says whether a group is that of this process, or of the leader of its session. Where these are
// outside of the PID namespace, in a container for instance, their numbers are 0, which is no group.
func ours(pgid int) bool {
	sid, err := unix.Getsid(0)
	return pgid != 0 && (pgid == syscall.Getpgrp() || err == nil && pgid == sid)
}
