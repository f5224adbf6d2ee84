package lifecycle

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/lopen-dev/lopen/actors"
	"github.com/lopen-dev/lopen/lifecycle/commit"
	"github.com/lopen-dev/lopen/lifecycle/folder"
	"github.com/lopen-dev/lopen/lifecycle/output"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
	"github.com/lopen-dev/lopen/lifecycle/wire"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/journal"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

// Append accepts a message of the conversation, in order, without waiting: Sync says
// when it is durable. An ID and a time are set where m has none. What looks like a
// credential is hidden before anything is stored, see [Policy]. [ErrBacklogFull]
// says that too much waits for the disk. A [*PausedError] says that the message was
// accepted and that the session cannot write at the moment. A message has at most 8 MiB.
func (s *Session) Append(m *session.Message) error {
	if m.ID == "" {
		id, err := uuid.NewV7()
		if err != nil {
			return fmt.Errorf("append message: %w", err)
		}
		m.ID = id.String()
	}
	if m.Time.IsZero() {
		m.Time = s.store.opts.Now().UTC()
	}
	if err := m.Validate(); err != nil {
		return &Error{Op: "append message", Path: s.id.String(), Class: writer.ClassInvalid, Err: err}
	}
	redacted := *m
	body, err := wire.EncodeMessage(m)
	if err == nil {
		plain := body
		body, err = s.redactJSON(body)
		if err == nil && !bytes.Equal(body, plain) {
			redacted, err = wire.DecodeMessage(body) // what was hidden may have made an ID too long
		}
	}
	if err != nil {
		return &Error{Op: "append message", Path: s.id.String(), Class: writer.ClassInvalid, Err: err}
	}
	// The open calls are known by the IDs that are stored.
	calls := &session.Message{ToolCalls: slices.Clone(redacted.ToolCalls), ToolCallID: redacted.ToolCallID}
	return s.append(actors.Entry{Message: calls, Body: body})
}

// AppendEvent accepts one event of the transcript: any JSON object. It is treated as Append treats a message.
func (s *Session) AppendEvent(event strictjson.Value) error {
	body, err := strictjson.AppendCompact(make([]byte, 0, len(event)), event)
	if err == nil && body[0] != '{' {
		err = errors.New("it is no JSON object")
	}
	if err != nil {
		return &Error{Op: "append event", Path: s.id.String(), Class: writer.ClassInvalid, Err: err}
	}
	if body, err = s.redactJSON(body); err != nil {
		return err
	}
	return s.append(actors.Entry{Body: body})
}

// Record accepts the outcome of one attempt. The next commit writes it to the journal. Its
// texts are redacted. It names only the changed files that the last Checkpoint did not record.
func (s *Session) Record(a record.Attempt) error {
	a.Tail, a.CheckTail, a.Failure = s.Redact(a.Tail), s.Redact(a.CheckTail), s.Redact(a.Failure)
	a.AgentError, a.Model, a.AgentSession = s.Redact(a.AgentError), s.Redact(a.Model), s.Redact(a.AgentSession)
	a.Command = s.RedactArgs(a.Command)
	a.Denied = slices.Clone(a.Denied)
	for i, text := range a.Denied {
		a.Denied[i] = s.Redact(text)
	}
	if a.Check != nil {
		check := *a.Check
		check.Command = s.Redact(check.Command)
		a.Check = &check
	}
	size, err := a.Size()
	if err != nil {
		return &Error{Op: "record attempt", Path: s.id.String(), Class: writer.ClassInvalid, Err: err}
	}
	return s.append(commit.AttemptRecorded(&a, size, s.recorded.Load()))
}

func (s *Session) append(e actors.Entry) error {
	if len(e.Body) > maxEntry {
		return &Error{Op: "append", Path: s.id.String(), Class: writer.ClassInvalid, Err: fmt.Errorf("%d bytes, more than %d", len(e.Body), maxEntry)}
	}
	return s.actor.Append(e)
}

// maxEntry bounds a message and an event, in bytes of JSON.
const maxEntry = journal.MaxBody - 256

// closeCalls answers the tool calls that the last holder left open, so that the
// conversation can continue where a model insists on an answer to each.
func (s *Session) closeCalls(open []string) error {
	for _, id := range open {
		m := &session.Message{Role: session.RoleTool, ToolCallID: id, Content: session.Text("interrupted: the session ended before this call had an answer")}
		err := s.Append(m)
		if _, paused := errors.AsType[*PausedError](err); err != nil && !paused { // or it was accepted, and the caller sees the pause
			return err
		}
	}
	return nil
}

// Messages returns the durable messages of a session, in order, with memory for one
// of them. An error that wraps [folder.ErrDamaged] is a place where some are lost; the
// iteration continues behind it. It takes no lock.
func (s *Store) Messages(id session.ID) iter.Seq2[session.Message, error] {
	return mapped(s.appended(id, false), func(a *folder.Appended) session.Message { return a.Message })
}

// Messages are those of the session that are durable: what was appended before the
// last Sync, at least.
func (s *Session) Messages() iter.Seq2[session.Message, error] { return s.store.Messages(s.id) }

// appended iterates over a session's messages or events.
func (s *Store) appended(id session.ID, events bool) iter.Seq2[folder.Appended, error] {
	return func(yield func(folder.Appended, error) bool) {
		ld, err := s.readWhole(id)
		if err != nil {
			yield(folder.Appended{}, err)
			return
		}
		defer ld.Dir.Close()
		folder.ReadAppended(ld.Dir, ld.At, events)(yield)
	}
}

