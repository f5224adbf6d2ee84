package lifecycle

import (
	"errors"
	"fmt"
	"time"

	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/journal"
)

// partly takes what can be read, whatever is missing between: the newest State
// that there is, and then every whole record above it that leads to a State which
// keeps the critical rules. What that leaves is for a person to judge.
func (b *builder) partly() (*built, error) {
	log, err := journal.Salvage(b.dir, b.id.String())
	if err != nil {
		return nil, err
	}
	got := &built{}
	for _, begin := range b.begins(log) {
		from, st, at, err := begin()
		if err == nil && at.Seq > got.at.Seq {
			got.base, got.st, got.at = from, st, at
		}
	}
	skipped := 0
	due := got.at.Seq + 1
	for _, ref := range log.Above(got.at.Seq) {
		if ref.Seq > due {
			got.lost = append(got.lost, records(due, ref.Seq-1))
		}
		due = ref.Seq + 1
		err := log.Lines([]journal.Ref{ref}, func(_ *journal.Ref, line []byte) error { return got.try(b, line) })
		if err != nil {
			if skipped++; skipped <= maxSkipped {
				got.lost = append(got.lost, fmt.Sprintf("record %d: %v", ref.Seq, err))
			}
		}
	}
	if got.st == nil {
		return nil, b.nothing("nothing of it can be read: begin anew")
	}
	if skipped > maxSkipped {
		got.lost = append(got.lost, fmt.Sprintf("%d more records that do not fit", skipped-maxSkipped))
	}
	return got, nil
}

// maxSkipped bounds how many of the records that do not fit are named.
const maxSkipped = 10

// try applies one record if what it comes to is a State. The State before stays
// otherwise.
func (g *built) try(b *builder, line []byte) error {
	r := &session.Replay{}
	if g.st != nil {
		r = session.Continue(g.st, g.at)
	}
	r.Lenient = true
	if err := applyLine(b.dir, r, line); err != nil {
		return err
	}
	st, at, err := r.State(b.id)
	if err != nil {
		return err
	}
	g.st, g.at = st, at
	return nil
}

// begins are the ways to begin, the best one first: state.json whatever became of
// its checksum and of metrics.json, then the snapshots. The last way is none of them:
// the records alone.
func (b *builder) begins(log *journal.Log) (all []func() (base, *session.State, session.Mark, error)) {
	all = append(all, func() (base, *session.State, session.Mark, error) {
		r, name, err := b.stateAlone()
		if err != nil {
			return base{}, nil, session.Mark{}, err
		}
		r.Lenient = true
		for _, ref := range log.Above(r.Metrics().Seq) {
			if ref.Seq > r.At().Seq {
				break
			}
			_ = log.Lines([]journal.Ref{ref}, func(_ *journal.Ref, line []byte) error {
				_, err := r.Apply(line) // iterations only
				return err
			})
		}
		r.Level()
		st, at, err := r.State(b.id)
		return base{name: name, at: at}, st, at, err
	})
	for _, each := range b.bases {
		if each.name == stateFile {
			continue
		}
		all = append(all, func() (base, *session.State, session.Mark, error) {
			got, _, err := b.apply(each, nil)
			if err != nil {
				return base{}, nil, session.Mark{}, err
			}
			return each, got.st, got.at, nil
		})
	}
	return all
}

// stateAlone reads state.json, edited or not, with metrics.json or without.
func (b *builder) stateAlone() (*session.Replay, string, error) {
	r, err := snapshots(b.dir)
	if r != nil && r.ID() == b.id {
		return r, stateFile, nil
	}
	state, rerr := writer.ReadFile(b.dir, stateFile, maxFile)
	if rerr != nil {
		return nil, "", errors.Join(err, rerr)
	}
	none, nerr := session.New(b.id, time.Unix(0, 0))
	if nerr != nil {
		return nil, "", nerr
	}
	r = &session.Replay{}
	err = r.Load(state, session.EncodeMetrics(none, session.Mark{}))
	if r.ID() != b.id {
		return nil, "", errors.Join(err, session.CheckFolder(r.ID(), b.id))
	}
	return r, stateFile + " without " + metricsFile, nil
}
