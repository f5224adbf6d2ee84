//go:build !linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// drained COMMAND... runs a command on the terminal of a script and returns when all that
// it printed there was read. What is typed was typed before, so that it answers no question: see that of Linux.
func drained() {
	cmd := exec.Command(os.Args[1], os.Args[2:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err := cmd.Run()
	if err != nil && cmd.ProcessState == nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(127)
	}
	if tty, err := os.OpenFile("/dev/tty", os.O_WRONLY, 0); err == nil {
		_, _ = tty.WriteString(strings.Repeat("\n", 256<<10))
	}
	os.Exit(cmd.ProcessState.ExitCode())
}
