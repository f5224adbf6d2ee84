package awake

import "os/exec"

// request is systemd's, for as long as cat waits for the end of its standard input.
func request(why string) *exec.Cmd {
	return exec.Command("systemd-inhibit", "--what=idle:sleep", "--who=lopen", "--why="+why, "--mode=block", "cat")
}
