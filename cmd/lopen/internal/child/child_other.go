//go:build !unix

package child

import (
	"errors"
	"os"
	"os/exec"
)

// Without process groups the command alone is ended, and at once.
func ownGroup(*exec.Cmd)      {}
func terminate(cmd *exec.Cmd) { _ = cmd.Process.Kill() }
func kill(cmd *exec.Cmd)      { _ = cmd.Process.Kill() }

func exitOf(ps *os.ProcessState) (code int, signal string) { return ps.ExitCode(), "" }

func peakOf(*os.ProcessState) int64 { return 0 }
func ownPeak() int64                { return 0 }

func executable(path string) error {
	for _, ext := range []string{"", ".exe", ".com", ".bat", ".cmd"} {
		if info, err := os.Stat(path + ext); err == nil && !info.IsDir() {
			return nil
		}
	}
	return errors.Join(os.ErrNotExist)
}
