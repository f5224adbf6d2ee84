package loop

import (
	"context"
	"fmt"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/git"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

// gitState returns the state of the project's repository as it is stored, or zero without git or outside a work
// tree. It changes nothing, and runs no command that the repository configures. If git does
// not end in time once, because of a FIFO for example, only HEAD is read from then on.
func (r *runner) gitState(ctx context.Context) session.Git {
	s, err := git.Look(ctx, r.cfg.Tree, r.cfg.Environ)
	if err != nil && ctx.Err() == nil {
		r.warnOnce("git waits", fmt.Sprintf("git did not say within %s whether something of the project is changed (a named pipe in the place of "+
			"a .gitignore?): it is not asked again in this run, and nothing counts as changed", git.LookPatience))
	}
	return session.Git{Head: s.Head, Branch: r.sess.Redact(s.Branch), Dirty: s.Dirty}
}
