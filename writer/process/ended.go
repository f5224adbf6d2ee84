package process

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/internal/proc"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

// Ended is how a session's command ended, as a small process that outlives the loop wrote
// it down, or the loop itself. It is durable across a kill of the loop, not across a power
// cut, which ends the command as well.
type Ended struct {
	Iteration int    `json:"iteration"` // of the session; one that is not the newest says nothing of it
	Exit      int    `json:"exit"`      // -1 when a signal ended it
	Signal    string `json:"signal,omitempty"`
	// Success says that the agent ended well: its final event where events are known,
	// else exit 0.
	Success bool `json:"success"`
}

// The child's lock file holds three records, each of a fixed length: the group, what the
// holder reported of the command's end, and what the keeper saw of it. One process
// writes each record, so that no process overwrites another one's.
const (
	childRecord = 4096
	endedRecord = 2048
	reportedAt  = childRecord
	seenAt      = reportedAt + endedRecord
	childBytes  = seenAt + endedRecord
)

// A bootEnded is an Ended of one boot: a power cut may bring back an older one.
type bootEnded struct {
	Ended
	Boot string `json:"boot,omitempty"`
}

// Forget erases how an earlier command ended. It is called before each start of a command
// whose end is recorded.
func (l *Lock) Forget() error {
	_, err := l.file.WriteAt(fmt.Appendf(nil, "%[1]*[2]s\n%[1]*[2]s\n", endedRecord-1, ""), reportedAt)
	if err == nil && proc.BootID() == "" {
		err = l.file.Sync() // no boot in the record tells an older one
	}
	if err != nil {
		return writer.NewError("forget how a command ended", l.path, writer.NotCommitted, err)
	}
	return nil
}

// Ended notes how the command ended, as its events say. Its Success counts more than what
// the keeper saw; Exit and Signal count less. The caller may not know them yet.
func (l *Lock) Ended(e Ended) error {
	if err := writeRecord(l.file, bootEnded{e, proc.BootID()}, reportedAt, endedRecord); err != nil {
		return writer.NewError("note how the command ended", l.path, writer.NotCommitted, err)
	}
	return nil
}

// NoteEnded is for the keeper of a command, which has [Lock.File]: it notes how the
// command ended.
func NoteEnded(f *os.File, e Ended) error {
	return writeRecord(f, bootEnded{e, proc.BootID()}, seenAt, endedRecord)
}

var errTooLong = errors.New("the record is too long")

// writeRecord writes a record of a fixed length with one write: it is never seen half.
func writeRecord(f *os.File, v any, at int64, length int) error {
	data, err := strictjson.Marshal(v)
	if err == nil && len(data) >= length {
		err = errTooLong
	}
	if err == nil {
		data = append(data, bytes.Repeat([]byte{' '}, length-1-len(data))...)
		_, err = f.WriteAt(append(data, '\n'), at)
	}
	return err
}

// ReadEnded returns how the command of a child's lock ended; nil where no process
// recorded it in this boot, and for another user's file. It means something only while nothing
// holds the lock.
func ReadEnded(dir writer.FS, name string) (*Ended, error) {
	f, info, err := writer.OpenRegular(dir, "read how the command ended", name, os.O_RDONLY)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	of, ok := osFile(f)
	if !ok || !writer.Mine(info) || info.Size() < childBytes {
		return nil, nil
	}
	data := make([]byte, childBytes-reportedAt)
	if _, err := of.ReadAt(data, reportedAt); err != nil {
		return nil, writer.NewError("read how the command ended", filepath.Join(dir.Name(), name), writer.NotCommitted, err)
	}
	reported, seen := decodeEnded(data[:endedRecord]), decodeEnded(data[endedRecord:])
	if seen == nil {
		return reported, nil
	}
	if reported != nil && reported.Iteration == seen.Iteration {
		seen.Success = reported.Success
	}
	return seen, nil
}

func decodeEnded(data []byte) *Ended {
	var e bootEnded
	if strictjson.Unmarshal(data, &e) != nil || e.Boot != proc.BootID() || e.Iteration < 1 {
		return nil
	}
	return &e.Ended
}
