package process

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/internal/proc"
	"github.com/lopen-dev/lopen/writer/plain"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

// An Orphan is what is left of a child's command: what still holds its lock, or has its mark.
type Orphan struct {
	Group
	// Alive says that a part of the command may still work: false for what an earlier command, or
	// one that ended before its loop did, left behind.
	Alive bool
	path  string
	file  fs.FileInfo // the lock file

	group  bool    // the recorded group lives and has the lock or the mark
	strays []Stray // what the command started outside of it
	others []Stray // what holds the lock and is not known to be the command's
}

func (o *Orphan) String() string {
	if !o.Alive {
		return "a process that an earlier command left behind, which holds " + o.path + listed(o.others)
	}
	if o.PGID == 0 {
		return "an unknown command that holds " + o.path + listed(o.others)
	}
	s := fmt.Sprintf("process group %d", o.PGID)
	if o.Command != "" {
		s += ", " + proc.Printable(o.Command)
	}
	s += ", since " + o.Since.Local().Format(time.DateTime)
	switch strays := o.started(); {
	case o.group && len(strays) > 0:
		s += ", and what it started outside of it: " + named(strays)
	case o.group:
	case len(strays) > 0:
		s = "what was started outside of its group: " + named(strays) + "; of " + s
	case len(o.others) > 0:
		s = "what may be of the command, and holds " + o.path + ": " + named(o.others) + "; of " + s
	default:
		s = "what cannot be seen from here, in another PID namespace or of another user or machine, and holds " + o.path + "; of " + s
	}
	return s
}

// started are the strays without the keeper, which ends with the command.
func (o *Orphan) started() []Stray {
	return slices.DeleteFunc(slices.Clone(o.strays), func(s Stray) bool { return o.group && keeper(s, o.PGID) })
}

// CanEnd says whether [Orphan.End] ends it, or a part of it.
func (o *Orphan) CanEnd() bool { return o.group || len(o.strays) > 0 }

// ByHand says how to end it without lopen.
func (o *Orphan) ByHand() string {
	strays := numbers(pids(o.started()))
	switch {
	case o.group:
		return "kill -- " + plain.Quote(slices.Concat([]string{strconv.Itoa(-o.PGID)}, strays)...)
	case o.Alive && len(strays) > 0:
		return "kill " + plain.Quote(strays...)
	}
	return byHand(o.path, pids(o.others))
}

func byHand(path string, pids []int) string {
	if len(pids) == 0 {
		return "find it with: fuser " + plain.Quote(path) + "; and end it with: kill PID"
	}
	return "end it with: kill " + plain.Quote(numbers(pids)...)
}

func numbers(pids []int) (words []string) {
	for _, pid := range pids {
		words = append(words, strconv.Itoa(pid))
	}
	return words
}

func listed(all []Stray) string {
	if len(all) == 0 {
		return ""
	}
	return " (PID " + strings.Trim(fmt.Sprint(pids(all)), "[]") + ")"
}

// holdersOf are the processes that hold the lock of an open file, none where that fails.
func holdersOf(file *os.File) []Stray {
	info, err := file.Stat()
	if err != nil {
		return nil
	}
	return holders(info)
}

// FindOrphan returns what holds the child's lock of a folder, or has the mark of a command whose
// end its holder did not see; nil when nothing does.
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
		if err != nil || o == nil || o.group || o.Boot != proc.BootID() || time.Since(begun) > noting {
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
	data := make([]byte, childRecord)
	n, _ := file.ReadAt(data, 0)
	o := &Orphan{Group: decodeGroup(data[:n]), path: full, file: info}
	if !held && o.Over {
		return nil, nil
	}
	if !writer.Mine(info) { // what another user wrote says nothing
		o.Group, o.others = Group{}, holders(info)
	} else {
		o.look(held)
	}
	if !held && !o.Alive {
		return nil, nil
	}
	return o, nil
}

// look finds what lives of the recorded command. held says that something holds the lock.
func (o *Orphan) look(held bool) {
	boot := o.Boot == proc.BootID()
	here := boot && o.Space == proc.Space() // else its numbers say nothing
	if here && !o.Over {
		o.strays, o.others = strays(o.file, o.Group)
	} else if held {
		o.others = holders(o.file)
	}
	if here && o.lives() {
		has := o.holds()
		o.group = has == yes || held && has == unknown
	}
	o.Alive = o.group || len(o.strays) > 0 || held && !o.Over && o.mayBe(boot, here)
}

