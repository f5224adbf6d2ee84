package writer

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

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
// holder says of the command's end, and what the keeper saw of it. Each has one process
// that writes it, so that none undoes what another one knows.
const (
	childRecord = 4096
	endedRecord = 2048
	saidAt      = childRecord
	seenAt      = saidAt + endedRecord
	childBytes  = seenAt + endedRecord
)

// A bootEnded is an Ended of one boot: a power cut may bring back an older one.
type bootEnded struct {
	Ended
	Boot string `json:"boot,omitempty"`
}

// Forget removes what the file says of how an earlier command ended. It is called before
// each start of a command whose end is written down.
func (l *ChildLock) Forget() error {
	blank := make([]byte, childBytes-saidAt)
	for i := range blank {
		blank[i] = ' '
	}
	blank[endedRecord-1], blank[len(blank)-1] = '\n', '\n'
	_, err := l.file.WriteAt(blank, saidAt)
	if err == nil && bootID() == "" {
		err = l.file.Sync() // no boot in the record tells an older one
	}
	if err != nil {
		return NewError("forget how a command ended", l.path, NotCommitted, err)
	}
	return nil
}

// Ended notes how the command ended, as its events say. Its Success counts more than what
// the keeper saw; Exit and Signal count less. The caller may not know them yet.
func (l *ChildLock) Ended(e Ended) error {
	if err := putEnded(l.file, e, saidAt); err != nil {
		return NewError("note how the command ended", l.path, NotCommitted, err)
	}
	return nil
}

// NoteEnded is for the keeper of a command, which has [ChildLock.File]: it notes how the
// command ended.
func NoteEnded(f *os.File, e Ended) error { return putEnded(f, e, seenAt) }

// putEnded writes a record with one write: it is never seen half.
func putEnded(f *os.File, e Ended, at int64) error {
	data, err := strictjson.Marshal(bootEnded{e, bootID()})
	if err != nil {
		return err
	}
	if len(data) >= endedRecord {
		return errors.New("the record is too long")
	}
	_, err = f.WriteAt(fmt.Appendf(nil, "%-*s\n", endedRecord-1, data), at)
	return err
}

// ReadEnded returns how the command of a child's lock ended; nil where nobody wrote it
// down in this boot, and for another user's file. It means something only while nothing
// holds the lock.
func ReadEnded(dir FS, name string) (*Ended, error) {
	f, info, err := OpenRegular(dir, "read how the command ended", name, os.O_RDONLY)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	of, ok := f.(osFile)
	if !ok || !Mine(info) || info.Size() < childBytes {
		return nil, nil
	}
	data := make([]byte, childBytes-saidAt)
	if _, err := of.ReadAt(data, saidAt); err != nil {
		return nil, NewError("read how the command ended", filepath.Join(dir.Name(), name), NotCommitted, err)
	}
	said, seen := decodeEnded(data[:endedRecord]), decodeEnded(data[endedRecord:])
	if seen == nil {
		return said, nil
	}
	if said != nil && said.Iteration == seen.Iteration {
		seen.Success = said.Success
	}
	return seen, nil
}

func decodeEnded(data []byte) *Ended {
	var e bootEnded
	if strictjson.Unmarshal(data, &e) != nil || e.Boot != bootID() || e.Iteration < 1 {
		return nil
	}
	return &e.Ended
}
