package carry

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lopen-dev/lopen/lifecycle/folder"
	"github.com/lopen-dev/lopen/lifecycle/history"
	"github.com/lopen-dev/lopen/lifecycle/output"
	"github.com/lopen-dev/lopen/lifecycle/redact"
	"github.com/lopen-dev/lopen/lifecycle/repair"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
	"github.com/lopen-dev/lopen/lifecycle/wire"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/codec"
	"github.com/lopen-dev/lopen/writer/envelope"
	"github.com/lopen-dev/lopen/writer/journal"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

// A Rewriting says what becomes of a session on its way.
type Rewriting struct {
	ID         session.ID       // of the result; the same one or another
	Redact     *redact.Redactor // hides credentials in all texts; nil: they stay
	NoMessages bool             // of messages and events stays who said something, and when
	// NoCheckpoints leaves out by which checkpoint the session knows the project's files, and
	// to which one it goes back. That they were made is still told.
	NoCheckpoints bool
	// Elsewhere leaves out what only its place has: the linked work tree in which the session worked, and
	// the process whose turn is in progress.
	Elsewhere bool
	// Paths are the project's folder there and here. Where the words of the settings' command
	// and check begin with the first, they get the second. "" changes nothing.
	Paths [2]string
	// IDs are the sessions that have another ID now: a fork names its origin.
	IDs map[string]string
}

// The small files of a session's folder.
const (
	metaFile     = "meta.json"
	recoveryFile = "recovery.json"
)

// Rewrite writes a session's folder anew into the folder to, which has none of its files: the
// log, the logs that it inherited, the snapshots that they name, meta.json, recovery.json and,
// unless NoMessages is set, the output. It takes no lock, and leaves what is not durable yet
// out, and a rewind that was begun and not ended: the State changes at its end only. The
// readable files are not written: they follow from the log. Records keep their numbers, so that
// checkpoints, forks and messages are found by the same ones.
//
// Everything but the output is durable when Rewrite returns nil; after an error to has to be
// thrown away. It holds one line or one snapshot in memory, and where each
// record is, some 200 bytes, while it loads what it wrote. A session with a damaged record
// is refused with class corrupt, since the result would not show the damage.
func Rewrite(from, to writer.FS, id session.ID, r Rewriting) error {
	for try := 1; ; try++ {
		w := &rewriter{from: from, to: to, texts: texts{Rewriting: r}}
		w.snapshot = w.rewriteSnapshot
		err := w.session(id)
		if !errors.Is(err, fs.ErrNotExist) || try == folder.Tries {
			return err
		}
		if err := w.clear(); err != nil { // a writer rewrote or removed files meanwhile
			return err
		}
	}
}

// A rewriter writes one session anew.
type rewriter struct {
	texts
	from, to writer.FS
	begun    *session.Rewinding // a rewind that was not ended; nil if there is none
	wrapped  []byte             // a record's body in braces
}

func (w *rewriter) session(id session.ID) error {
	ld, err := folder.Load(w.from, id)
	if err != nil {
		return err
	}
	if w.Redact != nil {
		w.Redact = w.Redact.Also(slugsIn(ld.State, w.Redact))
	}
	w.without = nil
	if w.Elsewhere {
		w.without = append(w.without, "worktree", "holder")
	}
	if w.begun = ld.At.Rewinding; w.begun != nil {
		w.without = append(w.without, "rewinding") // in snapshots
	}
	err = journal.Rewrite(w.from, w.to, journal.Rewriting{Session: w.ID.String(), Upto: ld.At.Seq, Named: w.named, Body: func(r *journal.Ref, line, body []byte) ([]byte, error) {
		w.at = history.ID{Epoch: r.Epoch, Seq: r.Seq}
		return w.body(r, line, body)
	}})
	w.at = history.ID{}
	for k, upto := range ld.At.Inherits {
		if err == nil {
			err = w.inherited(folder.InheritedLog(k), upto)
		}
	}
	if err == nil {
		err = w.small()
	}
	if err == nil && !w.NoMessages {
		err = w.output()
	}
	if err == nil {
		err = w.to.SyncDir(".")
	}
	if err != nil {
		return err
	}
	return w.check(ld)
}

