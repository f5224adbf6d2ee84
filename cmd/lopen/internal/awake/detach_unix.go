//go:build unix

package awake

import (
	"os/exec"
	"syscall"
)

// detach protects the request from a Ctrl-C on the terminal, after which the run still saves.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
