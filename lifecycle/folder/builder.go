package folder

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/lopen-dev/lopen/lifecycle/history"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/wire"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/envelope"
	"github.com/lopen-dev/lopen/writer/journal"
)

// A Builder builds a State from a base and the records above it. All States are built this
// way: the newest, an earlier one, and that of a damaged session.
type Builder struct {
	Dir    writer.FS // the session's folder
	ID     session.ID
	Log    *journal.Log
	Named  [2]journal.Named // the readable files, if the log vouches for both
	Bases  []Base           // the bases that the log vouches for, the newest first
	Unread []string         // texts about snapshots that are no base
	// Unnamed are snapshots that no record or note names any more. A person has to decide
	// whether they are used.
	Unnamed []Base
}

// AllRecords is greater than the number of any record.
const AllRecords = ^uint64(0)

// A Base is a whole State that records can be applied to. The zero value is the empty
// base before the first record.
type Base struct {
	Name string
	At   session.Mark // Mark of the older of its two files
	// Load reads the two files of the State; nil means the empty base. Files are loaded on
	// demand, so that only one of many large bases is in memory.
	Load func() (*wire.Replay, error)
	Lost []string // texts about what the base lacks
}

func (b Base) String() string { return cmp.Or(b.Name, "nothing") }

// Built is a State that a Builder has built.
type Built struct {
	Base  Base
	State *session.State
	At    session.Mark
	Ended error    // why not all records that were asked for are applied; nil if they are
	Lost  []string // texts about what the State lacks
}

// Read reads the whole journal and finds the bases that it vouches for with hash and epoch.
// p may be nil. Damage is no error; Read fails only when reading fails.
func (b *Builder) Read(p *Files) (err error) {
	if b.Log, err = journal.Read(b.Dir, 0, true); err != nil {
		return err
	}
	all, unread, err := history.List(b.Dir)
	if err != nil {
		return err
	}
	for _, u := range unread {
		b.Unread = append(b.Unread, u.Err.Error())
	}
	named := b.namedByRecords(all)
	for _, m := range all {
		from := Base{Name: filepath.Join(b.Dir.Name(), m.File()), At: session.Mark{Epoch: m.Epoch, Seq: m.Seq}, Load: func() (*wire.Replay, error) {
			state, metrics, err := history.Read(b.Dir, m.ID(), m.SHA256)
			r := &wire.Replay{}
			return r, cmp.Or(err, r.Load(state, metrics))
		}}
		if _, ok := b.Log.Noted(m.SHA256); ok || named[m.ID()] == m.SHA256 {
			b.Bases = append(b.Bases, from)
			continue
		}
		b.Unread = append(b.Unread, from.Name+": the journal does not name it")
		if m.Reason != history.Large && b.Log.Holds(m.Epoch, m.Seq) {
			b.Unnamed = append(b.Unnamed, from)
		}
	}
	if from, ok := b.vouched(p); ok {
		b.Bases = append(b.Bases, from)
	}
	b.Sort()
	return nil
}

// Sort sorts the bases, the newest first.
func (b *Builder) Sort() {
	slices.SortStableFunc(b.Bases, func(x, y Base) int { return cmp.Compare(y.At.Seq, x.At.Seq) })
}

// namedByRecords returns the checksums of the snapshots that records of large changes name.
func (b *Builder) namedByRecords(all []history.Manifest) map[history.ID]string {
	named := map[history.ID]string{}
	var refs []journal.Ref
	for _, m := range all {
		if ref := b.Log.Above(m.Seq - 1); m.Reason == history.Large && len(ref) > 0 && ref[0].Seq == m.Seq && ref[0].Epoch == m.Epoch {
			refs = append(refs, ref[0])
		}
	}
	// If a segment changes while it is read, the other snapshots stay unnamed and are not used.
	_ = b.Log.Lines(refs, func(_ *journal.Ref, line []byte) error {
		if rec, err := wire.DecodeRecord(line); err == nil && rec.Snapshot != nil {
			named[history.ID{Epoch: rec.Epoch, Seq: rec.Seq}] = rec.Snapshot.SHA256
		}
		return nil
	})
	return named
}

// vouched returns the readable files as a base, if notes of the log name both.
func (b *Builder) vouched(p *Files) (Base, bool) {
	if p == nil || p.replay == nil {
		return Base{}, false
	}
	var named [2]journal.Named
	for i, sum := range p.sums {
		var ok bool
		if named[i], ok = b.Log.Noted(sum); !ok {
			return Base{}, false
		}
	}
	b.Named = named
	return p.Base(), true
}

