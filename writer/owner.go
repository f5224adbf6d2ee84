package writer

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/lopen-dev/lopen/writer/internal/proc"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

// An Owner is the record in a lock file. It is for messages only: flock decides
// whether a lock is held.
type Owner struct {
	PID     int       `json:"pid"`
	Start   string    `json:"start,omitempty"` // start of the process, in the system's unit; distinguishes a reused PID
	Host    string    `json:"host,omitempty"`
	Boot    string    `json:"boot,omitempty"` // ID of the boot that Start counts from
	Command string    `json:"command,omitempty"`
	Since   time.Time `json:"since"`
}

// OwnerOf returns the record of a process of this machine. Command is what the process does.
func OwnerOf(pid int, command string) Owner {
	host, _ := os.Hostname()
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

// maxRecord bounds the size of a record that is read, in bytes.
const maxRecord = 16 << 10

// decodeOwner reads a record. For a damaged record it returns the zero Owner, an unknown
// holder: the damage must not make a lock look free.
func decodeOwner(data []byte) Owner {
	var o Owner
	if len(data) > maxRecord || strictjson.Unmarshal(data, &o) != nil || o.PID < 0 {
		return Owner{}
	}
	return o
}

// gone reports whether the process of a record has ended for certain: it was one of this machine
// and boot, and its number is another process's now, or nobody's.
func (o Owner) gone() bool {
	host, _ := os.Hostname()
	if o.PID == 0 || o.Start == "" || o.Boot != proc.BootID() || o.Host != host {
		return false
	}
	if start := proc.Start(o.PID); start != "" {
		return start != o.Start
	}
	p, err := os.FindProcess(o.PID) // /proc may hide what another user runs
	return err == nil && errors.Is(p.Signal(syscall.Signal(0)), os.ErrProcessDone)
}

// Alive reports whether the process of a record runs on this machine. Where the start of a
// process is not known, any process with its number counts.
func (o Owner) Alive() bool {
	host, _ := os.Hostname()
	if o.PID == 0 || o.Boot != proc.BootID() || o.Host != host {
		return false
	}
	if o.Start != "" {
		return proc.Start(o.PID) == o.Start
	}
	p, err := os.FindProcess(o.PID)
	return err == nil && !errors.Is(p.Signal(syscall.Signal(0)), os.ErrProcessDone)
}

// A BusyError is returned when a lock is held. Owner is zero when the holder left no
// readable record.
type BusyError struct {
	Path  string
	Owner Owner
}

func (e *BusyError) Error() string { return fmt.Sprintf("held by %s: %s", e.Owner, e.Path) }

// Is makes errors.Is(err, ErrBusy) true.
func (e *BusyError) Is(target error) bool { return target == ErrBusy }
