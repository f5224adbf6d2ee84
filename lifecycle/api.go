package lifecycle

import (
	"context"
	"encoding/json"
	"iter"

	"github.com/lopen-dev/lopen/cache/files"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

// Sessions is what a loop needs of a store, whose sessions are of type S: concrete
// types satisfy it as they are. [*Store] keeps sessions in files and the store of
// lifecycle/noop keeps none; lifecycle/storetest checks any of them. All methods may be
// called from any goroutine.
type Sessions[S Conversation] interface {
	// Create makes a session of a module. The session and its ID, which is never given
	// again, are durable when it returns.
	Create(ctx context.Context, module string) (S, error)
	// Open goes on with a session. There is one holder at a time: a second one gets
	// ErrBusy, and one that asks for what is not there ErrNotFound.
	Open(id session.ID) (S, error)
	// Latest is the session that was made last, or, with a module, the one of it that
	// was changed last. ErrNotFound says that there is none.
	Latest(module string) (session.ID, error)
	// List returns all sessions, the most recently updated first, as what was last
	// flushed shows them, also those that others hold.
	List() ([]Info, error)
	// Fork makes a session from another one, which may be live, and leaves that as it
	// is. The new one is durable when it returns.
	Fork(ctx context.Context, id session.ID, at ForkOptions) (S, error)
	// Delete removes a session that nobody holds, for good, and returns how many bytes
	// that frees.
	Delete(ctx context.Context, id session.ID) (int64, error)
	// Close closes every session, like [Conversation].Close. Nothing is called after it.
	Close(ctx context.Context) error
}

// Conversation is what a loop needs of a session that it holds. All methods may be
// called from any goroutine, and none but those that take a context waits for the
// disk. After Close has begun, what would change something returns ErrClosed.
type Conversation interface {
	ID() session.ID
	// State is the newest accepted State, durable or not.
	State() *session.State
	// Save accepts a State, or with nil the newest one, to be committed: Sync says when
	// it is durable. Several may become one commit.
	Save(st *session.State, t session.Trigger) error
	// Update changes the newest State by compare and swap; the next Save, Sync, Flush or
	// Close commits it.
	Update(fn func(*session.State) (*session.State, error)) error
	// Append accepts a message, in order, never dropped: Sync says when it is durable.
	Append(m *session.Message) error
	// AppendEvent accepts a JSON object for the transcript, like Append.
	AppendEvent(event json.RawMessage) error
	// Messages are those that are durable: what was appended before the last Sync, at
	// least.
	Messages() iter.Seq2[session.Message, error]
	// Checkpoint keeps the project's files with the State, durably. The changes are those
	// since the last one. Where files cannot be kept the error wraps errors.ErrUnsupported.
	Checkpoint(ctx context.Context, why checkpoint.Reason, task string) (*checkpoint.Entry, []files.Change, error)
	// Rewind brings files, State or both back to a checkpoint, durably, or says what it
	// would do. ErrNotFound says that there is no such checkpoint.
	Rewind(ctx context.Context, to checkpoint.ID, opts RewindOptions) (Rewound, error)
	// Sync returns nil when everything accepted before the call is durable.
	Sync(ctx context.Context) error
	// Flush is Sync, and who reads files sees it.
	Flush(ctx context.Context) error
	// Close flushes and lets go of the session. It is idempotent; when ctx ends first it
	// says what is not durable.
	Close(ctx context.Context) error
}

var _ Sessions[*Session] = (*Store)(nil)
