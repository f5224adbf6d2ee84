//go:build unix

package awake

import (
	"os/exec"
	"syscall"
)

// detach keeps a Ctrl-C on the terminal from the request: the run may go on after it.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
