package writer

import (
	"fmt"
	"os"
	"time"

	"github.com/lopen-dev/lopen/writer/internal/proc"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

// An Owner is the record in a lock file. It is for people: whether a lock is
// held is what flock says.
type Owner struct {
	PID     int       `json:"pid"`
	Start   string    `json:"start,omitempty"` // of the process, in the system's own unit; tells a PID from a later one
	Host    string    `json:"host,omitempty"`
	Boot    string    `json:"boot,omitempty"` // identifies the boot that Start counts from
	Command string    `json:"command,omitempty"`
	Since   time.Time `json:"since"`
}

// Self is the record of this process.
func Self(command string) Owner {
	host, _ := os.Hostname()
	pid := os.Getpid()
	return Owner{PID: pid, Start: proc.Start(pid), Host: host, Boot: proc.BootID(), Command: command, Since: time.Now().UTC().Truncate(time.Second)}
}

func (o Owner) String() string {
	if o.PID == 0 {
		return "a process that left no record"
	}
	s := fmt.Sprintf("pid %d", o.PID)
	if o.Host != "" {
		s += " on " + proc.Printable(o.Host)
	}
	if o.Command != "" {
		s += " (" + proc.Printable(o.Command) + ")"
	}
	if !o.Since.IsZero() {
		s += " since " + o.Since.Local().Format(time.DateTime)
	}
	return s
}

// maxRecord bounds what is read of a record.
const maxRecord = 16 << 10

// decodeOwner reads a record. One that cannot be read is that of an unknown
// holder: a damaged record must not make a lock look free.
func decodeOwner(data []byte) Owner {
	var o Owner
	if len(data) > maxRecord || strictjson.Unmarshal(data, &o) != nil || o.PID < 0 {
		return Owner{}
	}
	return o
}

// A BusyError says who holds a lock.
type BusyError struct {
	Path  string
	Owner Owner
}

func (e *BusyError) Error() string { return fmt.Sprintf("held by %s: %s", e.Owner, e.Path) }

// Is makes errors.Is(err, ErrBusy) true.
func (e *BusyError) Is(target error) bool { return target == ErrBusy }
