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

	// Check returns an error when the session's files are gone or no longer belong to
	// this process. It is called when somebody waits for the disk and nothing is to be
	// committed.
	Check() error

	// Publication returns the job that writes the last committed State to the readable
	// files, or nil when nothing is due. Without force the job may put off expensive
	// work and need not make the files durable. With force the files show that State,
	// durably, when the job has returned nil. The job runs in another goroutine, which
	// may be concurrent with Commit but never with another job or with Recover.
	Publication(force bool) (job func() error)

	// Published gets the result of the last job. The writer goroutine calls it.
	Published(err error)

	// Recover prepares for a new Commit after a failed call. It gives up
	// whatever the failure made doubtful, and acknowledges nothing.
	Recover() error

	// Close releases what the Committer holds, the session's lease included.
	// It is called once, after the last Commit has returned.
	Close() error
}

// A Batch is what one commit carries: the newest State of a burst, the number
// of its saves by trigger, and its entries.
type Batch struct {
	State    *session.State
	Triggers [session.NumTriggers]uint64
	// Entries are what was appended, in order. Each is in exactly one successful commit.
	Entries []Entry
	// First is when the oldest save of the burst was accepted. It is zero when
	// an entry or a barrier, not a Save, caused the commit.
	First time.Time
}

// An Entry is what is appended to a session and never coalesced: a message, an
// attempt at a task, a checkpoint, a rewind or operations. An Entry with a Body
// and none of these is an event of the transcript.
// Immutable.
type Entry struct {
	Message *session.Message
	Attempt *record.Attempt
	Size    int // encoded size of Attempt, in bytes
	// Checkpoint is the ID of a new checkpoint. Rewind is the begin of a rewind or, with
	// Ended, its end.
	Checkpoint string
	Rewind     *session.Rewinding
	Ended      bool
	Ops        []record.Op // the operations that the record lists
	Body       []byte      // a message or an event, as a JSON object
}

// cost is the number of bytes that an Entry takes of the backlog.
func (e *Entry) cost() int64 { return int64(256 + e.Size + len(e.Body)) }

func cost(all []Entry) (n int64) {
	for i := range all {
		n += all[i].cost()
	}
	return n
}

// Saves returns the number of calls of Save that were coalesced into the batch.
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
	Seq   uint64 // the sequence number of the commit
	Bytes int    // bytes written to all files; 0 when the State equals the durable one
	Show  bool   // publish the readable files at once
	// Pause is set when the commit is durable and the session has to pause all the
	// same, because the commit took the last reserve of the disk.
	Pause error
}
