package actors

import (
	"time"

	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
)

// A Committer makes the States of one session durable. The writer goroutine
// of the session's actor is its only caller and makes one call at a time.
type Committer interface {
	// Commit returns nil only when b.State is durable: a power cut right
	// afterwards does not lose it. After an error nothing is known to be
	// durable beyond the last successful Commit, and the actor calls Recover
	// before it calls Commit again.
	Commit(b Batch) (Committed, error)

	// Check says whether the session's files are still there and this process's. It is
	// asked when somebody waits for the disk and nothing is due.
	Check() error

	// Publication returns what has to be done to show the last committed State
	// to those who read files, nil when nothing is due. It may put off what is
	// expensive, and need not be durable, unless force is set: then the files show that
	// State, durably, when the job has returned nil. The job runs in another goroutine,
	// concurrently with Commit but never with another job or Recover.
	Publication(force bool) (job func() error)

	// Published takes the result of the last job, in the writer goroutine.
	Published(err error)

	// Recover prepares for a new Commit after a failed call, giving up
	// whatever the failure made doubtful. It acknowledges nothing itself.
	Recover() error

	// Close releases what the Committer holds, the session's lease included.
	// It is called once, after the last Commit has returned.
	Close() error
}

// A Batch is what one commit carries: the newest State of a burst and the
// count of every trigger that the burst consisted of.
type Batch struct {
	State    *session.State
	Triggers [session.NumTriggers]uint64
	// Entries are what was appended, in order, each of them once.
	Entries []Entry
	// First is when the oldest save of the burst was accepted; zero when no
	// Save but a barrier caused the commit.
	First time.Time
}

// An Entry is something of a session that is appended and never coalesced: a
// message, an attempt at a task, a checkpoint, a rewind, operations, or, with a
// Body and none of these, an event of the transcript.
// Immutable.
type Entry struct {
	Message *session.Message
	Attempt *record.Attempt
	Size    int // of Attempt, in bytes as it is written
	// Checkpoint is the ID of one that was made, Rewind the begin of a rewind or, with
	// Ended, its end.
	Checkpoint string
	Rewind     *session.Rewinding
	Ended      bool
	Ops        []record.Op // what the record says of it
	Body       []byte      // of a message or an event: a JSON object
}

// cost is what an Entry counts for in the backlog, in bytes.
func (e *Entry) cost() int64 { return int64(256 + e.Size + len(e.Body)) }

func cost(all []Entry) (n int64) {
	for i := range all {
		n += all[i].cost()
	}
	return n
}

// Saves is how many calls of Save were coalesced into the batch.
func (b *Batch) Saves() uint64 {
	var n uint64
	for _, c := range b.Triggers {
		n += c
	}
	return n
}

func (b *Batch) add(r request) {
	b.Triggers[r.trigger]++
	if b.First.IsZero() {
		b.First = r.at
	}
}

// Committed describes a successful commit, for the log.
type Committed struct {
	Seq   uint64 // the sequence number that the commit got
	Bytes int    // bytes written, all files together; 0 where the State was a durable one's equal
	Show  bool   // the readable files are to show it at once
	// Pause is set when the commit is durable and yet the session has to pause:
	// it took the last reserve of the disk.
	Pause error
}
