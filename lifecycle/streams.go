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

// appendEntries makes entries durable in their streams, the transcript first, and
// has the record and the mark name how far these go. Attempts are part of the
// record.
func (c *committer) appendEntries(all []actors.Entry, rec *session.Record, mark *session.Mark) error {
	var messages, events [][]byte
	open := mark.OpenCalls
	if c.base == nil { // the first record of a fork: what is replayed from it has no other source
		rec.Messages, rec.Transcript, rec.OpenCalls = mark.Messages, mark.Transcript, open
		rec.Checkpoint = mark.Checkpoint
	}
	for _, e := range all {
		rec.Ops = append(rec.Ops, e.Ops...)
		switch {
		case e.Attempt != nil:
			rec.Attempts = append(rec.Attempts, *e.Attempt)
		case e.Checkpoint != "":
			rec.Checkpoint = e.Checkpoint
		case e.Rewind != nil:
			rec.Event, rec.Rewind = session.EventRewindBegin, e.Rewind
			if e.Ended {
				rec.Event = session.EventRewindEnd
			}
		case e.Message != nil:
			messages = append(messages, e.Body)
			open = session.Answered(open, e.Message)
		default:
			events = append(events, e.Body)
		}
	}
	if len(events) > 0 {
		tail, err := c.transcript.Append(mark.Seq, events)
		if err != nil {
			return err
		}
		rec.Transcript = session.Tail(tail)
		rec.Ops = append(rec.Ops, session.Op{Name: session.OpEventsAppended, Count: len(events)})
	}
	if len(messages) > 0 {
		tail, err := c.messages.Append(mark.Seq, messages)
		if err != nil {
			return err
		}
		rec.Messages, rec.OpenCalls = session.Tail(tail), open
		rec.Ops = append(rec.Ops, session.Op{Name: session.OpMessagesAppended, Count: len(messages)})
	}
	mark.Follow(rec)
	return nil
}