// mayBe says whether what holds the lock may be of the command, although that is not known: it is
// not seen, or no number in the record says anything, or none says that it is another command's.
func (o *Orphan) mayBe(boot, here bool) bool {
	// The record of a command not yet known has a time, that of a lock that nothing was started
	// with has none; the boot alone tells them apart only where it is known.
	if o.PGID == 0 && o.Since.IsZero() || ours(o.PGID) {
		return false
	}
	unseen := len(o.strays)+len(o.others) == 0
	if unseen || boot && (!here || o.PGID == 0) {
		return true
	}
	return here && slices.ContainsFunc(o.others, func(s Stray) bool { return !s.earlier })
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

// holds says whether a member of the group holds the lock, or has the mark.
func (o *Orphan) holds() answer { return groupHolds(o.PGID, o.file, o.Mark) }

// lives says whether the group is the recorded one and has a member. A PID is
// not given anew while a group of that number exists, so a group whose leader is
// gone is still the recorded one. The group and the session of this process are no
// command's.
func (o *Orphan) lives() bool {
	if o.PGID <= 1 || o.Boot != proc.BootID() || o.Space != proc.Space() || ours(o.PGID) || !groupExists(o.PGID) {
		return false
	}
	start := proc.Start(o.PGID)
	return start == "" || start == o.Start
}

// End ends the command as its loop would: SIGTERM to the group and to what was started outside of
// it, and SIGKILL after grace. It returns when nothing of it is left, and never signals a group
// that is not the recorded one, nor one of which the system does not say that a member holds the
// lock or has the mark, nor what may be another command's.
func (o *Orphan) End(ctx context.Context, grace time.Duration) error {
	if err := o.refuse(); err != nil {
		return err
	}
	if done, err := o.within(ctx, syscall.SIGTERM, grace); done || err != nil {
		return err
	}
	if done, err := o.within(ctx, syscall.SIGKILL, killed); done || err != nil {
		return err
	}
	return fmt.Errorf("end %s: it does not end", o.left())
}

// refuse says why nothing is signalled.
func (o *Orphan) refuse() error {
	has := o.holds()
	switch {
	case !o.Alive && has != yes && o.lives() || o.group && has == unknown:
		why := "none of its processes holds " + o.path
		if has == unknown {
			why = "this system does not tell whether it holds " + o.path
		}
		return fmt.Errorf("process group %d is left alone: %s; look at it, and end it with: kill -- -%d", o.PGID, why, o.PGID)
	case o.PGID == 0 && len(o.strays) == 0:
		return errors.New("its process group is not known; " + o.ByHand())
	case o.Alive && !o.CanEnd():
		return errors.New("whether it is of the command is not known, so it is left alone; " + o.ByHand())
	}
	return nil
}

// within signals what lives of the command, and reports whether nothing is left after a time at most.
func (o *Orphan) within(ctx context.Context, sig syscall.Signal, wait time.Duration) (done bool, err error) {
	if left, err := o.signal(sig); left == "" || err != nil {
		return left == "", err
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	timeout := time.NewTimer(wait)
	defer timeout.Stop()
	for {
		select {
		case <-tick.C:
			if sig == syscall.SIGKILL { // it may have started more meanwhile
				_, _ = o.signal(sig)
			}
			if o.left() == "" {
				return true, nil
			}
		case <-timeout.C:
			return false, nil
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
}

// killed is how long the end of what got SIGKILL is waited for.
const killed = 10 * time.Second

// left names what lives of the command, "" for nothing.
func (o *Orphan) left() string {
	if !o.Over {
		o.strays, _ = strays(o.file, o.Group)
	}
	if o.group = o.group && o.lives(); o.group {
		return fmt.Sprintf("process group %d", o.PGID)
	}
	o.Alive = len(o.strays) > 0
	return named(o.strays)
}

// signal sends a signal to what lives of the command, and names that. The keeper gets none while
// its command lives: it notes how that ends.
func (o *Orphan) signal(sig syscall.Signal) (left string, err error) {
	if left = o.left(); o.group {
		if err := signalGroup(o.PGID, sig); err != nil && o.lives() {
			return left, fmt.Errorf("end process group %d: %w", o.PGID, err)
		}
	}
	for _, s := range o.strays {
		if o.group && keeper(s, o.PGID) {
			continue
		}
		if err := s.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return left, fmt.Errorf("end %s: %w", s, err)
		}
	}
	return left, nil
}
