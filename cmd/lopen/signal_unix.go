//go:build unix

package main

import (
	"os"
	"syscall"
)

// endSignals end a run in good order. SIGHUP is the terminal that went away.
var endSignals = []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP}
