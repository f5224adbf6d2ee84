package process

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/internal/proc"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

// An Orphan is what still holds a child's lock.
type Orphan struct {
	Group
	Alive bool // the recorded group, or an unknown command, lives and holds the lock; false for a mere process left behind
	path  string
	file  fs.FileInfo // the lock file
	pids  []int       // of processes that hold the lock, where the group is not known to
}

func (o *Orphan) String() string {
	if !o.Alive {
		return "a process that an earlier command left behind, which holds " + o.path + listed(o.pids)
	}
	if o.PGID == 0 {
		return "an unknown command that holds " + o.path + listed(o.pids)
	}
	s := fmt.Sprintf("process group %d", o.PGID)
	if o.Command != "" {
		s += ", " + proc.Printable(o.Command)
	}
	return s + ", since " + o.Since.Local().Format(time.DateTime)
}

// ByHand says how to end what holds the lock where no process group is known to.
func (o *Orphan) ByHand() string { return byHand(o.path, o.pids) }

func byHand(path string, pids []int) string {
	if len(pids) == 0 {
		return "find it with: fuser '" + strings.ReplaceAll(path, "'", `'\''`) + "'; and end it with: kill PID"
	}
	return "end it with: kill " + strings.Trim(fmt.Sprint(pids), "[]")
}

func listed(pids []int) string {
	if len(pids) == 0 {
		return ""
	}
	return " (PID " + strings.Trim(fmt.Sprint(pids), "[]") + ")"
}

// holdersOf names processes that hold the lock of an open file, none where that fails.
func holdersOf(file *os.File) []int {
	info, err := file.Stat()
	if err != nil {
		return nil
	}
	return holders(info)
}

// FindOrphan returns what holds the child's lock of a folder, or nil when nothing does.
// It makes no file and may be called by anybody at any time: [Hold] and other
// callers wait for it, or look again. Only who has the lease of the folder, or finds it
// free before and after, knows that what it returns is no command of a live holder.
//
// Whoever may write in the folder may write the record. So a group counts as alive only
// if a process of this user in it has the descriptor that holds the lock, as far as the
// system tells (Linux does), and nothing in another user's file counts at all.
func FindOrphan(dir writer.FS, name string) (o *Orphan, err error) {
	tick := time.NewTicker(probeDelay)
	defer tick.Stop()
	for begun := time.Now(); ; <-tick.C {
		o, err = findOrphan(dir, name)
		// What is left may be the keeper alone, which lets go as soon as it has noted how
		// the command ended.
		if err != nil || o == nil || o.Alive && o.PGID != 0 || o.Boot != proc.BootID() || time.Since(begun) > noting {
			return o, err
		}
	}
}

// noting is how long a keeper may take to note the end of its command.
const noting = 100 * time.Millisecond

func findOrphan(dir writer.FS, name string) (*Orphan, error) {
	full := filepath.Join(dir.Name(), name)
	f, info, err := writer.OpenRegular(dir, "look at child lock", name, os.O_RDWR)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	file, ok := osFile(f)
	if !ok {
		return nil, nil
	}
	held, err := heldByOthers(file)
	if err != nil {
		return nil, writer.NewError("look at child lock", full, writer.NotCommitted, err)
	}
	if !held {
		return nil, nil
	}
	data := make([]byte, childRecord)
	n, _ := file.ReadAt(data, 0)
	o := &Orphan{Group: decodeGroup(data[:n]), path: full, file: info}
	if !writer.Mine(info) {
		o.Group, o.pids = Group{}, holders(info)
		return o, nil
	}
	// The record of a command not yet known has a time, the one that Release
	// leaves has none; the boot alone tells them apart only where it is known.
	unnamed := o.PGID == 0 && !o.Since.IsZero() && o.Boot == proc.BootID()
	o.Alive = unnamed || o.lives() && o.holds() != no
	if unnamed || !o.Alive {
		o.pids = holders(info)
	}
	return o, nil
}

// looks is how often an exclusive lock must be refused, and a shared one granted, before
// the lock counts as held: another process that looks refuses it for microseconds.
const looks = 5

// exclusively is how often, with a probeDelay between, a shared lock must be refused
// before the lock counts as a command's, which made it exclusive.
const exclusively = 200

// heldByOthers says whether a command has the lock. A command's lock refuses an
// exclusive one; that of a process that only looks is exclusive itself, which no
// command's lock is beside, and is gone in a moment. A command can make its own
// exclusive as well, and keeps it.
func heldByOthers(file *os.File) (bool, error) {
	tick := time.NewTicker(probeDelay)
	defer tick.Stop()
	for shared, refused := 0, 0; shared < looks && refused < exclusively; {
		if free, err := tryFlock(file); free || err != nil {
			return false, err
		}
		ok, err := flockShared(file)
		if err != nil {
			return false, err
		}
		if !ok {
			refused++
			<-tick.C
			continue
		}
		shared++
		if err := unlock(file); err != nil {
			return false, err
		}
	}
	return true, nil
}

// decodeGroup reads a record. What kill(2) would take for another number never
// comes out: -1 is every process, and of more than 32 bits it looks at the lower
// ones only.
func decodeGroup(data []byte) Group {
	var g Group
	if strictjson.Unmarshal(data, &g) != nil || g.PGID < 0 || g.PGID == 1 || g.PGID > math.MaxInt32 {
		return Group{}
	}
	return g
}

// An answer is what the system knows.
type answer int

const (
	unknown answer = iota
	no
	yes
)

// holds says whether a member of the group holds the lock.
func (o *Orphan) holds() answer { return groupHolds(o.PGID, o.file) }

// lives says whether the group is the recorded one and has a member. A PID is
// not given anew while a group of that number exists, so a group whose leader is
// gone is still the recorded one. The group and the session of this process are no
// command's.
func (o *Orphan) lives() bool {
	if o.PGID <= 1 || o.Boot != proc.BootID() || ours(o.PGID) || !groupExists(o.PGID) {
		return false
	}
	start := proc.Start(o.PGID)
	return start == "" || start == o.Start
}

// End ends the group: SIGTERM, and SIGKILL after grace. It returns when no
// member is left, and never signals a group that is not the recorded one, nor one of
// which the system does not say that a member holds the lock.
func (o *Orphan) End(ctx context.Context, grace time.Duration) error {
	if o.PGID == 0 {
		return errors.New("its process group is not known; " + o.ByHand())
	}
	if has := o.holds(); has != yes && o.lives() {
		why := "none of its processes holds " + o.path
		if has == unknown {
			why = "this system does not tell whether it holds " + o.path
		}
		return fmt.Errorf("process group %d is left alone: %s; look at it, and end it with: kill -- -%d", o.PGID, why, o.PGID)
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for _, step := range []struct {
		kill bool
		wait time.Duration
	}{{false, grace}, {true, 10 * time.Second}} {
		if !o.lives() {
			return nil
		}
		if err := signalGroup(o.PGID, step.kill); err != nil && o.lives() {
			return fmt.Errorf("end process group %d: %w", o.PGID, err)
		}
		timeout := time.NewTimer(step.wait)
		defer timeout.Stop()
		for waiting := true; waiting; {
			select {
			case <-tick.C:
				if !o.lives() {
					return nil
				}
			case <-timeout.C:
				waiting = false
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	return fmt.Errorf("end process group %d: it does not end", o.PGID)
}
