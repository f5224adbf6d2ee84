package commit

import (
	"slices"
	"time"

	"github.com/lopen-dev/lopen/actors"
	"github.com/lopen-dev/lopen/lifecycle/folder"
	"github.com/lopen-dev/lopen/lifecycle/history"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/wire"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/journal"
)

// SmallFile is the size in bytes up to which each publication replaces a readable file. A
// larger file is replaced only when the journal has grown by its size, so that the bytes
// written depend on the changes and not on the size of the plan.
const SmallFile = 1 << 20

// publisher replaces the two readable files of a session and writes its copies and
// snapshots. Owned by the session's actor.
type publisher struct {
	state, metrics shown
	copies         [2]copied      // of the messages and of the transcript
	status         session.Status // the status in state.json; "" if it is not known
	snapshots      []snapshot     // not written yet
	keep           int            // number of snapshots of each kind that stay; 0 means all

	unnamed []journal.Named // snapshots that were written and that no note names yet

	running *publication // the last one that was returned; nil if nothing was due
	writing int          // number of snapshots in running
}

// shown is what is known of one readable file.
type shown struct {
	seq    uint64 // the record whose State it has
	synced bool   // the file is durable
	size   int64  // in bytes
	grown  int64  // bytes of records since it was replaced
	named  journal.Named
}

// maxSnapshots bounds how many States wait to be written to history/.
const maxSnapshots = 32

// remember adds a State that is to be written to history/. Beyond maxSnapshots it drops the
// oldest, which is still in the journal.
func (p *publisher) remember(s snapshot, keep int) {
	if len(p.snapshots) == maxSnapshots {
		p.snapshots, p.writing = p.snapshots[1:], max(p.writing-1, 0)
	}
	p.snapshots, p.keep = append(p.snapshots, s), keep
}