// clear removes what an interrupted try wrote.
func (w *rewriter) clear() error {
	entries, err := w.to.ReadDir(".")
	if err != nil {
		return writer.NewError("list", w.to.Name(), writer.NotCommitted, err)
	}
	for _, e := range entries {
		switch name := e.Name(); {
		case journal.IsSegment(name), name == journal.ListFile, name == history.Dir, name == inheritedDir, name == output.Dir, name == metaFile, name == recoveryFile:
			if err := w.to.RemoveAll(name); err != nil {
				return writer.NewError("remove", filepath.Join(w.to.Name(), name), writer.NotCommitted, err)
			}
		}
	}
	return nil
}

// inherited writes the messages and events of a log that a fork continues. It keeps the name
// of its session. Nothing else of the log is ever read, so the result has no more, and damage
// that cost a message costs it there as well.
func (w *rewriter) inherited(log string, upto uint64) error {
	from, err := writer.OpenDir(w.from, log)
	if errors.Is(err, fs.ErrNotExist) {
		return &writer.Error{Op: "read journal", Path: filepath.Join(w.from.Name(), log), Class: writer.ClassCorrupt, Err: errors.New("it is missing")}
	}
	if err != nil {
		return err
	}
	defer from.Close()
	for _, name := range []string{inheritedDir, log} {
		if err := writer.MkdirDurable(w.to, name); err != nil {
			return err
		}
	}
	to, err := writer.OpenDir(w.to, log)
	if err != nil {
		return err
	}
	defer to.Close()
	return journal.Rewrite(from, to, journal.Rewriting{Upto: upto, Entries: true, Body: w.body})
}

// body returns the new body of a record, nil if it stays.
func (w *rewriter) body(r *journal.Ref, line, body []byte) ([]byte, error) {
	if r.Entry && (w.NoMessages || w.Redact != nil) {
		rec, err := wire.DecodeRecord(line)
		switch {
		case err != nil:
			return nil, err
		case rec.Message != nil:
			rec.Message, err = w.message(rec.Message)
			return append(wire.EncodeAppended(rec), rec.Message...), err
		case rec.TranscriptEvent != nil:
			rec.TranscriptEvent, err = w.event(rec.TranscriptEvent)
			return append(wire.EncodeAppended(rec), rec.TranscriptEvent...), err
		}
	}
	begins, err := w.begins(line)
	if err != nil {
		return nil, err
	}
	if begins {
		defer func(was []string) { w.without = was }(w.without)
		w.without = append(slices.Clone(w.without), "rewind")
	}
	all := begins || w.Redact != nil || w.NoCheckpoints
	if !all && (r.Entry || !slices.ContainsFunc(ofPlace, func(member string) bool { return bytes.Contains(body, []byte(`"`+member+`":`)) })) {
		return nil, nil
	}
	w.wrapped = append(append(append(w.wrapped[:0], '{'), body...), '}')
	object, err := w.object(w.wrapped, recordShape)
	if err != nil {
		return nil, fmt.Errorf("record %d: %w", r.Seq, err)
	}
	return object[1 : len(object)-1], nil
}

// begins reports whether a record is the begin of the rewind that was not ended.
func (w *rewriter) begins(line []byte) (bool, error) {
	if w.begun == nil {
		return false, nil
	}
	rec, err := wire.DecodeRecord(line)
	return err == nil && rec.Event == record.EventRewindBegin && rec.Rewind != nil && rec.Rewind.Before == w.begun.Before, err
}

// named writes the snapshots anew that notes name, beside those of records, and returns their
// new names.
func (w *rewriter) named(all []journal.Named) (now []journal.Named, err error) {
	for _, n := range all {
		id := history.ID{Epoch: n.Epoch, Seq: n.Seq}
		if !strings.HasPrefix(n.File, id.Stem()) {
			continue // a readable file
		}
		if m, err := history.ReadManifest(w.from, id); errors.Is(err, fs.ErrNotExist) || err == nil && m.Reason == history.Large {
			continue // pruned meanwhile, or one of a record
		}
		m, err := w.writeSnapshot(id, n.SHA256)
		if err != nil {
			return nil, err
		}
		now = append(now, journal.Named{File: m.File(), Epoch: n.Epoch, Seq: n.Seq, SHA256: m.SHA256})
	}
	return now, nil
}

