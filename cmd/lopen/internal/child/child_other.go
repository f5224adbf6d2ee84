//go:build !unix

package child

import (
	"errors"
	"os"
	"os/exec"
)

// Without process groups the command alone is ended, and at once; and there is no keeper.
func ownSession(*exec.Cmd)    {}
func (p *program) terminate() { p.kill() }
func (p *program) kill() {
	if p.leader() != 0 {
		_ = p.cmd.Process.Kill()
	}
}
func (p *program) pause()   {}
func (p *program) proceed() {}

func endOf(ps *os.ProcessState, _ int64) end {
	return end{Exit: ps.ExitCode(), CPU: ps.UserTime() + ps.SystemTime()}
}

func ownPeak() int64 { return 0 }

type reports struct{}

func (p *program) startKeeper(Command, string, *pipes) (bool, error) { return false, nil }
func (p *program) waitKeeper()                                       {}
func orderKill()                                                     {}

func executable(path string) error {
	for _, ext := range []string{"", ".exe", ".com", ".bat", ".cmd"} {
		if info, err := os.Stat(path + ext); err == nil && !info.IsDir() {
			return nil
		}
	}
	return errors.Join(os.ErrNotExist)
}
