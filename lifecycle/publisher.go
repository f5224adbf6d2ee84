package lifecycle

import (
	"slices"
	"time"

	"github.com/lopen-dev/lopen/lifecycle/history"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer"
)

// small is the size in bytes up to which a readable file is replaced whenever the
// session is idle. A larger one is replaced when the journal has grown by its size,
// so that what is written follows the change and not the plan.
const small = 1 << 20

// publisher replaces the two readable files of a session and writes the snapshots
// that are to be kept. Owned by its actor.
type publisher struct {
	state, metrics shown
	status         session.Status // that state.json shows; "" where that is not known
	snapshots      []snapshot     // to be written
	keep           int            // snapshots of each kind; 0 is all

	running []*replacement // of the job that was handed out
	writing int            // of the snapshots, in that job
	seq     uint64         // the record that the job shows
	took    time.Duration  // by that job; written by it and read when it has ended
}

// shown is what is known of one readable file.
type shown struct {
	seq   uint64 // the record that it is of
	size  int64  // bytes
	grown int64  // bytes of records since it was replaced
}

// maxSnapshots bounds how many States wait to be written to history/.
const maxSnapshots = 32

// remember takes a State that is to be kept. Where the disk is far behind, the
// oldest one is left to the journal.
func (p *publisher) remember(s snapshot, keep int) {
	if len(p.snapshots) == maxSnapshots {
		p.snapshots, p.writing = p.snapshots[1:], max(p.writing-1, 0)
	}
	p.snapshots, p.keep = append(p.snapshots, s), keep
}

// looked notes what the readable files of a session show that was opened.
func (p *publisher) looked(dir writer.FS) {
	for name, file := range map[string]*shown{stateFile: &p.state, metricsFile: &p.metrics} {
		if info, err := dir.Lstat(name); err == nil {
			file.size = info.Size()
		}
	}
	head := make([]byte, summaryBytes)
	if n, err := readHead(dir, stateFile, head); err == nil {
		sum, _ := session.DecodeSummary(head[:n])
		p.status = sum.Status
	}
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
	status session.Status // that it will show
	size   int64          // set by the job when it is done
}

// grew notes what was appended to the journal.
func (p *publisher) grew(bytes int64) {
	p.state.grown += bytes
	p.metrics.grown += bytes
}

// job replaces the files that are due; nil when none is. A status that changed is shown
// at once, however large the file is: a listing shows it, and a run looks for an
// unfinished session there.
func (p *publisher) job(dir writer.FS, st *session.State, at session.Mark, force bool) func() error {
	p.running = nil
	add := func(name string, file *shown, due uint64, force bool, encode func() []byte) {
		if file.wanted(due, force) {
			p.running = append(p.running, &replacement{file: file, name: name, seq: at.Seq, grown: file.grown, encode: encode, status: st.Status()})
		}
	}
	add(metricsFile, &p.metrics, at.Iterations, force, func() []byte { return session.EncodeMetrics(st, at) })
	add(stateFile, &p.state, at.Seq, force || p.status != st.Status(), func() []byte { return session.EncodeState(st, at) })
	p.writing, p.seq = len(p.snapshots), at.Seq
	if p.running == nil && p.writing == 0 {
		return nil
	}
	all, snapshots, keep := p.running, slices.Clone(p.snapshots), p.keep
	return func() error {
		begun := time.Now()
		defer func() { p.took = time.Since(begun) }()
		for _, s := range snapshots {
			if _, err := s.write(dir); err != nil {
				return err
			}
		}
		if len(snapshots) > 0 {
			if err := history.Keep(dir, keep); err != nil {
				return err
			}
		}
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

// published is what a job has done, for the log.
type published struct {
	seq              uint64 // the record that is shown
	files, snapshots int
	bytes            int64 // of the files
	took             time.Duration
}

// ended notes what a job has done; of one that failed nothing counts.
func (p *publisher) ended(err error) (done published) {
	done = published{seq: p.seq, files: len(p.running), snapshots: p.writing, took: p.took}
	for _, r := range p.running {
		if err == nil {
			*r.file = shown{seq: r.seq, size: r.size, grown: r.file.grown - r.grown}
			done.bytes += r.size
			if r.file == &p.state {
				p.status = r.status
			}
		}
	}
	if err == nil {
		p.snapshots = p.snapshots[min(p.writing, len(p.snapshots)):]
	}
	p.running, p.writing = nil, 0
	return done
}