// rewriteSnapshot writes the snapshot of a record anew and returns its new checksum.
func (w *rewriter) rewriteSnapshot(id history.ID, sum string) (string, error) {
	m, err := w.writeSnapshot(id, sum)
	return m.SHA256, err
}

// writeSnapshot writes a snapshot with this checksum anew.
func (w *rewriter) writeSnapshot(id history.ID, sum string) (history.Manifest, error) {
	m, err := history.ReadManifest(w.from, id)
	if err != nil {
		return m, err
	}
	state, metrics, err := history.Read(w.from, id, sum)
	if err == nil {
		state, err = w.sealed(state, stateShape)
	}
	if err == nil {
		metrics, err = w.sealed(metrics, metricsShape)
	}
	if err != nil {
		return m, fmt.Errorf("snapshot %s: %w", id, err)
	}
	m.Session = w.ID.String()
	for i, task := range m.Tasks.Active {
		m.Tasks.Active[i] = w.taskID(task)
	}
	for i, task := range m.Tasks.Dependencies {
		m.Tasks.Dependencies[i] = w.taskID(task)
	}
	return history.Write(w.to, m, state, metrics, codec.Options{})
}

// small writes the small files. One that is damaged says nothing, and is left out.
func (w *rewriter) small() error {
	var meta struct {
		Name   string `json:"name,omitempty"`
		Pinned bool   `json:"pinned,omitempty"`
	}
	err := w.smallFile(metaFile, &meta, func() error {
		const most = 256 // bytes of a name
		name, n := w.Redact.String(meta.Name)
		if n > 0 {
			meta.Name = strings.ToValidUTF8(name[:min(len(name), most)], "")
		}
		return nil
	})
	if err != nil {
		return err
	}
	var note repair.Note
	return w.smallFile(recoveryFile, &note, func() error {
		note.Session = w.ID.String()
		data, err := strictjson.Marshal(note)
		if err == nil {
			data, _, err = w.Redact.JSON(data)
		}
		if err != nil {
			return err
		}
		return strictjson.Unmarshal(data, &note)
	})
}

func (w *rewriter) smallFile(name string, v any, change func() error) error {
	err := folder.ReadSmall(w.from, name, v)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, envelope.ErrCorrupt) {
		return nil
	}
	if err == nil {
		err = change()
	}
	if err == nil {
		err = folder.WriteSmall(w.to, name, v)
	}
	return err
}

func (w *rewriter) output() error {
	from, err := writer.OpenDir(w.from, output.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer from.Close()
	if err := writer.MkdirDurable(w.to, output.Dir); err != nil {
		return err
	}
	to, err := writer.OpenDir(w.to, output.Dir)
	if err != nil {
		return err
	}
	defer to.Close()
	return output.Copy(from, to, w.Redact, w.taskID)
}

// check loads what was written, and compares what must be the same.
func (w *rewriter) check(was *folder.Contents) error {
	now, err := folder.Load(w.to, w.ID)
	if err != nil {
		return err
	}
	a, b := countsOf(was), countsOf(now)
	a.begun = false
	if w.NoCheckpoints {
		a.checkpoint, a.undo = "", ""
	}
	if a != b {
		return &writer.Error{Op: "rewrite session", Path: w.to.Name(), Class: writer.ClassCorrupt, Err: fmt.Errorf("it became %+v of %+v", b, a)}
	}
	return nil
}

// counts are what the change of texts leaves as it is.
type counts struct {
	epoch, seq, messages, events  uint64
	incarnation, checkpoint, undo string
	begun                         bool // a rewind that was not ended
	tasks, iterations             int
	progress                      session.Progress
	status                        session.Status
}

func countsOf(ld *folder.Contents) counts {
	st, at := ld.State, ld.At
	if ld.Unedited != nil {
		st = ld.Unedited
	}
	return counts{at.Epoch, at.Seq, at.Messages, at.Transcript, at.Incarnation, at.Checkpoint, at.Undo, at.Rewinding != nil, st.NumTasks(), st.NumIterations(), st.Progress(), st.Status()}
}
