package main

import (
	"os"
	"syscall"
)

// peakOf returns the largest resident set of a process, and of those that it waited for, in
// bytes.
func peakOf(ended *os.ProcessState) int64 {
	usage, ok := ended.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0
	}
	return usage.Maxrss << 10
}
