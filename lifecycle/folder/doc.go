// Package folder reads the folder of one session, without a lock, even while another process
// holds the session.
//
// [Load] reads the session as its log has it; nearly every caller begins there. [StateAt]
// reads an earlier State, and [ReadAppended] the messages or events. A [Builder] is for
// repairs: it finds the States that the log vouches for and replays records from one of them.
//
// The log decides. With the readable files, state.json and metrics.json, a reader can skip the
// records that they cover, but only if the log names their hash.
//
// # Concurrency
//
// Any goroutine may call the functions; a value is for one goroutine. A reader that meets a
// change in progress may get an error that wraps fs.ErrNotExist or ErrCorrupt. It begins
// again, at most [Tries] times.
//
// # Crash safety
//
// Only [MoveCursor] and [WriteSmall] change the disk; both replace a file durably. What a power
// cut leaves at the end of a log was never acknowledged, and is not read.
package folder

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"

	"github.com/lopen-dev/lopen/lifecycle/session"
)

// The names of the store's folder in a project, and of its files.
const (
	Store    = ".lopen"
	Sessions = "sessions" // below Store: a folder for each session
	IDsFile  = "ids.json" // in Store: the counters of IDs
)

// Path returns the path of a session's folder, below Store.
func Path(id session.ID) string { return Sessions + "/" + id.String() }

// The files of a session's folder.
const (
	LeaseFile   = ".lock" // the lock of the process that holds the session
	StateFile   = "state.json"
	MetricsFile = "metrics.json"
)

// SummaryBytes is the number of bytes of state.json that a listing reads. The fields of a
// summary are within them.
const SummaryBytes = 4 << 10

// Tries bounds how often a reader begins again because the files changed meanwhile.
const Tries = 5

var (
	// ErrNotFound means that a session has no such record or message.
	ErrNotFound = errors.New("not found")
	// ErrDamaged means that messages or events are lost. Later ones may be intact.
	ErrDamaged = errors.New("damaged")
)

// SHA256 returns the checksum by which the log names a file, in hex.
func SHA256(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
