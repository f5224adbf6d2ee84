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

// A builder puts a State together from what of a session's files is whole.
type builder struct {
	dir    writer.FS
	id     session.ID
	log    *journal.Log
	all    *journal.Log // every whole record, whether it counts or not
	bases  []base       // those that can be read, the newest first
	unread []string     // in words
	cps    *Checkpoints // of the project; nil when there are none
}

// A base is a whole State that records can be applied to. The zero value is
// nothing, before the first record.
type base struct {
	name string
	at   session.Mark // of the older of the two files
	// read returns the two files; nil of the zero value. Of many that are large one is
	// in memory at a time.
	read func() (state, metrics []byte, err error)
	lost []string // in words: what of it is not whole
}

func (b base) String() string { return cmp.Or(b.name, "nothing") }

// built is a State that was put together.
type built struct {
	base base
	st   *session.State
	at   session.Mark
	lost []string // in words
}

// read takes stock. Only what cannot be read at all is an error.
func (b *builder) read() (err error) {
	if b.log, err = journal.Read(b.dir, 0, true); err != nil {
		return err
	}
	if b.all, err = journal.Salvage(b.dir, b.id.String()); err != nil {
		return err
	}
	all, unread, err := history.ListAll(b.dir)
	if err != nil {
		return err
	}
	for _, u := range unread {
		b.unread = append(b.unread, u.Err.Error())
	}
	names := namedIn(b.log, all)
	for _, m := range all {
		if known, same := names.recordOf(b.log, m); known && !same || !b.log.Holds(m.Epoch, m.Seq) {
			continue // of a record that never counted
		}
		read := func() (state, metrics []byte, err error) { return history.Read(b.dir, m.ID(), m.SHA256) }
		if _, _, err := read(); err != nil {
			b.unread = append(b.unread, err.Error())
			continue
		}
		b.bases = append(b.bases, base{history.Path(b.dir, m.ID()), session.Mark{Epoch: m.Epoch, Seq: m.Seq}, read, nil})
	}
	if r, err := snapshots(b.dir); err != nil {
		b.unread = append(b.unread, err.Error())
	} else if err := b.onChain(r); err != nil {
		b.unread = append(b.unread, err.Error())
	} else {
		at := r.At()
		if r.Metrics().Seq < at.Seq {
			at = r.Metrics()
		}
		read := func() (state, metrics []byte, err error) {
			state, serr := writer.ReadText(b.dir, stateFile, maxFile)
			metrics, merr := writer.ReadText(b.dir, metricsFile, maxFile)
			return state, metrics, errors.Join(serr, merr)
		}
		b.bases = append(b.bases, base{stateFile, at, read, nil})
	}
	slices.SortStableFunc(b.bases, func(x, y base) int { return cmp.Compare(y.at.Seq, x.at.Seq) })
	return nil
}

// onChain says whether what was loaded is this session's and of its journal.
func (b *builder) onChain(r *session.Replay) error {
	if err := session.CheckFolder(r.ID(), b.id); err != nil {
		return fmt.Errorf("%s: %w", stateFile, err)
	}
	for _, at := range []session.Mark{r.At(), r.Metrics()} {
		if !b.log.Holds(at.Epoch, at.Seq) {
			return fmt.Errorf("%s: a writer that had lost the session wrote it", stateFile)
		}
	}
	return nil
}

// last is the last record that is known of. In a segment whose header is damaged all
// records are: a header is durable before the first of them is written.
func (b *builder) last() uint64 {
	last := b.log.Last()
	headless := map[string]bool{}
	for _, f := range b.log.Faults {
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
	for _, each := range b.bases {
		last = max(last, each.at.Seq)
	}
	return last
}

// goOn applies the records above a base, one after the other, up to a number or to
// the first that is missing or damaged.
func (b *builder) goOn(from base, upto uint64) (*built, error) {
	refs := b.log.Above(from.at.Seq)
	for i, ref := range refs {
		if ref.Seq != from.at.Seq+1+uint64(i) || ref.Seq > upto {
			refs = refs[:i]
			break
		}
	}
	for {
		got, n, err := b.apply(from, refs)
		if err == nil {
			return got, nil
		}
		if n == len(refs) {
			return nil, fmt.Errorf("%s: %w", from, err)
		}
		refs = refs[:n] // what cannot be applied ends it: a Replay that failed is of no use
	}
}

// apply is a State from a base and records; n is how many could be applied.
func (b *builder) apply(from base, refs []journal.Ref) (got *built, n int, err error) {
	r := &session.Replay{}
	if from.read != nil {
		state, metrics, err := from.read()
		if err == nil {
			err = r.Load(state, metrics)
		}
		if err != nil {
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
	return &built{base: from, st: st, at: at}, n, nil
}