// appended gives the messages and events among all to the copies.
func (p *publisher) appended(all []actors.Entry) {
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

// looked reads the sizes of the readable files and the status in state.json after Open.
func (p *publisher) looked(dir writer.FS) {
	for name, file := range map[string]*shown{folder.StateFile: &p.state, folder.MetricsFile: &p.metrics} {
		if info, err := dir.Lstat(name); err == nil {
			file.size = info.Size()
		}
	}
	head := make([]byte, folder.SummaryBytes)
	if n, _, err := writer.ReadHead(dir, folder.StateFile, head); err == nil {
		sum, _ := wire.DecodeSummary(head[:n])
		p.status = sum.Status
	}
}

// wanted reports whether a file has to be replaced to show record seq, with force durably.
func (s *shown) wanted(seq uint64, force bool) bool {
	if force {
		return s.seq < seq || !s.synced
	}
	return s.seq < seq && (s.size <= SmallFile || s.grown >= s.size)
}

// A replacement is one file's part of a publication.
type replacement struct {
	file   *shown
	name   string
	encode func() []byte
	status session.Status // the status that the file will have
	next   shown          // the new value of file; run sets its size and named
}

// grew adds to the bytes of records since the files were replaced.
func (p *publisher) grew(bytes int64) {
	p.state.grown += bytes
	p.metrics.grown += bytes
}

// A publication is what is due at one moment. The goroutine that runs it owns it until run
// has returned.
type publication struct {
	dir        writer.FS
	at         session.Mark
	durable    bool
	quarantine func(name string, why error) error

	files     []*replacement
	copies    [2]*copied // nil for a copy that is not due
	snapshots []snapshot
	keep      int // snapshots of each kind

	wrote []journal.Named // the snapshots that run has written
	took  time.Duration
}

// publication adds to due what has to be written for a State, and returns nil if that is
// nothing. A changed status is published at once even in a large file, because a listing
// shows it and a run looks there for an unfinished session.
func (p *publisher) publication(st *session.State, due publication) *publication {
	at, force := due.at, due.durable
	p.running = nil
	add := func(name string, file *shown, seq uint64, now bool, encode func() []byte) {
		if file.wanted(seq, force) || now && file.seq < seq {
			due.files = append(due.files, &replacement{file, name, encode, st.Status(), shown{seq: at.Seq, synced: force, grown: file.grown}})
		}
	}
	add(folder.MetricsFile, &p.metrics, at.Iterations, false, func() []byte { return wire.EncodeMetrics(st, at) })
	add(folder.StateFile, &p.state, at.Seq, p.status != st.Status(), func() []byte { return wire.EncodeState(st, at) })
	for i, count := range []uint64{at.Messages, at.Transcript} {
		if c := p.copies[i]; c.due(count, force) {
			c.name, c.events = copyFiles[i], i == 1
			due.copies[i] = &c
			p.copies[i].waiting, p.copies[i].held, p.copies[i].known = nil, 0, true
		}
	}
	due.snapshots, due.keep, p.writing = slices.Clone(p.snapshots), p.keep, len(p.snapshots)
	if due.files == nil && len(due.snapshots) == 0 && due.copies == [2]*copied{} {
		return nil
	}
	p.running = &due
	return p.running
}

// run writes everything that is due.
func (j *publication) run() error {
	begun := time.Now()
	defer func() { j.took = time.Since(begun) }()
	if err := j.writeSnapshots(); err != nil {
		return err
	}
	for _, c := range j.copies {
		if c == nil {
			continue
		}
		if err := c.update(j.dir, j.at, j.durable, j.quarantine); err != nil {
			return err
		}
	}
	replace := writer.ReplaceUnsynced
	if j.durable {
		replace = writer.ReplaceFile
	}
	for _, r := range j.files {
		data := r.encode()
		if err := replace(j.dir, r.name, data, filePerm); err != nil {
			return err
		}
		r.next.size = int64(len(data))
		r.next.named = journal.Named{File: r.name, Epoch: j.at.Epoch, Seq: j.at.Seq, SHA256: folder.SHA256(data)}
	}
	return nil
}

func (j *publication) writeSnapshots() error {
	for _, s := range j.snapshots {
		m, err := s.write(j.dir)
		if err != nil {
			return err
		}
		j.wrote = append(j.wrote, nameOf(m))
	}
	if len(j.snapshots) == 0 {
		return nil
	}
	return history.Prune(j.dir, j.keep)
}

// published is what a publication has written, for the log.
type published struct {
	seq              uint64 // the record whose State is published
	files, snapshots int
	bytes            int64 // size of the files
	took             time.Duration
}

// ended takes over the result of the last publication. After an error the files, copies and
// snapshots count as not written.
func (p *publisher) ended(err error) (done published) {
	j := p.running
	done = published{seq: j.at.Seq, files: len(j.files), snapshots: p.writing, took: j.took}
	for _, r := range j.files {
		if err == nil {
			r.next.grown = r.file.grown - r.next.grown
			*r.file = r.next
			done.bytes += r.next.size
			if r.file == &p.state {
				p.status = r.status
			}
		}
	}
	p.unnamed = append(p.unnamed, j.wrote...)
	if err == nil {
		p.snapshots = p.snapshots[min(p.writing, len(p.snapshots)):]
	}
	for i, c := range j.copies {
		now := &p.copies[i]
		switch {
		case c == nil:
		case err != nil:
			now.forget()
		default:
			now.size, now.synced = c.size, c.synced && len(now.waiting) == 0
		}
	}
	p.running, p.writing = nil, 0
	return done
}

// note appends a note that names both readable files and the snapshots that no note names
// yet. It names a file again that an earlier note named, so that a reader that begins with
// the log's newest segment finds both. After an error the next note names the same.
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

// nameOf returns the name of a snapshot for a note.
func nameOf(m history.Manifest) journal.Named {
	return journal.Named{File: m.File(), Epoch: m.Epoch, Seq: m.Seq, SHA256: m.SHA256}
}
