package loop

import (
	"io"
	"time"

	"github.com/lopen-dev/lopen/lifecycle/output"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
)

// openOutput begins to store the output of the n-th attempt at a unit. Between two attempts
// r.output is nil, and nothing is stored.
func (r *runner) openOutput(unit string, n int) {
	if !r.cfg.Output && !r.cfg.Transcript {
		return
	}
	var err error
	r.output, err = r.sess.Output(r.at.iteration, output.Attempt{Task: unit, Attempt: n, Begun: time.Now().UTC()})
	if err != nil {
		r.warnNoOutput(err)
	}
}

// warnNoOutput warns once a run that output is not stored. The run continues.
func (r *runner) warnNoOutput(err error) {
	r.log.Warn().Err(err).Msg("the output of an attempt is not kept")
	r.warnOnce("output", "the output of this attempt is not kept: "+err.Error())
}

// rendered returns a writer that writes to w and stores what people see of the command or
// the check.
func (r *runner) rendered(w io.Writer) io.Writer { return r.stored(w, output.Log, "") }

// stored returns a writer to w that keeps what is written in a file of the attempt, but for
// lines that begin with without.
func (r *runner) stored(w io.Writer, f output.File, without string) io.Writer {
	if r.output == nil {
		return w
	}
	return &tee{r.output.Stream(f, without), w}
}

// closeOutput ends the stored output of an attempt. then is what followed, such as record.Done.
// A second call does nothing.
func (r *runner) closeOutput(then, failure string) {
	if r.output == nil {
		return
	}
	if err := r.output.Close(then, failure, then != record.Done || r.cfg.Transcript); err != nil {
		r.warnNoOutput(err)
	}
	r.output = nil
}
