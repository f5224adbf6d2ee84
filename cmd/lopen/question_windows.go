package main

import (
	"os"

	"golang.org/x/sys/windows"
)

// dropTyped drops what can be read from a console. One that is gone says so to who reads.
func dropTyped(terminal *os.File) {
	_ = windows.FlushConsoleInputBuffer(windows.Handle(terminal.Fd()))
}
