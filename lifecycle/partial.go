package lifecycle

import (
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
func (b *rebuilder) partly() (*built, error) {
	log := b.all
	got := &built{}
	for _, from := range slices.Concat(b.alone(), b.bases, b.unnamed) {
		if next, _, err := b.apply(from, nil); err == nil && next.at.Seq > got.at.Seq {
			got = next
		}
	}
	var gaps []string
	due, refs := got.at.Seq+1, log.Above(got.at.Seq)
	for _, ref := range refs {
		if ref.Seq > due {
			gaps = append(gaps, records(due, ref.Seq-1))
		}
		due = ref.Seq + 1
	}
	f := fitter{b: b.builder, built: got}
	f.b.log = log
	f.take(refs)
	got.lost = slices.Concat(got.lost, firstOf(gaps, "gaps between the records"), firstOf(f.skipped, "records that do not fit"))
	if f.left > 0 {
		got.lost = append(got.lost, fmt.Sprintf("%d records behind these, which nobody tried", f.left))
	}
	if got.st == nil {
		return nil, b.nothing("nothing of it can be read: begin anew")
	}
	return got, nil
}

const (
	// maxNamed bounds how many of the gaps, of the records that do not fit, and of the
	// tasks that are lost are named.
	maxNamed = 10
	// maxSkipped bounds how many records are found not to fit: each costs as much as the
	// State is large.
	maxSkipped = 100
)

// firstOf names the first of some things, and how many more there are.
func firstOf(all []string, more string) []string {
	if n := len(all) - maxNamed; n > 0 {
		return append(all[:maxNamed:maxNamed], fmt.Sprintf("%d more %s", n, more))
	}
	return all
}

// A fitter takes the records that fit.
type fitter struct {
	b builder
	*built
	skipped []string // in words
	left    int
}

// take applies records, all at once where that comes to a State, else one half and then
// the other. The State before stays where they come to none.
func (f *fitter) take(refs []journal.Ref) {
	if len(refs) == 0 || len(f.skipped) == maxSkipped {
		f.left += len(refs)
		return
	}
	next, _, err := f.b.apply(base{load: func() (*session.Replay, error) {
		r := &session.Replay{}
		if f.st != nil {
			r = session.Continue(f.st, f.at)
		}
		r.Lenient = true
		return r, nil
	}}, refs)
	switch half := len(refs) / 2; {
	case err == nil:
		f.st, f.at = next.st, next.at
	case half > 0:
		f.take(refs[:half])
		f.take(refs[half:])
	default:
		f.skipped = append(f.skipped, fmt.Sprintf("record %d: %v", refs[0].Seq, err))
	}
}

// alone is the base that a state.json is whatever became of its checksum and of
// metrics.json, with the iterations that records up to it tell of; none where it is
// nothing.
func (b *rebuilder) alone() []base {
	var files [2][]byte
	for i, name := range readable {
		var err error
		if files[i], err = writer.ReadText(b.dir, name, maxFile); err != nil && (i == 0 || !errors.Is(err, fs.ErrNotExist)) {
			return nil
		}
	}
	from, r := base{name: stateFile}, &session.Replay{}
	if _ = r.Load(files[0], files[1]); r.ID() != b.id {
		none, err := session.New(b.id, time.Unix(0, 0))
		if err != nil {
			return nil
		}
		from.name, r = stateFile+" without "+metricsFile, &session.Replay{}
		if _ = r.Load(files[0], session.EncodeMetrics(none, session.Mark{})); r.ID() != b.id {
			return nil
		}
	}
	r.Lenient = true
	refs := b.all.Above(r.Metrics().Seq)
	refs = refs[:max(len(refs)-len(b.all.Above(r.At().Seq)), 0)]
	_ = b.all.Lines(refs, func(_ *journal.Ref, line []byte) error {
		_, _ = r.Apply(line) // iterations only
		return nil
	})
	r.Level()
	st, at, err := r.State(b.id)
	if err != nil {
		return nil
	}
	head, _ := session.DecodeSummary(files[0]) // of one that cannot be read nothing is missed
	if st.NumIterations() < head.Iterations {
		from.lost = []string{fmt.Sprintf("%d of %d starts of the command", head.Iterations-st.NumIterations(), head.Iterations)}
	}
	from.load = func() (*session.Replay, error) { return session.Continue(st, at), nil }
	return []base{from}
}
