package lifecycle

import (
	"github.com/lopen-dev/lopen/actors"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer/journal"
)

// The streams of a session, and the first file of each with .jsonl behind it.
const (
	messagesStream   = "messages"
	transcriptStream = "transcript"
)

// openStreams goes on with the streams from where the last record says.
func (c *committer) openStreams() {
	id, epoch := c.id.String(), c.journal.Epoch()
	c.messages = journal.NewStream(c.dir, messagesStream, id, epoch, journal.Tail(c.at.Messages))
	c.transcript = journal.NewStream(c.dir, transcriptStream, id, epoch, journal.Tail(c.at.Transcript))
}

// records are those that entries become part of, one at least: the last one is to carry
// the State. Of attempts a record takes up to room bytes, or one; a checkpoint and an
// event of a rewind have a record each where a batch has several.
func (c *committer) records(all []actors.Entry, room int) []session.Record {
	recs := []session.Record{{Event: c.event}}
	rec := &recs[0]
	used := 0
	next := func() {
		recs = append(recs, session.Record{})
		rec, used = &recs[len(recs)-1], 0
	}
	for _, e := range all {
		switch {
		case e.Attempt != nil:
			if used > 0 && used+e.Size > room {
				next()
			}
			rec.Attempts = append(rec.Attempts, *e.Attempt)
			used += e.Size
		case e.Checkpoint != "":
			if rec.Checkpoint != "" {
				next()
			}
			rec.Checkpoint = e.Checkpoint
		case e.Rewind != nil:
			if rec.Rewind != nil || rec.Checkpoint != "" {
				next()
			}
			rec.Event, rec.Rewind = session.EventRewindBegin, e.Rewind
			if e.Ended {
				rec.Event = session.EventRewindEnd
			}
		}
		rec.Ops = append(rec.Ops, e.Ops...)
	}
	return recs
}

// appendStreams makes messages and events durable in their streams, the transcript
// first, and has the record, which is to have a number, name how far these go.
func (c *committer) appendStreams(all []actors.Entry, seq uint64, rec *session.Record) error {
	var messages, events [][]byte
	open := c.at.OpenCalls
	if c.base == nil { // the first record of a fork: what is replayed from it has no other source
		rec.Messages, rec.Transcript, rec.OpenCalls = c.at.Messages, c.at.Transcript, open
		rec.Checkpoint = c.at.Checkpoint
	}
	for _, e := range all {
		switch {
		case e.Attempt != nil, e.Checkpoint != "", e.Rewind != nil, e.Body == nil:
		case e.Message != nil:
			messages = append(messages, e.Body)
			open = session.Answered(open, e.Message)
		default:
			events = append(events, e.Body)
		}
	}
	if len(events) > 0 {
		tail, err := c.transcript.Append(seq, events)
		if err != nil {
			return err
		}
		rec.Transcript = session.Tail(tail)
		rec.Ops = append(rec.Ops, session.Op{Name: session.OpEventsAppended, Count: len(events)})
	}
	if len(messages) > 0 {
		tail, err := c.messages.Append(seq, messages)
		if err != nil {
			return err
		}
		rec.Messages, rec.OpenCalls = session.Tail(tail), open
		rec.Ops = append(rec.Ops, session.Op{Name: session.OpMessagesAppended, Count: len(messages)})
	}
	return nil
}