// Replay applies the records above a base, up to record upto or to the first one that is
// missing or damaged. In the second case Built.Ended is set.
func (b *Builder) Replay(from Base, upto uint64) (*Built, error) {
	if b.Log.Session != "" && b.Log.Session != b.ID.String() {
		return nil, fmt.Errorf("%w: the journal is that of session %s", envelope.ErrCorrupt, b.Log.Session)
	}
	var ended error
	if lost := b.Log.LostAbove(from.At.Seq); lost > 0 && lost <= upto {
		ended = fmt.Errorf("%w: record %d of the journal, which was durable, is missing or damaged%s", envelope.ErrCorrupt, lost, b.damage())
		upto = lost - 1
	}
	refs := b.Log.Above(from.At.Seq)
	refs = refs[:len(refs)-len(b.Log.Above(upto))]
	for {
		got, n, err := b.Apply(from, refs)
		if err == nil {
			got.Ended = ended
			return got, nil
		}
		if n == len(refs) {
			if from.Load != nil {
				err = fmt.Errorf("%s: %w", from, err)
			}
			return nil, cmp.Or(ended, err)
		}
		ended, refs = err, refs[:n] // again, without the record that failed: a wire.Replay is unusable after an error
	}
}

// Apply builds a State from a base and records. n is the number of records that were applied.
// After an error of the base or of the resulting State n is len(refs).
func (b *Builder) Apply(from Base, refs []journal.Ref) (got *Built, n int, err error) {
	r := &wire.Replay{}
	if from.Load != nil {
		if r, err = from.Load(); err != nil {
			return nil, len(refs), err
		}
	}
	err = b.Log.Lines(refs, func(_ *journal.Ref, line []byte) error {
		err := applyLine(b.Dir, r, line)
		if err == nil {
			n++
		}
		return err
	})
	if err != nil {
		return nil, n, err
	}
	st, at, err := r.State(b.ID)
	if err != nil {
		return nil, len(refs), err
	}
	return &Built{Base: from, State: st, At: at, Lost: slices.Clone(from.Lost)}, n, nil
}

// Newest builds the State of record upto from the newest base at or below it that can be
// read, or from the first record. It does not try an older base when a record is damaged,
// because the older base needs the same records.
func (b *Builder) Newest(upto uint64) (*Built, error) {
	var errs []error
	for _, from := range append(slices.Clone(b.Bases), b.Begin()) {
		if from.At.Seq > upto {
			continue
		}
		got, err := b.Replay(from, upto)
		if err == nil {
			return got, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

// Begin returns the empty base below the first record.
func (b *Builder) Begin() Base { return Base{At: session.Mark{Seq: b.Log.Begin() - 1}} }

// damage returns a text with the first damaged places of the log.
func (b *Builder) damage() (s string) {
	var places []string
	for _, f := range b.Log.Faults {
		if f.Kind == journal.Damaged {
			places = append(places, f.String())
		}
	}
	for _, place := range FirstOf(places, "places") {
		s += "; " + place
	}
	return s
}

// maxNamed is the number of texts that FirstOf returns.
const maxNamed = 10

// FirstOf returns the first ten of all, and if there are more, a last text with their number.
func FirstOf(all []string, more string) []string {
	if n := len(all) - maxNamed; n > 0 {
		return append(all[:maxNamed:maxNamed], fmt.Sprintf("%d more %s", n, more))
	}
	return all
}

// StateAt returns a session's State and Mark at a record, from the nearest base and the
// records after it. The error wraps ErrNotFound if the session has no such record.
func StateAt(dir writer.FS, id session.ID, seq uint64) (*session.State, session.Mark, error) {
	p, err := ReadFiles(dir)
	b := &Builder{Dir: dir, ID: id}
	if err == nil {
		err = b.Read(p)
	}
	if err != nil {
		return nil, session.Mark{}, Unreadable("load session", dir.Name(), err)
	}
	if first, last := b.Log.Begin(), b.Log.Last(); seq < first || seq > last {
		return nil, session.Mark{}, fmt.Errorf("%w: its records go from %d to %d", ErrNotFound, first, last)
	}
	got, err := b.Newest(seq)
	if err == nil {
		err = got.Ended
	}
	if err == nil && got.At.Seq != seq {
		err = fmt.Errorf("%w: record %d is missing", envelope.ErrCorrupt, seq)
	}
	if err != nil {
		return nil, session.Mark{}, Unreadable("read journal", dir.Name(), err)
	}
	return got.State, got.At, nil
}
