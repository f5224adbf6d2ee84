// Package folder reads the folder of one session, without a lock, also while another process holds it.
//
// [Load] reads the session as its log has it; nearly every caller begins there. [StateAt]
// reads an earlier State, and [ReadAppended] the messages or events. A [Builder] is for
// repairs: it finds the States that the log vouches for and replays records from one of them.
//
// What decides is the log. The readable files, state.json and metrics.json, only spare a
// reader the records that they cover, and only where the log names their hash.
//
// # Concurrency
//
// Everything here may be called from any goroutine; goroutines share no value. A reader
// that meets the writer in the middle of something gets an error that wraps
// fs.ErrNotExist or ErrCorrupt and begins again, at most [Tries] times.
//
// # Crash safety
//
// Nothing is changed on the disk but a cursor, by [MoveCursor], and a small file, by
// [WriteSmall]; both replace a file durably. What a power cut may leave at the end of a
// log was never acknowledged, and is not read.
package folder

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"

	"github.com/lopen-dev/lopen/lifecycle/session"
)

// The names of a store, in the project's folder, and of what is in it.
const (
	Store    = ".lopen"
	Sessions = "sessions" // below Store: a folder for each session
	IDsFile  = "ids.json" // in Store: the counters of IDs
)

// Path is that of a session's folder, below Store.
func Path(id session.ID) string { return Sessions + "/" + id.String() }

// The files of a session's folder.
const (
	LeaseFile   = ".lock" // the one process that holds it has the session
	StateFile   = "state.json"
	MetricsFile = "metrics.json"
)

// SummaryBytes is how much of state.json is read of a session that is listed: the summary's
// fields stand in the first part of it.
const SummaryBytes = 4 << 10

// Tries bounds how often a reader begins again because the writer moved on.
const Tries = 5

var (
	// ErrNotFound says that a session has no such record or message.
	ErrNotFound = errors.New("not found")
	// ErrDamaged says that a message or an event is lost, and where: those behind it
	// are not.
	ErrDamaged = errors.New("damaged")
)

// SHA256 is the checksum by which the log names a file, in hex.
func SHA256(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
