package lifecycle

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/lopen-dev/lopen/lifecycle/history"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/journal"
)

// A builder puts a State together from a base and the records above it. It is the one
// way to a State: of the newest record, of an earlier one, and of a damaged session.
type builder struct {
	dir    writer.FS
	id     session.ID
	log    *journal.Log
	named  [2]journal.Named // the readable files, where the log vouches for both
	bases  []base           // that the log vouches for, the newest first
	unread []string         // in words: what is no base
	// unnamed are States that no record or note names any more, and that were made of
	// records: they are for a person to judge.
	unnamed []base
}

// allRecords is above the number of each.
const allRecords = ^uint64(0)

// A base is a whole State that records can be applied to. The zero value is
// nothing, before the first record.
type base struct {
	name string
	at   session.Mark // of the older of the two files
	// load returns the State's two files. Of many that are large one is in memory at a
	// time.
	load func() (*session.Replay, error)
	lost []string // in words: what of it is not whole
}

func (b base) String() string { return cmp.Or(b.name, "nothing") }

// built is a State that was put together.
type built struct {
	base  base
	st    *session.State
	at    session.Mark
	ended error    // why the records up to the one that was asked for are not all in it
	lost  []string // in words
}

// read takes stock of what a State can be built from: the whole journal, and the States
// that it vouches for with their hash and epoch. p may be nil. Only what cannot be read
// at all is an error.
func (b *builder) read(p *pair) (err error) {
	if b.log, err = journal.Read(b.dir, 0, true); err != nil {
		return err
	}
	all, unread, err := history.ListAll(b.dir)
	if err != nil {
		return err
	}
	for _, u := range unread {
		b.unread = append(b.unread, u.Err.Error())
	}
	named := b.namedByRecords(all)
	for _, m := range all {
		from := base{name: history.Path(b.dir, m.ID()), at: session.Mark{Epoch: m.Epoch, Seq: m.Seq}, load: func() (*session.Replay, error) {
			state, metrics, err := history.Read(b.dir, m.ID(), m.SHA256)
			r := &session.Replay{}
			return r, cmp.Or(err, r.Load(state, metrics))
		}}
		if _, ok := b.log.Noted(m.SHA256); ok || named[m.ID()] == m.SHA256 {
			b.bases = append(b.bases, from)
			continue
		}
		b.unread = append(b.unread, from.name+": the journal does not name it")
		if m.Reason != history.Large && b.log.Holds(m.Epoch, m.Seq) {
			b.unnamed = append(b.unnamed, from)
		}
	}
	if from, ok := b.vouched(p); ok {
		b.bases = append(b.bases, from)
	}
	b.sort()
	return nil
}

func (b *builder) sort() {
	slices.SortStableFunc(b.bases, func(x, y base) int { return cmp.Compare(y.at.Seq, x.at.Seq) })
}

// namedByRecords are the checksums of the snapshots that records of large changes name.
func (b *builder) namedByRecords(all []history.Manifest) map[history.ID]string {
	named := map[history.ID]string{}
	var refs []journal.Ref
	for _, m := range all {
		if ref := b.log.Above(m.Seq - 1); m.Reason == history.Large && len(ref) > 0 && ref[0].Seq == m.Seq && ref[0].Epoch == m.Epoch {
			refs = append(refs, ref[0])
		}
	}
	// A segment that changes while it is read leaves the rest unnamed, and so not believed.
	_ = b.log.Lines(refs, func(_ *journal.Ref, line []byte) error {
		if rec, err := session.DecodeRecord(line); err == nil && rec.Snapshot != nil {
			named[history.ID{Epoch: rec.Epoch, Seq: rec.Seq}] = rec.Snapshot.SHA256
		}
		return nil
	})
	return named
}

// vouched is the base that the readable files are, where notes of the log name both.
func (b *builder) vouched(p *pair) (base, bool) {
	if p == nil || p.r == nil {
		return base{}, false
	}
	var named [2]journal.Named
	for i, sum := range p.sums {
		var ok bool
		if named[i], ok = b.log.Noted(sum); !ok {
			return base{}, false
		}
	}
	b.named = named
	return p.base(), true
}

// goOn applies the records above a base, one after the other, up to a number or to
// the first that is missing or damaged.
func (b *builder) goOn(from base, upto uint64) (*built, error) {
	if b.log.Session != "" && b.log.Session != b.id.String() {
		return nil, fmt.Errorf("%w: the journal is that of session %s", session.ErrCorrupt, b.log.Session)
	}
	var ended error
	if lost := b.log.LostAbove(from.at.Seq); lost > 0 && lost <= upto {
		ended = fmt.Errorf("%w: record %d of the journal, which was durable, is missing or damaged%s", session.ErrCorrupt, lost, b.damage())
		upto = lost - 1
	}
	refs := b.log.Above(from.at.Seq)
	refs = refs[:len(refs)-len(b.log.Above(upto))]
	for {
		got, n, err := b.apply(from, refs)
		if err == nil {
			got.ended = ended
			return got, nil
		}
		if n == len(refs) {
			if from.load != nil {
				err = fmt.Errorf("%s: %w", from, err)
			}
			return nil, cmp.Or(ended, err)
		}
		ended, refs = err, refs[:n] // what cannot be applied ends it: a Replay that failed is of no use
	}
}

// apply is a State from a base and records; n is how many could be applied.
func (b *builder) apply(from base, refs []journal.Ref) (got *built, n int, err error) {
	r := &session.Replay{}
	if from.load != nil {
		if r, err = from.load(); err != nil {
			return nil, len(refs), err
		}
	}
	err = b.log.Lines(refs, func(_ *journal.Ref, line []byte) error {
		err := applyLine(b.dir, r, line)
		if err == nil {
			n++
		}
		return err
	})
	if err != nil {
		return nil, n, err
	}
	st, at, err := r.State(b.id)
	if err != nil {
		return nil, len(refs), err
	}
	return &built{base: from, st: st, at: at, lost: slices.Clone(from.lost)}, n, nil
}

// fromNewest begins with the newest base at or below a record that can be read, or with
// the first record, and applies the records after it up to that one. A base further back
// leads through the same records, so the first decides.
func (b *builder) fromNewest(upto uint64) (*built, error) {
	var errs []error
	for _, from := range append(slices.Clone(b.bases), b.begin()) {
		if from.at.Seq > upto {
			continue
		}
		got, err := b.goOn(from, upto)
		if err == nil {
			return got, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

// begin is the base below the first record.
func (b *builder) begin() base { return base{at: session.Mark{Seq: b.log.Begin() - 1}} }

// damage names the first places of the log that are damaged.
func (b *builder) damage() (s string) {
	var places []string
	for _, f := range b.log.Faults {
		if f.Kind == journal.Damaged {
			places = append(places, f.String())
		}
	}
	for _, place := range firstOf(places, "places") {
		s += "; " + place
	}
	return s
}
