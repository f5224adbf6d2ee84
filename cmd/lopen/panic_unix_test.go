//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"
)

// panicSignal has the command be told when it is to panic.
func panicSignal(c chan os.Signal) { signal.Notify(c, syscall.SIGUSR1) }