func mapped[T any](all iter.Seq2[folder.Appended, error], of func(*folder.Appended) T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for a, err := range all {
			if !yield(of(&a), err) {
				return
			}
		}
	}
}

// Transcript returns the durable events of a session as JSON objects, in order. Errors are as with Messages.
func (s *Store) Transcript(id session.ID) iter.Seq2[strictjson.Value, error] {
	return mapped(s.appended(id, true), func(a *folder.Appended) strictjson.Value { return a.Object })
}

// Output begins to store what an attempt prints, redacted, in the session's folder. It is
// not part of the State: nothing waits for it, and no failure of it pauses the session. The
// caller closes it.
func (s *Session) Output(iteration int, a output.Attempt) (*output.Writer, error) {
	name := s.path(output.Dir)
	root := s.store.root()
	if err := root.Mkdir(name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("keep output: %w", writer.NewError("create", root.Name()+"/"+name, writer.NotCommitted, err))
	}
	dir, err := writer.OpenDir(root, name)
	if err != nil {
		return nil, fmt.Errorf("keep output: %w", err)
	}
	return output.Begin(dir, s.redact, iteration, a)
}

// Outputs returns the attempts of a session of which there is output, the oldest first. It
// takes no lock. ErrNotFound says that there is no such session.
func (s *Store) Outputs(id session.ID) ([]output.Stored, error) {
	dir, err := s.outputDir(id)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var all []output.Stored
	if err == nil {
		defer dir.Close()
		all, err = output.List(dir)
	}
	if err != nil {
		return nil, fmt.Errorf("list output of session %s: %w", id, err)
	}
	return all, nil
}

// ReadOutput opens a file of an attempt that Outputs names. An error that wraps
// fs.ErrNotExist says that there is none.
func (s *Store) ReadOutput(id session.ID, name string, of output.File) (*output.Reader, error) {
	dir, err := s.outputDir(id)
	var r *output.Reader
	if err == nil {
		r, err = output.OpenReader(dir, name, of)
	}
	if err != nil {
		return nil, fmt.Errorf("read output of session %s: %w", id, err)
	}
	return r, nil
}

// outputDir opens the folder with a session's output. fs.ErrNotExist says that it has none,
// ErrNotFound that there is no such session.
func (s *Store) outputDir(id session.ID) (writer.FS, error) {
	dir, err := s.sessionDir(id)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	return writer.OpenDir(dir, output.Dir)
}

// Log calls fn with every record of a session's journal above a number that is
// whole, oldest first, without a lock. An error of fn ends it and is returned.
func (s *Store) Log(id session.ID, above uint64, fn func(record.Record) error) error {
	_, err := s.logAbove(id, above, fn)
	return err
}

// logAbove is Log, and says how far the journal went.
func (s *Store) logAbove(id session.ID, above uint64, fn func(record.Record) error) (journal.Extent, error) {
	return within(s, "log of", id, func(dir writer.FS) (far journal.Extent, err error) {
		log, err := journal.Read(dir, above, above == 0)
		if err != nil {
			return far, fmt.Errorf("log of session %s: %w", id, err)
		}
		return log.Extent(), log.Lines(log.Above(above), func(_ *journal.Ref, line []byte) error {
			rec, err := wire.DecodeRecord(line)
			if err != nil {
				return folder.Unreadable("read journal", dir.Name(), err)
			}
			return fn(rec)
		})
	})
}

// watchEvery is how often Watch looks whether the journal has grown.
const watchEvery = 250 * time.Millisecond

// Watch is Log, and continues with each record that is appended until ctx ends or
// fn returns an error. A record may be seen before it is durable.
func (s *Store) Watch(ctx context.Context, id session.ID, above uint64, fn func(record.Record) error) error {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	var seen journal.Extent
	grown := func(dir writer.FS) (bool, error) { return journal.Grown(dir, seen), nil }
	for {
		if is, err := within(s, "log of", id, grown); is || err != nil { // reading it says why
			far, err := s.logAbove(id, above, func(r record.Record) error {
				above = r.Seq
				return fn(r)
			})
			if err != nil && !errors.Is(err, fs.ErrNotExist) { // a segment may have been dropped meanwhile
				return err
			}
			seen = far
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// Cursor returns the record up to which a reader has read a session's log: 0 for one that
// has no cursor yet. It takes no lock.
func (s *Store) Cursor(id session.ID, name string) (uint64, error) {
	return within(s, "cursor of", id, func(dir writer.FS) (uint64, error) { return folder.Cursor(dir, name) })
}

// MoveCursor records durably that a reader has read a session's log up to a record. From then on
// records above it are not dropped, whatever JournalBytes allows, until it is moved again or
// its file is removed. It never goes back. The reader is the only one that moves its cursor; no lock is taken.
func (s *Store) MoveCursor(id session.ID, name string, seq uint64) error {
	_, err := within(s, "cursor of", id, func(dir writer.FS) (struct{}, error) { return struct{}{}, folder.MoveCursor(dir, name, seq) })
	return err
}

// Began returns the first record from which on a session's log has the State: 1, or a later
// one where the records before were dropped but for messages, events and attempts.
func (s *Store) Began(id session.ID) (uint64, error) {
	return within(s, "log of", id, journal.Began)
}
