package loop

import (
	"context"
	"errors"
	"fmt"
)

// maxDiff bounds the file of LOPEN_DIFF_FILE, in bytes.
const maxDiff = 4 << 20

// withDiff returns the environment of a check of a unit, with LOPEN_DIFF_FILE set to a file that
// has what the unit changed, or one line on why that is not known. If the unit is not being
// worked on and its changes are not known, the file stays the empty one.
func (r *runner) withDiff(ctx context.Context, unit string, env []string) []string {
	var text []byte
	err := errors.New("checkpoints are off in this run")
	if r.cfg.Checkpoint {
		text, err = r.sess.Patch(ctx, unit, maxDiff)
	}
	if err != nil && r.sess.State().ActiveTask() != unit {
		return env // before the first task, or for a done task whose checkpoints are gone
	}
	if err != nil {
		text = fmt.Appendf(nil, "What this task changed is not known: %v\n", err)
	}
	if err := r.dir.Mend(); err != nil {
		r.cfg.UI.Warn("the check gets no LOPEN_DIFF_FILE: %v", err)
		return env
	}
	f, path, err := r.dir.Write("diff", ".patch", text)
	if err != nil {
		r.cfg.UI.Warn("the check gets no LOPEN_DIFF_FILE: %v", err)
		return env
	}
	_ = f.Close() // the check opens it by its name
	return append(env, "LOPEN_DIFF_FILE="+path)
}
