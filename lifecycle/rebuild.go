package lifecycle

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer"
)

// The strategies of [Store.Recover]; a checkpoint is named behind a "=".
const (
	LatestCheckpoint = "latest-checkpoint"
	AtCheckpoint     = "checkpoint"
	JournalAlone     = "journal"
	Partial          = "partial"
)

// rebuild does what the Recovery's strategy says, and notes what the others come to.
func rebuild(dir writer.FS, r *Recovery, cps *Checkpoints) error {
	b := &builder{dir: dir, id: r.From, cps: cps}
	if err := b.read(); err != nil {
		return err
	}
	ways := b.ways()
	got, err := b.follow(ways, r)
	if err != nil {
		return err
	}
	r.state, r.at, r.Base, r.Seq = got.st, got.at, got.base.String(), got.at.Seq
	r.Rules = append(r.Rules, session.Check(got.st)...)
	r.Recovered = append(r.Recovered, fmt.Sprintf("record %d, from %s", got.at.Seq, got.base), got.counts())
	var n int
	if r.checkpoint, n = b.line(got.at); n > 0 {
		r.Recovered = append(r.Recovered, fmt.Sprintf("%d checkpoints of the files", n))
	}
	for _, w := range ways {
		if w.strategy != r.Strategy {
			r.Others = append(r.Others, w.String())
		}
	}
	r.Lost = slices.Concat(b.unread, got.lost)
	if last := b.last(); last > got.at.Seq {
		r.Lost = append(r.Lost, records(got.at.Seq+1, last))
	}
	r.Lost = append(r.Lost, "the log of its past stays with the damaged session")
	return nil
}

// follow is the strategy that the Recovery names; where it names none, the one that
// saves most, which is noted in it.
func (b *builder) follow(ways []way, r *Recovery) (*built, error) {
	name, cp, named := strings.Cut(r.Strategy, "=")
	if named && name == AtCheckpoint {
		got, err := b.atCheckpoint(cp)
		if err == nil {
			got.st, err = b.withBoxes(ways, got.st)
		}
		return got, err
	}
	if r.Strategy == "" {
		return b.best(ways, &r.Strategy)
	}
	for _, w := range ways {
		if w.strategy == r.Strategy {
			return w.got, w.err
		}
	}
	return nil, &Error{Op: "recover", Path: fmt.Sprintf("%q", r.Strategy), Class: writer.ClassInvalid,
		Err: fmt.Errorf("give %s, %s=CP, %s or %s", LatestCheckpoint, AtCheckpoint, JournalAlone, Partial)}
}

// A way is a strategy and what it comes to.
type way struct {
	strategy string
	got      *built
	err      error
}

// ways are the strategies that need no name, those that leave nothing out first.
func (b *builder) ways() []way {
	newest, nerr := b.fromNewest(^uint64(0))
	alone, aerr := b.fromJournal()
	part, perr := b.partly()
	return []way{{LatestCheckpoint, newest, nerr}, {JournalAlone, alone, aerr}, {Partial, part, perr}}
}

func (w way) String() string {
	if w.err != nil {
		return fmt.Sprintf("%s: nothing: %v", w.strategy, w.err)
	}
	s := fmt.Sprintf("%s: record %d, from %s: %s", w.strategy, w.got.at.Seq, w.got.base, w.got.counts())
	if len(w.got.lost) > 0 {
		s += "; without " + strings.Join(w.got.lost, ", ")
	}
	return s
}

func (g *built) counts() string {
	p := g.st.Progress()
	return fmt.Sprintf("%d of %d tasks are done, %d starts of the command", p.Done, p.Total, g.st.NumIterations())
}

// best is the strategy that saves most. Of two that save as much it is the one that
// leaves nothing out.
func (b *builder) best(ways []way, strategy *string) (got *built, err error) {
	var errs []error
	for _, w := range ways {
		switch {
		case w.err != nil:
			errs = append(errs, w.err)
		case got == nil || b.saves(w.got, got):
			got, *strategy = w.got, w.strategy
		}
	}
	if got == nil {
		return nil, errors.Join(errs...)
	}
	return got, nil
}

// saves says whether one State saves more than another: it is of a newer record. One
// that is of a later record than the journal and the snapshots know of rests on what a
// damaged state.json says of itself: it must have more tasks done as well.
func (b *builder) saves(x, y *built) bool {
	return x.at.Seq > y.at.Seq && (x.at.Seq <= b.last() || x.st.Progress().Done > y.st.Progress().Done)
}

// records names those of some numbers.
func records(first, last uint64) string {
	if first == last {
		return fmt.Sprintf("record %d", first)
	}
	return fmt.Sprintf("records %d to %d", first, last)
}

// nothing says that a strategy comes to nothing.
func (b *builder) nothing(format string, args ...any) error {
	return &Error{Op: "rebuild", Path: b.dir.Name(), Class: writer.ClassCorrupt, Err: fmt.Errorf(format, args...)}
}

// fromNewest begins with the newest base at or below a record that lies on the
// journal's chain, and applies the records after it up to that one. As a base further
// back leads through the newer ones, the first that can be gone on from gets furthest.
func (b *builder) fromNewest(upto uint64) (*built, error) {
	var errs []error
	for _, each := range b.bases {
		if each.at.Seq > upto {
			continue
		}
		if len(errs) == maxBegins {
			break
		}
		got, err := b.goOn(each, upto)
		if err == nil {
			return got, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(append(errs, b.nothing("no snapshot of it can be read: try --strategy %s, or %s", JournalAlone, Partial))...)
}

func (b *builder) fromJournal() (*built, error) {
	if len(b.log.Records) == 0 || b.log.Records[0].Seq != 1 {
		return nil, b.nothing("the first record of its journal is missing: try --strategy %s, or %s", LatestCheckpoint, Partial)
	}
	return b.goOn(base{}, ^uint64(0))
}

// atCheckpoint is the State of a snapshot's number, or of the record that a
// checkpoint notes.
func (b *builder) atCheckpoint(cp string) (*built, error) {
	seq, err := b.checkpointSeq(cp)
	if err != nil {
		return nil, err
	}
	got, err := b.fromNewest(seq)
	if err == nil && got.at.Seq == seq {
		return got, nil
	}
	alone, jerr := b.fromJournal()
	if jerr == nil && alone.at.Seq >= seq {
		if alone, jerr = b.goOn(base{}, seq); jerr == nil {
			return alone, nil
		}
	}
	return nil, errors.Join(err, b.nothing("record %d of checkpoint %s cannot be reached", seq, cp))
}

// withBoxes gives a State that a person asked for the boxes that the newest one
// remembers. Where that cannot be had the plan counts, as it does where the newest
// State was lost: lopen ticks only what was done.
func (b *builder) withBoxes(ways []way, st *session.State) (*session.State, error) {
	newest, err := b.best(ways, new(string))
	if err != nil {
		return st, nil //nolint:nilerr // see above
	}
	return st.WithBoxes(newest.st)
}
