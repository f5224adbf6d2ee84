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

// Append accepts a message of the conversation, in order, without waiting for the disk.
// It is durable when a later Sync returns nil. Append sets the ID and the time if m has
// none. It hides credentials before anything is stored, see [Policy]. ErrBacklogFull
// means that too much waits for the disk and the message was not accepted. A
// [*PausedError] means that it was accepted and the session cannot write at the moment.
// A message has at most 8 MiB as JSON, which is checked first: hiding takes some 30 µs a KiB of the
// caller's time.
func (s *Session) Append(m *session.Message) error {
	if m == nil {
		return absent("append message", s.id.String(), "message")
	}
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
		err = s.fits(len(body)) // before the redaction, which costs more than all else
	}
	if err == nil {
		plain := body
		body, err = s.redactJSON(body)
		if err == nil && !bytes.Equal(body, plain) {
			redacted, err = wire.DecodeMessage(body) // again: the redaction may have made an ID too long
		}
	}
	if err != nil {
		return &Error{Op: "append message", Path: s.id.String(), Class: writer.ClassInvalid, Err: err}
	}
	// Open tool calls are matched by their stored IDs, which are redacted.
	calls := &session.Message{ToolCalls: slices.Clone(redacted.ToolCalls), ToolCallID: redacted.ToolCallID}
	return s.append(actors.Entry{Message: calls, Body: body})
}

// AppendEvent accepts one event of the transcript, any JSON object, as Append accepts a
// message.
func (s *Session) AppendEvent(event strictjson.Value) error {
	body, err := strictjson.AppendCompact(make([]byte, 0, len(event)), event)
	if err == nil && body[0] != '{' {
		err = errors.New("it is no JSON object")
	}
	if err != nil {
		return &Error{Op: "append event", Path: s.id.String(), Class: writer.ClassInvalid, Err: err}
	}
	if err = s.fits(len(body)); err != nil {
		return err
	}
	if body, err = s.redactJSON(body); err != nil {
		return err
	}
	return s.append(actors.Entry{Body: body})
}

// Record accepts the outcome of one attempt, without waiting for the disk. The next commit
// writes it to the journal. Record redacts the texts of a. The record lists the changed files
// of a only if the last Checkpoint did not record them.
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
	if err := s.fits(len(e.Body)); err != nil {
		return err
	}
	return s.actor.Append(e)
}

// fits returns an error for a message or an event of too many bytes of JSON.
func (s *Session) fits(n int) error {
	if n <= maxEntry {
		return nil
	}
	return &Error{Op: "append", Path: s.id.String(), Class: writer.ClassInvalid, Err: fmt.Errorf("%d bytes, more than %d", n, maxEntry)}
}

// maxEntry bounds a message or an event, in bytes of JSON.
const maxEntry = journal.MaxBody - 256

// closeCalls answers the tool calls that the last holder left open. A model may require an
// answer to each call before it continues the conversation.
func (s *Session) closeCalls(open []string) error {
	for _, id := range open {
		m := &session.Message{Role: session.RoleTool, ToolCallID: id, Content: session.Text("interrupted: the session ended before this call had an answer")}
		err := s.Append(m)
		if _, paused := errors.AsType[*PausedError](err); err != nil && !paused { // a pause is no failure here: the answer was accepted
			return err
		}
	}
	return nil
}

// Messages yields the durable messages of a session, in order. It holds one of them in
// memory at a time. An error that wraps [folder.ErrDamaged] marks a place where some are
// lost; the iteration continues behind it. It takes no lock.
func (s *Store) Messages(id session.ID) iter.Seq2[session.Message, error] {
	return mapped(s.appended(id, "", false), messageOf)
}

// MessagesUpTo is Messages up to the message with the UUID last, which is the last one. If there
// is no such message, it yields one error, which wraps ErrNotFound.
func (s *Store) MessagesUpTo(id session.ID, last string) iter.Seq2[session.Message, error] {
	return mapped(s.appended(id, last, false), messageOf)
}

func messageOf(a *folder.Appended) session.Message { return a.Message }

// Messages yields the durable messages of the session. These are at least the ones that
// were appended before the last successful Sync.
func (s *Session) Messages() iter.Seq2[session.Message, error] { return s.store.Messages(s.id) }

