package lifecycle

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"time"

	"github.com/lopen-dev/lopen/actors"
	"github.com/lopen-dev/lopen/lifecycle/history"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/journal"
)

// small is the size in bytes up to which a readable file is replaced at each
// publication. A larger one is replaced when the journal has grown by its size,
// so that what is written follows the change and not the plan.
const small = 1 << 20

// publisher replaces the two readable files of a session and writes the snapshots
// that are to be kept. Owned by its actor.
type publisher struct {
	state, metrics shown
	copies         [2]copied      // of the messages and the transcript
	status         session.Status // that state.json shows; "" where that is not known
	snapshots      []snapshot     // to be written
	keep           int            // snapshots of each kind; 0 is all

	unnamed []journal.Named // snapshots that were written and that no note names yet

	running []*replacement  // of the job that was handed out
	copying [2]*copied      // likewise, of copies; nil of one that is not due
	wrote   []journal.Named // snapshots, by that job; likewise
	writing int             // of the snapshots, in that job
	seq     uint64          // the record that the job shows
	took    time.Duration   // by that job; written by it and read when it has ended
}

// shown is what is known of one readable file.
type shown struct {
	seq    uint64 // the record that it is of
	synced bool   // and durable
	size   int64  // bytes
	grown  int64  // bytes of records since it was replaced
	named  journal.Named
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

// said takes what was appended, for the copies.
func (p *publisher) said(all []actors.Entry) {
	for i := range all {
		switch e := &all[i]; {
		case e.Body == nil:
		case e.Message != nil:
			p.copies[0].add(e.Body)
		default:
			p.copies[1].add(e.Body)
		}
	}
}

// looked notes what the readable files of a session show that was opened.
func (p *publisher) looked(dir writer.FS) {
	for name, file := range map[string]*shown{stateFile: &p.state, metricsFile: &p.metrics} {
		if info, err := dir.Lstat(name); err == nil {
			file.size = info.Size()
		}
	}
	head := make([]byte, summaryBytes)
	if n, err := writer.ReadHead(dir, stateFile, head); err == nil {
		sum, _ := session.DecodeSummary(head[:n])
		p.status = sum.Status
	}
}

// wanted says whether a file is to be replaced that should show a record.
func (s *shown) wanted(seq uint64, force bool) bool {
	if force {
		return s.seq < seq || !s.synced
	}
	return s.seq < seq && (s.size <= small || s.grown >= s.size)
}

// A replacement is one file's part of a job.
type replacement struct {
	file   *shown
	name   string
	encode func() []byte
	status session.Status // that it will show
	next   shown          // what is known of it when the job is done, which sets size and named
}

// grew notes what was appended to the journal.
func (p *publisher) grew(bytes int64) {
	p.state.grown += bytes
	p.metrics.grown += bytes
}

// job replaces the files that are due; nil when none is. A status that changed is shown
// at once, however large the file is: a listing shows it, and a run looks for an
// unfinished session there.
func (p *publisher) job(dir writer.FS, st *session.State, at session.Mark, force bool, aside func(name string, why error) error) func() error {
	p.running, p.wrote, p.copying = nil, nil, [2]*copied{}
	add := func(name string, file *shown, due uint64, now bool, encode func() []byte) {
		if file.wanted(due, force) || now && file.seq < due {
			p.running = append(p.running, &replacement{file, name, encode, st.Status(), shown{seq: at.Seq, synced: force, grown: file.grown}})
		}
	}
	add(metricsFile, &p.metrics, at.Iterations, false, func() []byte { return session.EncodeMetrics(st, at) })
	add(stateFile, &p.state, at.Seq, p.status != st.Status(), func() []byte { return session.EncodeState(st, at) })
	p.writing, p.seq = len(p.snapshots), at.Seq
	for i, count := range []uint64{at.Messages, at.Transcript} {
		if c := p.copies[i]; c.due(count, force) {
			c.name, c.events = copyFiles[i], i == 1
			p.copying[i] = &c
			p.copies[i].waiting, p.copies[i].held, p.copies[i].known = nil, 0, true
		}
	}
	if p.running == nil && p.writing == 0 && p.copying == [2]*copied{} {
		return nil
	}
	all, snapshots, keep, copies := p.running, slices.Clone(p.snapshots), p.keep, p.copying
	return func() error {
		begun := time.Now()
		defer func() { p.took = time.Since(begun) }()
		for _, s := range snapshots {
			m, err := s.write(dir)
			if err != nil {
				return err
			}
			p.wrote = append(p.wrote, nameOf(m))
		}
		if len(snapshots) > 0 {
			if err := history.Keep(dir, keep); err != nil {
				return err
			}
		}
		for _, c := range copies {
			if c == nil {
				continue
			}
			if err := c.update(dir, at, force, aside); err != nil {
				return err
			}
		}
		for _, r := range all {
			data := r.encode()
			replace := writer.ReplaceUnsynced
			if force {
				replace = writer.ReplaceFile
			}
			if err := replace(dir, r.name, data, filePerm); err != nil {
				return err
			}
			r.next.size = int64(len(data))
			r.next.named = journal.Named{File: r.name, Epoch: at.Epoch, Seq: at.Seq, SHA256: sha256Of(data)}
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
			r.next.grown = r.file.grown - r.next.grown
			*r.file = r.next
			done.bytes += r.next.size
			if r.file == &p.state {
				p.status = r.status
			}
		}
	}
	p.unnamed = append(p.unnamed, p.wrote...)
	if err == nil {
		p.snapshots = p.snapshots[min(p.writing, len(p.snapshots)):]
	}
	for i, c := range p.copying {
		now := &p.copies[i]
		switch {
		case c == nil:
		case err != nil:
			now.forget()
		default:
			now.size, now.synced = c.size, c.synced && len(now.waiting) == 0
		}
	}
	p.running, p.copying, p.writing = nil, [2]*copied{}, 0
	return done
}

// note has the log vouch for both readable files, also for one that an earlier note
// names, and for the snapshots that none names yet: whoever reads the log from its newest
// segment on finds the pair there. Where the note cannot be written the next one says it.
func (p *publisher) note(log *journal.Writer) error {
	var all []journal.Named
	for _, file := range []*shown{&p.state, &p.metrics} {
		if file.named.File != "" {
			all = append(all, file.named)
		}
	}
	p.unnamed = p.unnamed[max(len(p.unnamed)-maxSnapshots, 0):]
	if all = append(all, p.unnamed...); len(all) == 0 {
		return nil
	}
	err := log.Note(all...)
	if err == nil {
		p.unnamed = nil
	}
	return err
}

// nameOf is how a note names a snapshot.
func nameOf(m history.Manifest) journal.Named {
	return journal.Named{File: m.ID().Name(), Epoch: m.Epoch, Seq: m.Seq, SHA256: m.SHA256}
}

func sha256Of(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
