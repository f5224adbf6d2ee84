package process

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/lopen-dev/lopen/writer/internal/proc"
)

// A Stray is a process outside a command's group that the command started, or may have started.
type Stray struct {
	PID     int
	Command string // as the system shows it
	start   string // of the process: its number may be given to another one
	earlier bool   // a command before this one started it
}

func (s Stray) String() string {
	if s.Command == "" {
		return "PID " + strconv.Itoa(s.PID)
	}
	return fmt.Sprintf("PID %d (%s)", s.PID, proc.Printable(s.Command))
}

// Signal sends a signal to the process, and never to another one that has its number by now.
func (s Stray) Signal(sig syscall.Signal) error {
	p, err := os.FindProcess(s.PID) // on Linux a handle of the process, and not of its number
	if err != nil {
		return err
	}
	defer func() { _ = p.Release() }()
	if proc.Start(s.PID) != s.start {
		return os.ErrProcessDone
	}
	return p.Signal(sig)
}

// pids are the numbers of processes.
func pids(all []Stray) (numbers []int) {
	for _, s := range all {
		numbers = append(numbers, s.PID)
	}
	return numbers
}

// named lists processes with their commands.
func named(all []Stray) string {
	var names []string
	for _, s := range all[:min(len(all), maxNamed)] {
		names = append(names, s.String())
	}
	if more := len(all) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ")
}

// maxNamed is how many processes a text names.
const maxNamed = 8

// markVariable is the variable by which what a command started is known after it closed the
// descriptors that it inherited, as the shell tools of most agents do.
const markVariable = "LOPEN_MARK"

// newMark is what a lock is known by in other processes.
func newMark() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// position is that of the lock's open file, in bytes, beyond the records. It belongs to the open
// file, as the lock does, and the system shows it: so the holders of one lock are distinguished
// from those of another one on the same file. Nothing reads or writes at it.
func position(mark string) int64 {
	return childBytes + int64(crc32.ChecksumIEEE([]byte(mark))%(1<<20))
}

// Environment is the variable that the command gets. What it starts inherits the variable.
func (l *Lock) Environment() string { return markVariable + "=" + l.mark }

// Strays are the processes outside the command's group that the command started, as far as the
// system tells (Linux does): they inherited this very lock or its variable, are this user's, and
// began after the command did. Its keeper is among them. others hold the lock's file and were
// started by an earlier command, or are unknown, or are not this user's.
func (l *Lock) Strays() (ours, others []Stray) {
	g := l.group.Load()
	if g == nil {
		return nil, nil
	}
	return strays(l.info, *g)
}

// EndLeft ends what works of the command after its end was seen, as [Orphan.End] does, and names
// it. left names what may be of the command, which nobody ends. It is for the holder of the lock.
func (l *Lock) EndLeft(ctx context.Context, grace time.Duration) (ended, left string, err error) {
	g := l.group.Load()
	if g == nil {
		return "", "", nil
	}
	o := &Orphan{Group: *g, path: l.path, file: l.info}
	o.look(false)
	if o.CanEnd() {
		ended = named(o.strays)
		if o.group {
			ended = strings.TrimSuffix(fmt.Sprintf("process group %d, %s", o.PGID, ended), ", ")
		}
		err = o.End(ctx, grace)
	}
	return ended, named(slices.DeleteFunc(o.others, func(s Stray) bool { return s.earlier })), err
}
