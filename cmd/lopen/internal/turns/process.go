package turns

import (
	"os"
	"slices"
	"strings"
)

// shells are the programs between an agent and the hook that it starts.
var shells = []string{"sh", "bash", "dash", "zsh", "ash", "ksh", "fish", "busybox", "cmd.exe", "cmd", "pwsh", "powershell.exe", "env", "timeout"}

// inits are the programs that are process 1 of a system, or of a container in which the agent is not.
var inits = []string{"init", "systemd", "launchd", "tini", "dumb-init", "docker-init", "catatonit", "runit", "s6-svscan"}

// maxDepth bounds how far the agent's process is looked for.
const maxDepth = 16

// AgentProcess returns the process that started this one as its hook: the nearest one above that is
// no shell. It returns 0 if there is none. In a container it may be process 1.
func AgentProcess() int {
	pid, _ := parent(os.Getpid())
	for range maxDepth {
		if pid <= 0 {
			return 0
		}
		above, name := parent(pid)
		if pid == 1 && slices.Contains(inits, strings.ToLower(name)) {
			return 0
		}
		if !slices.Contains(shells, strings.TrimPrefix(strings.ToLower(name), "-")) {
			return pid
		}
		pid = above
	}
	return 0
}

// Above returns the processes above this one, the nearest first.
func Above() (pids []int) {
	for pid, _ := parent(os.Getpid()); pid > 1 && len(pids) < 4*maxDepth; pid, _ = parent(pid) {
		pids = append(pids, pid)
	}
	return pids
}

// ByGit reports whether git is among some processes.
func ByGit(pids []int) bool {
	return slices.ContainsFunc(pids, func(pid int) bool {
		_, name := parent(pid)
		return strings.TrimSuffix(strings.ToLower(name), ".exe") == "git"
	})
}
