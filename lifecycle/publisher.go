package lifecycle

import (
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer"
)

// small is the size in bytes up to which a readable file is replaced whenever the
// session is idle. A larger one is replaced when the journal has grown by its size,
// so that what is written follows the change and not the plan.
const small = 1 << 20

// publisher replaces the two readable files of a session. Owned by its actor.
type publisher struct {
	state, metrics shown
	running        []*replacement // of the job that was handed out
}

// shown is what is known of one readable file.
type shown struct {
	seq   uint64 // the record that it is of
	size  int64  // bytes
	grown int64  // bytes of records since it was replaced
}

// wanted says whether a file is to be replaced that should show a record.
func (s *shown) wanted(seq uint64, force bool) bool {
	return s.seq < seq && (force || s.size <= small || s.grown >= s.size)
}

// A replacement is one file's part of a job.
type replacement struct {
	file   *shown
	name   string
	seq    uint64
	grown  int64 // of the file's, when the job was made
	encode func() []byte
	size   int64 // set by the job when it is done
}

// grew notes what was appended to the journal.
func (p *publisher) grew(bytes int64) {
	p.state.grown += bytes
	p.metrics.grown += bytes
}

// job replaces the files that are due; nil when none is.
func (p *publisher) job(dir writer.FS, st *session.State, at session.Mark, force bool) func() error {
	p.running = nil
	add := func(name string, file *shown, due uint64, encode func() []byte) {
		if file.wanted(due, force) {
			p.running = append(p.running, &replacement{file: file, name: name, seq: at.Seq, grown: file.grown, encode: encode})
		}
	}
	add(metricsFile, &p.metrics, at.Iterations, func() []byte { return session.EncodeMetrics(st, at) })
	add(stateFile, &p.state, at.Seq, func() []byte { return session.EncodeState(st, at) })
	if p.running == nil {
		return nil
	}
	all := p.running
	return func() error {
		for _, r := range all {
			data := r.encode()
			if err := writer.ReplaceFile(dir, r.name, data, filePerm); err != nil {
				return err
			}
			r.size = int64(len(data))
		}
		return nil
	}
}

// ended notes what a job has done; of one that failed nothing counts.
func (p *publisher) ended(err error) {
	for _, r := range p.running {
		if err == nil {
			*r.file = shown{seq: r.seq, size: r.size, grown: r.file.grown - r.grown}
		}
	}
	p.running = nil
}
