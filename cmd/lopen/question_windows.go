package main

import (
	"os"

	"golang.org/x/sys/windows"
)

// dropTyped drops what can be read from a console. It is false: what waits is not known here. One that is gone says so to who reads.
func dropTyped(terminal *os.File) (lines bool) {
	_ = windows.FlushConsoleInputBuffer(windows.Handle(terminal.Fd()))
	return false
}