// appended yields a session's messages up to the one with the UUID last, or all for "". With
// events set it yields the events of its transcript.
func (s *Store) appended(id session.ID, last string, events bool) iter.Seq2[folder.Appended, error] {
	return func(yield func(folder.Appended, error) bool) {
		if !s.saves() && last == "" {
			return
		}
		ld, err := s.readWhole(id)
		if err != nil {
			yield(folder.Appended{}, err)
			return
		}
		defer ld.Dir.Close()
		at := ld.At
		if last != "" {
			if at, err = folder.FindMessage(ld.Dir, at, last); err != nil {
				yield(folder.Appended{}, fmt.Errorf("messages of session %s: %w", id, err))
				return
			}
		}
		folder.ReadAppended(ld.Dir, at, events)(yield)
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

// Transcript yields the durable events of a session as JSON objects, in order. Errors are
// those of Messages.
func (s *Store) Transcript(id session.ID) iter.Seq2[strictjson.Value, error] {
	return mapped(s.appended(id, "", true), func(a *folder.Appended) strictjson.Value { return a.Object })
}

// Output begins to store what an attempt prints, redacted, in the session's folder. The
// output is not part of the State: no commit waits for it, and its errors do not pause the
// session. The caller closes the Writer.
func (s *Session) Output(iteration int, a output.Attempt) (*output.Writer, error) {
	if !s.store.saves() {
		return output.Discard(s.redact), nil
	}
	name := s.path(output.Dir)
	root := s.store.root()
	if err := root.Mkdir(name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("keep output: %w", writer.NewError("create", root.Name()+"/"+name, writer.NotCommitted, err))
	}
	dir, err := writer.OpenDir(root, name)
	if err != nil {
		return nil, fmt.Errorf("keep output: %w", err)
	}
	w, err := output.Begin(dir, s.redact, iteration, a)
	if err == nil {
		w.Compress(s.store.opts.Policy.Compression, s.compressOutput)
	}
	return w, err
}

// compressOutput runs a job in the background. Only Close waits for it.
func (s *Session) compressOutput(job func() error) {
	done := make(chan struct{})
	s.store.outputs.Store(done, nil)
	go func() {
		defer close(done)
		defer s.store.outputs.Delete(done)
		if err := job(); err != nil {
			s.log.Warn().Err(err).Msg("an output is not compressed and stays as it is")
		}
	}()
}

// awaitOutputs waits until outputs are compressed or ctx ends. One that is not stays as it is.
func (s *Store) awaitOutputs(ctx context.Context) {
	s.outputs.Range(func(done, _ any) bool {
		select {
		case <-done.(chan struct{}): //nolint:forcetypeassert // nothing else is there
			return true
		case <-ctx.Done():
			return false
		}
	})
}

// Outputs returns the attempts of a session that have output, the oldest first. It takes no
// lock. The error wraps ErrNotFound if there is no such session.
func (s *Store) Outputs(id session.ID) ([]output.Stored, error) {
	if !s.saves() {
		return nil, nil
	}
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

// ReadOutput opens a file of an attempt that Outputs returned. The error wraps
// fs.ErrNotExist if there is no such file.
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

// outputDir opens the folder with a session's output. The error is fs.ErrNotExist if there is
// none, and ErrNotFound if there is no such session.
func (s *Store) outputDir(id session.ID) (writer.FS, error) {
	dir, err := s.sessionDir(id)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	return writer.OpenDir(dir, output.Dir)
}

// Log calls fn with every intact record above a number in a session's journal, the oldest
// first, without a lock. An error of fn ends the iteration and is returned.
func (s *Store) Log(id session.ID, above uint64, fn func(record.Record) error) error {
	if fn == nil {
		return absent("read log", id.String(), "function")
	}
	_, err := s.logAbove(id, above, fn)
	return err
}

// logAbove is Log and returns how far the journal was read.
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

// watchEvery is the pause between two checks of Watch whether the journal has grown.
const watchEvery = 250 * time.Millisecond

// Watch is Log, and then calls fn with each record that is appended, until ctx ends or fn
// returns an error. When ctx ends Watch returns nil. fn may see a record before it is
// durable.
func (s *Store) Watch(ctx context.Context, id session.ID, above uint64, fn func(record.Record) error) error {
	if fn == nil || ctx == nil {
		return absent("watch session", id.String(), "function or context")
	}
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	var seen journal.Extent
	grown := func(dir writer.FS) (bool, error) { return journal.Grown(dir, seen), nil }
	for {
		if is, err := within(s, "log of", id, grown); is || err != nil { // logAbove then returns the error
			far, err := s.logAbove(id, above, func(r record.Record) error {
				above = r.Seq
				return fn(r)
			})
			if err != nil && !errors.Is(err, fs.ErrNotExist) { // else a segment was dropped meanwhile: try again
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

// Cursor returns the record up to which a named reader has read a session's log, or 0 if
// the reader has no cursor yet. It takes no lock.
func (s *Store) Cursor(id session.ID, name string) (uint64, error) {
	return within(s, "cursor of", id, func(dir writer.FS) (uint64, error) { return folder.Cursor(dir, name) })
}

// MoveCursor records durably that a named reader has read a session's log up to record seq.
// Records above seq are then not dropped, even beyond JournalBytes, until the cursor is moved
// again or its file is removed. A cursor never goes back. Only the reader may move its cursor;
// no lock is taken.
func (s *Store) MoveCursor(id session.ID, name string, seq uint64) error {
	_, err := within(s, "cursor of", id, func(dir writer.FS) (struct{}, error) { return struct{}{}, folder.MoveCursor(dir, name, seq) })
	return err
}

// Gaps returns the places in a session's log where records are damaged or missing, in order. Log leaves
// these out. It takes no lock.
func (s *Store) Gaps(id session.ID) ([]journal.Gap, error) {
	return within(s, "log of", id, func(dir writer.FS) ([]journal.Gap, error) {
		log, err := journal.Read(dir, 0, true)
		if err != nil {
			return nil, fmt.Errorf("log of session %s: %w", id, err)
		}
		return log.Gaps(), nil
	})
}

// Began returns the first record from which a session's log has the State. It is 1, or a
// later one if earlier records were dropped except for messages, events and attempts.
func (s *Store) Began(id session.ID) (uint64, error) {
	return within(s, "log of", id, journal.Began)
}
