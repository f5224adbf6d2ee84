package lifecycle

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/journal"
)

// partly takes what can be read, whatever is missing between: the newest State
// that there is, and then every whole record above it that leads to a State which
// keeps the critical rules. What that leaves is for a person to judge.
//
// Of a state.json that is cut off or damaged the whole tasks are taken, where that comes
// to more tasks that are done than an older whole State does.
func (b *builder) partly() (*built, error) {
	got := b.from(b.begins())
	cut := b.from([]beginning{b.cutState})
	switch {
	case got.st == nil && cut.st == nil:
		return nil, b.nothing("nothing of it can be read: begin anew")
	case got.st == nil, cut.base.name != "" && cut.at.Seq >= got.at.Seq && cut.st.Progress().Done > got.st.Progress().Done:
		return cut, nil
	}
	return got, nil
}

// A beginning is a way to begin.
type beginning func() (base, *session.State, session.Mark, error)

// from takes the beginning that gets furthest, and the records above it that fit.
// Without any State that it comes to, that is nil.
func (b *builder) from(ways []beginning) *built {
	log := b.all
	got := &built{}
	for _, begin := range ways {
		from, st, at, err := begin()
		if err == nil && at.Seq > got.at.Seq {
			*got = built{base: from, st: st, at: at, lost: slices.Clone(from.lost)}
		}
	}
	f := fitter{b: b, built: got}
	gaps, size, due := 0, 0, got.at.Seq+1
	var batch []line
	err := log.Lines(log.Above(got.at.Seq), func(ref *journal.Ref, text []byte) error {
		if ref.Seq > due {
			if gaps++; gaps <= maxNamed {
				got.lost = append(got.lost, records(due, ref.Seq-1))
			}
		}
		due = ref.Seq + 1
		batch = append(batch, line{ref.Seq, bytes.Clone(text)})
		if size += len(text); size >= maxBatch {
			f.take(batch)
			batch, size = nil, 0
		}
		return nil
	})
	f.take(batch)
	if err != nil { // the files changed meanwhile
		got.lost = append(got.lost, err.Error())
	}
	if gaps > maxNamed {
		got.lost = append(got.lost, fmt.Sprintf("%d more gaps between the records", gaps-maxNamed))
	}
	if f.skipped > maxNamed {
		got.lost = append(got.lost, fmt.Sprintf("%d more records that do not fit", f.skipped-maxNamed))
	}
	if f.left > 0 {
		got.lost = append(got.lost, fmt.Sprintf("%d records behind these, which nobody tried", f.left))
	}
	return got
}

const (
	// maxNamed bounds how many of the records that do not fit, and of the tasks that are
	// lost, are named.
	maxNamed = 10
	// maxSkipped bounds how many records are found not to fit: each costs as much as the
	// State is large.
	maxSkipped = 100
	// maxBatch is how many bytes of records are tried together.
	maxBatch = 1 << 20
)

// A line is a record.
type line struct {
	seq  uint64
	text []byte
}

// A fitter takes the records that fit.
type fitter struct {
	b *builder
	*built
	skipped, left int
}

// take applies records, all at once where that comes to a State, else one half and then
// the other.
func (f *fitter) take(all []line) {
	switch {
	case len(all) == 0:
		return
	case f.skipped == maxSkipped:
		f.left += len(all)
		return
	}
	err := f.try(f.b, all)
	switch {
	case err == nil:
	case len(all) > 1:
		f.take(all[:len(all)/2])
		f.take(all[len(all)/2:])
	default:
		if f.skipped++; f.skipped <= maxNamed {
			f.lost = append(f.lost, fmt.Sprintf("record %d: %v", all[0].seq, err))
		}
	}
}

// try applies records if what they come to is a State. The State before stays
// otherwise.
func (g *built) try(b *builder, all []line) error {
	r := &session.Replay{}
	if g.st != nil {
		r = session.Continue(g.st, g.at)
	}
	r.Lenient = true
	for _, l := range all {
		if err := applyLine(b.dir, r, l.text); err != nil {
			return err
		}
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
func (b *builder) begins() (all []beginning) {
	all = append(all, func() (base, *session.State, session.Mark, error) {
		state, err := writer.ReadText(b.dir, stateFile, maxFile)
		if err != nil {
			return base{}, nil, session.Mark{}, err
		}
		return b.alone(state, "")
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

// alone is the State of the content of a state.json, whatever its checksum is, with the
// iterations that records up to it tell of.
func (b *builder) alone(state []byte, prefix string) (base, *session.State, session.Mark, error) {
	r, name, err := b.load(state)
	if err != nil {
		return base{}, nil, session.Mark{}, err
	}
	head, _ := session.DecodeSummary(state) // of one that cannot be read nothing is missed
	r.Lenient = true
	refs := b.all.Above(r.Metrics().Seq)
	refs = refs[:max(len(refs)-len(b.all.Above(r.At().Seq)), 0)]
	_ = b.all.Lines(refs, func(_ *journal.Ref, line []byte) error {
		_, _ = r.Apply(line) // iterations only
		return nil
	})
	r.Level()
	st, at, err := r.State(b.id)
	from := base{name: prefix + name, at: at}
	if err == nil && st.NumIterations() < head.Iterations {
		from.lost = []string{fmt.Sprintf("%d of %d starts of the command", head.Iterations-st.NumIterations(), head.Iterations)}
	}
	return from, st, at, err
}

// cutState is what is whole of a state.json that is cut off or damaged. What is not
// is noted.
func (b *builder) cutState() (base, *session.State, session.Mark, error) {
	data, err := writer.ReadText(b.dir, stateFile, maxFile)
	if err != nil {
		return base{}, nil, session.Mark{}, err
	}
	part, err := session.Salvage(data)
	if err != nil {
		return base{}, nil, session.Mark{}, err
	}
	from, st, at, err := b.alone(part.State, "what is whole of ")
	if err != nil {
		return base{}, nil, session.Mark{}, err
	}
	why := fmt.Sprintf("%s: %d of %d tasks", stateFile, max(part.Total-st.Progress().Total, 0), part.Total)
	if part.Err != nil {
		why += fmt.Sprintf(": it cannot be read from %v on", part.Err)
	}
	from.lost = append(from.lost, why)
	for i, id := range part.Cut {
		if i == maxNamed {
			from.lost = append(from.lost, fmt.Sprintf("%d more tasks that are not whole", len(part.Cut)-i))
			break
		}
		from.lost = append(from.lost, fmt.Sprintf("task %s, which is not whole", id))
	}
	return from, st, at, nil
}

// load takes the content of a state.json whatever its checksum is, with metrics.json
// where that can be read, and says what it took.
func (b *builder) load(state []byte) (*session.Replay, string, error) {
	metrics, err := writer.ReadText(b.dir, metricsFile, maxFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, "", err
	}
	r := &session.Replay{}
	if err = r.Load(state, metrics); r.ID() == b.id {
		return r, stateFile, nil
	}
	none, nerr := session.New(b.id, time.Unix(0, 0))
	if nerr != nil {
		return nil, "", nerr
	}
	r = &session.Replay{}
	err = errors.Join(err, r.Load(state, session.EncodeMetrics(none, session.Mark{})))
	if r.ID() != b.id {
		return nil, "", errors.Join(err, session.CheckFolder(r.ID(), b.id))
	}
	return r, stateFile + " without " + metricsFile, nil
}
