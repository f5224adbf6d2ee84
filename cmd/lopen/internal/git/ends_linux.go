package git

import (
	"os/exec"
	"runtime"
	"syscall"
)

// endsWithUs has the system kill a command when the thread that started it ends. The
// caller keeps the thread until it calls what is returned, after the command has ended.
func endsWithUs(cmd *exec.Cmd) func() {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	runtime.LockOSThread()
	return runtime.UnlockOSThread
}
