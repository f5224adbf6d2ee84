package turns

import (
	"os"
	"slices"
	"strings"
)

// shells are the programs between an agent and the hook that it starts.
var shells = []string{"sh", "bash", "dash", "zsh", "ash", "ksh", "fish", "busybox", "cmd.exe", "cmd", "pwsh", "powershell.exe", "env", "timeout"}

// maxDepth bounds how far the agent's process is looked for.
const maxDepth = 16

// AgentProcess returns the process that started this one as its hook: the nearest one above that is
// no shell. It returns 0 if there is none.
func AgentProcess() int {
	pid, _ := parent(os.Getpid())
	for range maxDepth {
		if pid <= 1 {
			return 0
		}
		above, name := parent(pid)
		if !slices.Contains(shells, strings.TrimPrefix(strings.ToLower(name), "-")) {
			return pid
		}
		pid = above
	}
	return 0
}
