//go:build unix

package process

import (
	"os/exec"
	"syscall"
)

// detach makes a command the leader of a group of its own.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
