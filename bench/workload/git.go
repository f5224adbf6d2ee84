package workload

import (
	"fmt"
	"os"
	"os/exec"
)

// Git returns a function that runs git on a tree, with its own data in dir: each write is
// durable, and nobody's settings apply. The function is nil where there is no git.
func Git(dir, tree string) func(args ...string) error {
	path, err := exec.LookPath("git")
	if err != nil {
		return nil
	}
	return func(args ...string) error {
		cmd := exec.Command(path, append([]string{"--git-dir", dir, "--work-tree", tree, "-c", "core.fsync=all"}, args...)...)
		cmd.Dir = tree
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_SYSTEM="+os.DevNull)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("git %v: %w: %s", args, err, out)
		}
		return nil
	}
}
