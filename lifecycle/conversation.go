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
)

// ErrDamaged says that a message or an event is lost, and where: those behind it
// are not.
var ErrDamaged = journal.ErrDamaged

// Append accepts a message of the conversation, in order, without waiting: Sync says
// when it is durable. An ID and a time are set where m has none. What looks like a
// credential is hidden before anything is kept, see [Policy]. [ErrBacklogFull]
// says that too much waits for the disk; a [*PausedError], that the message is
// kept and the disk does not take it at the moment. A message has at most 8 MiB.
func (s *Live) Append(m *session.Message) error {
	if m.ID == "" {
		id, err := uuid.NewV7()
		if err != nil {
			return fmt.Errorf("append message: %w", err)
		}
		m.ID = id.String()
	}
	if m.Time.IsZero() {
		m.Time = s.now().UTC()
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
	// The record names the open calls: by the IDs that are kept.
	calls := &session.Message{ToolCalls: slices.Clone(kept.ToolCalls), ToolCallID: kept.ToolCallID}
	return s.append(actors.Entry{Message: calls, Body: body[1 : len(body)-1]})
}

// AppendEvent accepts one event of the transcript: any JSON object. It is kept as Append keeps a message.
func (s *Live) AppendEvent(event json.RawMessage) error {
	var compact bytes.Buffer
	err := json.Compact(&compact, event)
	body := compact.Bytes()
	if err == nil && body[0] != '{' {
		err = errors.New("it is no JSON object")
	}
	if err != nil {
		return &Error{Op: "append event", Path: s.id.String(), Class: writer.ClassInvalid, Err: err}
	}
	if body, err = s.redactJSON(body); err != nil {
		return err
	}
	return s.append(actors.Entry{Body: slices.Concat([]byte(`"event":`), body)})
}

// Record accepts what came of one start of the command; it becomes part of the
// journal with the next commit. Its texts are redacted.
func (s *Live) Record(a session.AttemptRecord) error { return s.record(a, false) }

// Record is [Live.Record]. What a Checkpoint found of the files is an operation of its
// own record and not told again.
func (s *Session) Record(a session.AttemptRecord) error { return s.record(a, s.told.Load()) }

func (s *Live) record(a session.AttemptRecord, known bool) error {
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
	return s.append(attemptRecorded(&a, size, known))
}

func (s *Live) append(e actors.Entry) error {
	if len(e.Body) > maxEntry {
		return &Error{Op: "append", Path: s.id.String(), Class: writer.ClassInvalid, Err: fmt.Errorf("%d bytes, more than %d", len(e.Body), maxEntry)}
	}
	return s.actor.Append(e)
}

// maxEntry bounds a message and an event, in bytes of JSON.
const maxEntry = journal.MaxBody - 64

// closeCalls answers the tool calls that the last holder left open, so that the
// conversation can go on where a model insists on an answer to each.
func (s *Live) closeCalls(open []string) error {
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
	return s.messages(id, "")
}

// MessagesUpTo is Messages up to one of them, which is included. When there is no
// such message the only thing that comes is an error that wraps ErrNotFound.
func (s *Store) MessagesUpTo(id session.ID, last string) iter.Seq2[session.Message, error] {
	return s.messages(id, last)
}

// Messages are those of the session that are durable: what was appended before the
// last Sync, at least.
func (s *Session) Messages() iter.Seq2[session.Message, error] { return s.store.Messages(s.id) }

// MessagesUpTo is Messages up to one of them, see [Store.MessagesUpTo].
func (s *Session) MessagesUpTo(last string) iter.Seq2[session.Message, error] {
	return s.store.MessagesUpTo(s.id, last)
}

func (s *Store) messages(id session.ID, last string) iter.Seq2[session.Message, error] {
	return func(yield func(session.Message, error) bool) {
		dir, ld, err := s.readWhole(id)
		if err != nil {
			yield(session.Message{}, err)
			return
		}
		defer dir.Close()
		to := ld.at.Messages
		if last != "" {
			if to, _, err = findMessage(dir, to, last); err != nil {
				yield(session.Message{}, fmt.Errorf("messages of session %s: %w", id, err))
				return
			}
		}
		for m, err := range readMessages(dir, to) {
			if !yield(m.Message, err) {
				return
			}
		}
	}
}

// A storedMessage is a message with where it stands.
type storedMessage struct {
	session.Message
	entry journal.Entry // without its line
}

func readMessages(dir writer.FS, to session.Tail) iter.Seq2[storedMessage, error] {
	return func(yield func(storedMessage, error) bool) {
		for e, err := range journal.ReadStream(dir, messagesStream, journal.Tail(to)) {
			var m session.Message
			if err == nil {
				if m, err = session.DecodeMessage(e.Line); err != nil {
					err = fmt.Errorf("%w: %w", ErrDamaged, err)
				}
			}
			e.Line = nil
			if !yield(storedMessage{m, e}, err) {
				return
			}
		}
	}
}

// findMessage returns how far the stream goes with a message, and the record that
// acknowledged it.
func findMessage(dir writer.FS, to session.Tail, id string) (session.Tail, uint64, error) {
	for m, err := range readMessages(dir, to) {
		if err != nil && !errors.Is(err, ErrDamaged) {
			return session.Tail{}, 0, err
		}
		if err == nil && m.ID == id {
			return session.Tail(m.entry.Tail), m.entry.Seq, nil
		}
	}
	return session.Tail{}, 0, fmt.Errorf("message %q: %w", id, ErrNotFound)
}

// Transcript returns the durable events of a session as JSON objects, in order. Errors are as with Messages.
func (s *Store) Transcript(id session.ID) iter.Seq2[json.RawMessage, error] {
	return func(yield func(json.RawMessage, error) bool) {
		dir, ld, err := s.readWhole(id)
		if err != nil {
			yield(nil, err)
			return
		}
		defer dir.Close()
		for e, err := range journal.ReadStream(dir, transcriptStream, journal.Tail(ld.at.Transcript)) {
			var line struct {
				Event json.RawMessage `json:"event"`
			}
			if err == nil {
				if err = json.Unmarshal(e.Line, &line); err != nil {
					err = fmt.Errorf("%w: %w", ErrDamaged, err)
				}
			}
			if !yield(line.Event, err) {
				return
			}
		}
	}
}
