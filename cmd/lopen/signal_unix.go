//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/child"
)

// endSignals end a run in good order. SIGHUP is the terminal that went away.
var endSignals = []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP}

// stopSignals stop a run until it is continued. SIGTSTP is Ctrl-Z.
var stopSignals = []os.Signal{syscall.SIGTSTP}

// stopUntilContinued stops this process and what it has started, as a shell expects of
// Ctrl-Z, and returns when it continues.
func stopUntilContinued() {
	continued := make(chan os.Signal, 1)
	child.WhileStopped(func() {
		signal.Notify(continued, syscall.SIGCONT)
		defer signal.Stop(continued)
		if syscall.Kill(os.Getpid(), syscall.SIGSTOP) == nil {
			<-continued // the signal may take effect after Kill has returned
		}
	})
}
