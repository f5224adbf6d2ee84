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

// SmallFile is the size in bytes up to which a readable file is replaced at each
// publication. A larger one is replaced when the journal has grown by its size,
// so that what is written follows the change and not the plan.
const SmallFile = 1 << 20

// publisher replaces the two readable files of a session and writes the snapshots
// that are due. Owned by its actor.
type publisher struct {
	state, metrics shown
	copies         [2]copied      // of the messages and the transcript
	status         session.Status // that state.json shows; "" where that is not known
	snapshots      []snapshot     // to be written
	keep           int            // snapshots of each kind; 0 is all

	unnamed []journal.Named // snapshots that were written and that no note names yet

	running *publication // that was handed out last; nil where nothing was due
	writing int          // of the snapshots, in that one
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

// remember takes a State that is to be written to history/. Where the disk is far behind, the
// oldest one is left to the journal.
func (p *publisher) remember(s snapshot, keep int) {
	if len(p.snapshots) == maxSnapshots {
		p.snapshots, p.writing = p.snapshots[1:], max(p.writing-1, 0)
	}
	p.snapshots, p.keep = append(p.snapshots, s), keep
}

// appended takes what was appended, for the copies.
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

// looked notes what the readable files of a session show that was opened.
func (p *publisher) looked(dir writer.FS) {
	for name, file := range map[string]*shown{folder.StateFile: &p.state, folder.MetricsFile: &p.metrics} {
		if info, err := dir.Lstat(name); err == nil {
			file.size = info.Size()
		}
	}
	head := make([]byte, folder.SummaryBytes)
	if n, err := writer.ReadHead(dir, folder.StateFile, head); err == nil {
		sum, _ := wire.DecodeSummary(head[:n])
		p.status = sum.Status
	}
}

// wanted says whether a file is to be replaced that should show a record.
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
	status session.Status // that it will show
	next   shown          // what is known of it when that has ended, which sets size and named
}

// grew notes what was appended to the journal.
func (p *publisher) grew(bytes int64) {
	p.state.grown += bytes
	p.metrics.grown += bytes
}

// A publication is what is due at one moment. It is owned by who runs it until that has
// ended.
type publication struct {
	dir        writer.FS
	at         session.Mark
	durable    bool
	quarantine func(name string, why error) error

	files     []*replacement
	copies    [2]*copied // nil for one that is not due
	snapshots []snapshot
	keep      int // snapshots of each kind

	wrote []journal.Named // snapshots
	took  time.Duration
}

// publication fills a publication of a State with what is due; nil when nothing is. A status
// that changed is shown at once, however large the file is: a listing shows it, and a run
// looks for an unfinished session there.
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

// run writes what is due.
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

// published is what a publication has done, for the log.
type published struct {
	seq              uint64 // the record that is shown
	files, snapshots int
	bytes            int64 // of the files
	took             time.Duration
}

// ended notes what the last publication has done; of one that failed nothing counts.
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

// note has the log vouch for both readable files, also for one that an earlier note
// names, and for the snapshots that none names yet: a reader that begins at the log's newest
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
