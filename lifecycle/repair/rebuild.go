package repair

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/folder"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/journal"
)

// The strategies of [Recover]. AtCheckpoint is followed by "=" and a checkpoint.
const (
	LatestCheckpoint = "latest-checkpoint"
	AtCheckpoint     = "checkpoint"
	JournalAlone     = "journal"
	Partial          = "partial"
)

// A rebuilder is a Builder that also uses what the log does not vouch for. A person checks the
// result.
type rebuilder struct {
	folder.Builder
	all   *journal.Log      // every intact record, whether it counts or not
	chain *checkpoint.Store // of the project; nil if there are no checkpoints
}

// read finds the bases and the records. The readable files are a base if their checksums are
// right, even if they are of a record that the journal lost.
func (b *rebuilder) read() error {
	p, err := folder.ReadFiles(b.Dir)
	if p == nil {
		return err
	}
	if err := b.Read(p); err != nil {
		return err
	}
	if b.all, err = journal.Salvage(b.Dir, b.ID.String()); err != nil {
		return err
	}
	b.Bases = slices.DeleteFunc(b.Bases, func(from folder.Base) bool {
		_, err := from.Load()
		if err != nil {
			b.Unread = append(b.Unread, err.Error())
		}
		return err != nil
	})
	if err == nil {
		err = p.Check(b.ID, b.Log)
	}
	if err != nil {
		b.Unread = append(b.Unread, strings.Split(err.Error(), "\n")...) // one line for each file
	} else if b.Named[0].File == "" {
		b.Bases = append(b.Bases, p.Base())
		b.Sort()
	}
	return nil
}

// rebuild recovers a State with the Recovery's strategy, and lists the results of the others.
func rebuild(dir writer.FS, r *Recovery, chain *checkpoint.Store) error {
	b := &rebuilder{Builder: folder.Builder{Dir: dir, ID: r.From}, chain: chain}
	if err := b.read(); err != nil {
		return err
	}
	ways := b.ways()
	got, err := b.follow(ways, r)
	if err != nil {
		return err
	}
	r.state, r.Base, r.Seq = got.State, got.Base.String(), got.At.Seq
	r.Rules = append(r.Rules, session.Check(got.State)...)
	r.Recovered = append(r.Recovered, fmt.Sprintf("record %d, from %s", got.At.Seq, got.Base), counts(got.State))
	last, n := b.line(got.At)
	if n > 0 {
		r.Recovered = append(r.Recovered, fmt.Sprintf("%d checkpoints of the files", n))
	}
	for _, w := range ways {
		if w.strategy != r.Strategy {
			r.Others = append(r.Others, w.String())
		}
	}
	to := got.At
	if !strings.HasPrefix(r.Strategy, AtCheckpoint) {
		to.Seq = folder.AllRecords // includes messages after the last State
	}
	r.Lost = slices.Concat(b.Unread, got.Lost)
	if r.conversation, err = conversation(dir, to, r); err != nil {
		return err
	}
	r.conversation.Checkpoint = last
	if newest := b.last(); newest > r.Seq {
		r.Lost = append(r.Lost, records(r.Seq+1, newest))
	}
	r.Lost = append(r.Lost, "the log of its past stays with the damaged session")
	return nil
}

