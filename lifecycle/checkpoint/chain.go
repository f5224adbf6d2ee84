package checkpoint

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/lopen-dev/lopen/writer/envelope"
)

const (
	chainSuffix = ".jsonl"
	lockName    = ".lock"
	filePerm    = 0o600
	// maxChain bounds the file of a chain, in bytes. Above maxDead bytes of lines before the
	// oldest entry that was not removed, these lines are dropped.
	maxChain = 64 << 20
	// maxFaults is the number of damaged lines that are reported, the first ones.
	maxFaults = 100
	maxDead   = 1 << 20
)

// minLine is a lower bound of the length of a line, in bytes.
const minLine = 32

var errShort = fmt.Errorf("it is too short for a line: %w", envelope.ErrCorrupt)

// lineFormat is the envelope of a chain's lines.
var lineFormat = envelope.Format{Key: "version", Version: 1, Max: 64 << 10}

// A removal is a line that removes an entry.
type removal struct {
	Removed uint64 `json:"removed,omitempty"` // number of the entry
	Why     string `json:"why,omitempty"`
}

// A pinning is a line that pins or unpins an entry.
type pinning struct {
	Pin    uint64 `json:"pin,omitempty"` // number of the entry
	Pinned bool   `json:"pinned"`
}

// A bringing is a line behind entries that another project made: what rewinds moved away there is not here.
type bringing struct {
	Brought uint64 `json:"brought,omitempty"` // number of the newest of them
}

// A chain is the content of a chain's file. It is immutable once parse has returned it.
type chain struct {
	entries []*Entry // in ascending order of their numbers
	starts  []int64  // offsets of their lines in the file
	owned   bool     // entries is not shared with another chain
	faults  []error
	lost    bool   // damaged lines were read since the newest entry
	brought uint64 // number of the newest entry that another project made
	next    uint64 // the number after that of the newest entry
	tail    int    // number of damaged lines at the end

	info  fs.FileInfo // of the file when it was read; nil if there was none
	whole int64       // bytes up to the end of the last intact line
	count int         // number of lines in these bytes
	sum   uint32      // checksum of these bytes
}

// parse decodes the file of a chain. It reuses known, which was parsed before, if the file
// still begins with it. The error wraps envelope.ErrFutureVersion.
func parse(data []byte, path string, known *chain) (*chain, error) {
	c := &chain{next: 1}
	if known != nil && known.whole <= int64(len(data)) && known.sum == envelope.Sum(data[:known.whole]) {
		*c = *known
	}
	c.owned = false
	rest, count := data[c.whole:], c.count
	var bad []error // faults of lines behind the last intact one
	lines := 0      // number of these lines
	for {
		end := bytes.IndexByte(rest, '\n') + 1
		if end == 0 {
			break
		}
		line := rest[:end]
		rest = rest[end:]
		count++
		err := errShort // without decoding: a foreign file may have millions of short lines
		if len(line) >= minLine {
			if err = c.add(line, int64(len(data)-len(rest)-len(line)), lines > 0); errors.Is(err, envelope.ErrFutureVersion) {
				return nil, err
			}
		}
		if err != nil {
			if lines++; len(c.faults)+len(bad) < maxFaults {
				bad = append(bad, damaged(path, fmt.Errorf("line %d: %w", count, err)))
			}
			continue
		}
		c.faults, bad, lines = append(slices.Clip(c.faults), bad...), nil, 0
		c.whole, c.count = int64(len(data)-len(rest)), count
	}
	c.tail = lines
	c.sum = envelope.Sum(data[:c.whole])
	return c, nil
}

