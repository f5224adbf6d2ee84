//go:build unix

package main

import "syscall"

// kill ends this process as the system's out-of-memory killer does.
func kill() error { return syscall.Kill(syscall.Getpid(), syscall.SIGKILL) }
