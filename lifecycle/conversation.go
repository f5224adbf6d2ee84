package lifecycle

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/google/uuid"

	"github.com/lopen-dev/lopen/actors"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/journal"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

// ErrDamaged says that a message or an event is lost, and where: those behind it
// are not.
var ErrDamaged = errors.New("damaged")

// Append accepts a message of the conversation, in order, without waiting: Sync says
// when it is durable. An ID and a time are set where m has none. What looks like a
// credential is hidden before anything is kept, see [Policy]. [ErrBacklogFull]
// says that too much waits for the disk; a [*PausedError], that the message is
// kept and the disk does not take it at the moment. A message has at most 8 MiB.
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
	kept := *m
	body, err := session.EncodeMessage(m)
	if err == nil {
		plain := body
		body, err = s.redactJSON(body)
		if err == nil && !bytes.Equal(body, plain) {
			kept, err = session.DecodeMessage(body) // what was hidden may have made an ID too long
		}
	}
	if err != nil {
		return &Error{Op: "append message", Path: s.id.String(), Class: writer.ClassInvalid, Err: err}
	}
	// The open calls are known by the IDs that are kept.
	calls := &session.Message{ToolCalls: slices.Clone(kept.ToolCalls), ToolCallID: kept.ToolCallID}
	return s.append(actors.Entry{Message: calls, Body: body})
}

// AppendEvent accepts one event of the transcript: any JSON object. It is kept as Append keeps a message.
func (s *Session) AppendEvent(event json.RawMessage) error {
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

// Record accepts what came of one start of the command; it becomes part of the
// journal with the next commit. Its texts are redacted. Of the files only those are written
// that the last Checkpoint has not put on record.
func (s *Session) Record(a session.AttemptRecord) error {
	a.Tail, a.CheckTail, a.Failure = s.Redact(a.Tail), s.Redact(a.CheckTail), s.Redact(a.Failure)
	a.Said, a.Model, a.AgentSession = s.Redact(a.Said), s.Redact(a.Model), s.Redact(a.AgentSession)
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
	return s.append(attemptRecorded(&a, size, s.told.Load()))
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
// conversation can go on where a model insists on an answer to each.
func (s *Session) closeCalls(open []string) error {
	for _, id := range open {
		m := &session.Message{Role: session.RoleTool, ToolCallID: id, Content: session.Text("interrupted: the session ended before this call had an answer")}
		var paused *PausedError // the answer is kept, and the caller hears of it
		if err := s.Append(m); err != nil && !errors.As(err, &paused) {
			return err
		}
	}
	return nil
}

// Messages returns the durable messages of a session, in order, with memory for one
// of them. An error that wraps ErrDamaged is a place where some are lost; the
// iteration goes on behind it. It takes no lock.
func (s *Store) Messages(id session.ID) iter.Seq2[session.Message, error] {
	return mapped(s.appended(id, false), func(a *appendedOne) session.Message { return a.message })
}

// Messages are those of the session that are durable: what was appended before the
// last Sync, at least.
func (s *Session) Messages() iter.Seq2[session.Message, error] { return s.store.Messages(s.id) }

// appended is what a session has of messages or events.
func (s *Store) appended(id session.ID, events bool) iter.Seq2[appendedOne, error] {
	return func(yield func(appendedOne, error) bool) {
		ld, err := s.readWhole(id)
		if err != nil {
			yield(appendedOne{}, err)
			return
		}
		defer ld.dir.Close()
		readAppended(ld.dir, ld.at, events)(yield)
	}
}

func mapped[T any](all iter.Seq2[appendedOne, error], of func(*appendedOne) T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for a, err := range all {
			if !yield(of(&a), err) {
				return
			}
		}
	}
}

// findMessage returns what a session had with a message and nothing behind it.
func findMessage(dir writer.FS, to session.Mark, id string) (session.Mark, error) {
	var open []string
	for a, err := range readAppended(dir, to, false) {
		if err != nil && !errors.Is(err, ErrDamaged) {
			return session.Mark{}, err
		}
		if err != nil {
			continue
		}
		open = session.Answered(open, &a.message)
		if a.message.ID == id {
			a.at.OpenCalls = open
			return a.at, nil
		}
	}
	return session.Mark{}, fmt.Errorf("message %q: %w", id, ErrNotFound)
}

// Transcript returns the durable events of a session as JSON objects, in order. Errors are as with Messages.
func (s *Store) Transcript(id session.ID) iter.Seq2[json.RawMessage, error] {
	return mapped(s.appended(id, true), func(a *appendedOne) json.RawMessage { return a.object })
}

// hear returns what a session's logs have of messages and events up to a Mark, whose counts
// they may go beyond, and notes in a Recovery what they have and lack.
func hear(dir writer.FS, to session.Mark, r *Recovery) (session.Mark, error) {
	said := to
	said.Seq, said.OpenCalls = 0, nil
	for _, events := range []bool{false, true} {
		n, what := 0, map[bool]string{false: "messages", true: "events of its transcript"}[events]
		for a, err := range readAppended(dir, to, events) {
			switch {
			case errors.Is(err, ErrDamaged):
				r.Lost = append(r.Lost, err.Error())
			case err != nil:
				return said, err
			default:
				n++
				said.Seq, said.Messages, said.Transcript = max(said.Seq, a.at.Seq), max(said.Messages, a.at.Messages), max(said.Transcript, a.at.Transcript)
				if !events {
					said.OpenCalls = session.Answered(said.OpenCalls, &a.message)
				}
			}
		}
		if n > 0 {
			r.Recovered = append(r.Recovered, fmt.Sprintf("%d %s", n, what))
		}
	}
	return said, nil
}