// add adds the line that begins at start. gap says that the lines right before it are damaged.
func (c *chain) add(line []byte, start int64, gap bool) error {
	var l struct {
		Entry
		removal
		pinning
		bringing
	}
	if err := lineFormat.Decode(line, &l); err != nil {
		return err
	}
	kinds := 0
	for _, number := range []uint64{l.Number, l.removal.Removed, l.Pin, l.Brought} {
		if number > 0 {
			kinds++
		}
	}
	switch {
	case kinds != 1 || l.removal.Removed > 0 && l.Why == "":
		return fmt.Errorf("it is no entry, no removal, no pin and no import: %w", envelope.ErrCorrupt)
	case l.Number > 0:
		return c.append(&l.Entry, line, start, gap)
	case l.removal.Removed > 0:
		c.change(l.removal.Removed, func(e *Entry) { e.Removed = l.Why })
	case l.Pin > 0:
		c.change(l.Pin, func(e *Entry) { e.Pinned = l.pinning.Pinned })
	default:
		c.brought = max(c.brought, l.Brought)
	}
	c.lost = c.lost || gap
	return nil
}

// append adds the entry of a line.
func (c *chain) append(e *Entry, line []byte, start int64, gap bool) error {
	if err := e.check(c.next); err != nil {
		return fmt.Errorf("%w: %w", err, envelope.ErrCorrupt)
	}
	e.ID = idOf(line)
	if n := len(c.entries); n > 0 && c.entries[n-1].ID != e.Previous || gap || c.lost {
		e.Cut = true // which tasks were active in the missing interval is not known
	}
	c.entries, c.starts = append(c.entries, e), append(c.starts, start)
	c.next, c.lost = e.Number+1, false
	return nil
}

// idOf returns the ID of an entry: the hash of its line without the line feed.
func idOf(line []byte) ID { return sha256.Sum256(line[:len(line)-1]) }

// check returns an error if an entry cannot be the next one of a chain. Its number must be at
// least next.
func (e *Entry) check(next uint64) error {
	begun := func(tasks []Active, limit uint64) bool {
		return slices.ContainsFunc(tasks, func(a Active) bool { return a.Begun == 0 || a.Begun > limit })
	}
	switch {
	case e.Number < next || e.Number > 1<<53:
		return fmt.Errorf("its number %d is not one that follows", e.Number)
	case !e.Reason.valid():
		return fmt.Errorf("there is no reason %s", quote(string(e.Reason)))
	case e.Only != nil && e.Reason != Manual:
		return errors.New("it has a list of paths, and its reason is not manual")
	case e.Parent >= e.Number || e.Target >= e.Number || begun(e.By, e.Number-1) || begun(e.Active, e.Number):
		return errors.New("it names an entry that came later")
	case min(e.Changed, e.Files, e.Taken.Files, e.Hidden) < 0 || min(e.Bytes, e.Taken.Bytes) < 0:
		return errors.New("it has a negative count")
	case len(e.Volumes) > 0 && len(e.Volumes) != len(e.Mounts):
		return errors.New("it has not as many volumes as mount points")
	}
	return nil
}

// change replaces an entry by a changed copy. It ignores a missing number: the line of that
// entry was damaged.
func (c *chain) change(number uint64, fn func(*Entry)) {
	i, ok := c.find(number)
	if !ok {
		return
	}
	if !c.owned {
		c.entries, c.owned = slices.Clone(c.entries), true
	}
	e := *c.entries[i]
	fn(&e)
	c.entries[i] = &e
}

func (c *chain) find(number uint64) (int, bool) {
	return slices.BinarySearchFunc(c.entries, number, func(e *Entry, n uint64) int { return cmp.Compare(e.Number, n) })
}

// newest returns the last entry, or nil.
func (c *chain) newest() *Entry {
	if len(c.entries) == 0 {
		return nil
	}
	return c.entries[len(c.entries)-1]
}

// live returns the newest entry that was not removed and for which fn returns true, or nil.
func (c *chain) live(fn func(*Entry) bool) *Entry {
	for _, e := range slices.Backward(c.entries) {
		if e.Removed == "" && fn(e) {
			return e
		}
	}
	return nil
}

// dead returns the offset before which lines can be dropped: that of the oldest entry that was
// not removed, or 0 if the lines before it take less than maxDead bytes.
func (c *chain) dead() int64 {
	i := slices.IndexFunc(c.entries, func(e *Entry) bool { return e.Removed == "" })
	if i < 0 {
		i = len(c.entries) - 1 // the newest stays, so that its number is not given again
	}
	if i < 0 || c.starts[i] < maxDead {
		return 0
	}
	return c.starts[i]
}
