package loop

import (
	"bytes"
	"context"
	"os/exec"
	"time"

	"github.com/lopen-dev/lopen/lifecycle/session"
)

// gitState returns what git says of the project, the zero value without git or
// outside a work tree. It only looks: no lock of git's is taken.
func gitState(ctx context.Context, project string) session.Git {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "git", "--no-optional-locks", "-C", project,
		"status", "--porcelain=v2", "--branch", "--untracked-files=normal")
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if err != nil {
		return session.Git{}
	}
	var g session.Git
	for line := range bytes.Lines(out) {
		line = bytes.TrimRight(line, "\n")
		if v, ok := bytes.CutPrefix(line, []byte("# branch.oid ")); ok {
			if g.Head = string(v); g.Head == "(initial)" {
				g.Head = ""
			}
		} else if v, ok := bytes.CutPrefix(line, []byte("# branch.head ")); ok {
			g.Branch = string(v)
		} else if len(line) > 0 && line[0] != '#' {
			g.Dirty = true
		}
	}
	return g
}