// follow returns the State of the strategy that the Recovery names. If it names none, follow
// chooses the strategy that saves most and sets it in the Recovery.
func (b *rebuilder) follow(ways []way, r *Recovery) (*folder.Built, error) {
	name, cp, named := strings.Cut(r.Strategy, "=")
	if named && name == AtCheckpoint {
		got, err := b.atCheckpoint(cp)
		if err == nil {
			got.State, err = b.withBoxes(ways, got.State)
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
	return nil, &writer.Error{Op: "recover", Path: fmt.Sprintf("%q", r.Strategy), Class: writer.ClassInvalid,
		Err: fmt.Errorf("give %s, %s=CP, %s or %s", LatestCheckpoint, AtCheckpoint, JournalAlone, Partial)}
}

// A way is a strategy with its result.
type way struct {
	strategy string
	got      *folder.Built
	err      error
}

// ways returns the strategies that need no checkpoint, with those first that leave no record
// out.
func (b *rebuilder) ways() []way {
	whole, werr := b.Newest(folder.AllRecords)
	if werr != nil || whole.Base.Load == nil {
		werr = errors.Join(werr, b.nothing("no snapshot of it can be read: try --strategy %s, or %s", JournalAlone, Partial))
	}
	alone, aerr := b.fromJournal()
	part, perr := b.partial()
	return []way{{LatestCheckpoint, whole, werr}, {JournalAlone, alone, aerr}, {Partial, part, perr}}
}

func (w way) String() string {
	if w.err != nil {
		return fmt.Sprintf("%s: nothing: %v", w.strategy, w.err)
	}
	s := fmt.Sprintf("%s: record %d, from %s: %s", w.strategy, w.got.At.Seq, w.got.Base, counts(w.got.State))
	if len(w.got.Lost) > 0 {
		s += "; without " + strings.Join(w.got.Lost, ", ")
	}
	return s
}

func counts(st *session.State) string {
	p := st.Progress()
	return fmt.Sprintf("%d of %d tasks are done, %d starts of the command", p.Done, p.Total, st.NumIterations())
}

// best returns the result of the strategy that saves most. Of two that save as much it takes the
// earlier one in ways.
func (b *rebuilder) best(ways []way, strategy *string) (got *folder.Built, err error) {
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

// saves reports whether one State saves more than another, because it is of a newer record. A
// State of a record that neither the journal nor a snapshot knows rests on the number in a
// damaged state.json, so it must also have more tasks done.
func (b *rebuilder) saves(x, y *folder.Built) bool {
	return x.At.Seq > y.At.Seq && (x.At.Seq <= b.last() || x.State.Progress().Done > y.State.Progress().Done)
}

// records returns a text that names the records from first to last.
func records(first, last uint64) string {
	if first == last {
		return fmt.Sprintf("record %d", first)
	}
	return fmt.Sprintf("records %d to %d", first, last)
}

// nothing returns the error of a strategy that recovers nothing.
func (b *rebuilder) nothing(format string, args ...any) error {
	return &writer.Error{Op: "rebuild", Path: b.Dir.Name(), Class: writer.ClassCorrupt, Err: fmt.Errorf(format, args...)}
}

// last returns the last record that is known to have existed. All intact records in a segment
// with a damaged header count, because the header was durable before the first of them.
func (b *rebuilder) last() uint64 {
	last := b.Log.Last()
	headless := map[string]bool{}
	for _, f := range b.Log.Faults {
		if f.Kind == journal.Damaged {
			last = max(last, f.Seq)
		}
		headless[f.Segment] = headless[f.Segment] || f.Offset == 0
	}
	for i := range b.all.Records {
		if r := &b.all.Records[i]; headless[r.Segment()] {
			last = max(last, r.Seq)
		}
	}
	for _, each := range slices.Concat(b.Bases, b.Unnamed) {
		last = max(last, each.At.Seq)
	}
	return last
}

func (b *rebuilder) fromJournal() (*folder.Built, error) {
	first := b.Log.Begin()
	if len(b.Log.Above(first-1)) == 0 || b.Log.LostAbove(first-1) == first {
		return nil, b.nothing("the first record of its journal is missing: try --strategy %s, or %s", LatestCheckpoint, Partial)
	}
	return b.Replay(b.Begin(), folder.AllRecords)
}

// atCheckpoint returns the State of a snapshot's number, or of the record of a checkpoint.
func (b *rebuilder) atCheckpoint(cp string) (*folder.Built, error) {
	seq, err := b.checkpointSeq(cp)
	if err != nil {
		return nil, err
	}
	got, err := b.Newest(seq)
	if err == nil && got.At.Seq == seq {
		return got, nil
	}
	return nil, errors.Join(err, b.nothing("record %d of checkpoint %s cannot be reached", seq, cp))
}

// withBoxes returns an earlier State with the boxes of the newest State that can be recovered.
// If there is none, the State keeps its own boxes, and the next run follows the plan.
func (b *rebuilder) withBoxes(ways []way, st *session.State) (*session.State, error) {
	newest, err := b.best(ways, new(string))
	if err != nil {
		return st, nil //nolint:nilerr // as the comment says
	}
	return st.WithBoxes(newest.State)
}
