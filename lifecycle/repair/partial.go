package repair

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/lopen-dev/lopen/lifecycle/folder"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/wire"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/journal"
)

// partial takes what can be read, whatever is missing between: the newest State
// that there is, and then every whole record above it that leads to a State which
// keeps the critical rules. What that leaves is for a person to judge.
func (b *rebuilder) partial() (*folder.Built, error) {
	log := b.all
	got := &folder.Built{}
	for _, from := range slices.Concat(b.alone(), b.Bases, b.Unnamed) {
		if next, _, err := b.Apply(from, nil); err == nil && next.At.Seq > got.At.Seq {
			got = next
		}
	}
	var gaps []string
	due, refs := got.At.Seq+1, log.Above(got.At.Seq)
	for _, ref := range refs {
		if ref.Seq > due {
			gaps = append(gaps, records(due, ref.Seq-1))
		}
		due = ref.Seq + 1
	}
	f := fitter{b: b.Builder, Built: got}
	f.b.Log = log
	f.take(refs)
	got.Lost = slices.Concat(got.Lost, folder.FirstOf(gaps, "gaps between the records"), folder.FirstOf(f.skipped, "records that do not fit"))
	if f.left > 0 {
		got.Lost = append(got.Lost, fmt.Sprintf("%d records behind these, which nobody tried", f.left))
	}
	if got.State == nil {
		return nil, b.nothing("nothing of it can be read: begin anew")
	}
	return got, nil
}

// maxSkipped bounds how many records are found not to fit: each costs as much as the
// State is large.
const maxSkipped = 100

// A fitter takes the records that fit.
type fitter struct {
	b folder.Builder
	*folder.Built
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
	next, _, err := f.b.Apply(folder.Base{Load: func() (*wire.Replay, error) {
		r := &wire.Replay{}
		if f.State != nil {
			r = wire.Continue(f.State, f.At)
		}
		r.Lenient = true
		return r, nil
	}}, refs)
	switch half := len(refs) / 2; {
	case err == nil:
		f.State, f.At = next.State, next.At
	case half > 0:
		f.take(refs[:half])
		f.take(refs[half:])
	default:
		f.skipped = append(f.skipped, fmt.Sprintf("record %d: %v", refs[0].Seq, err))
	}
}

// alone is the base that a state.json is whatever became of its checksum and of
// metrics.json, with the iterations that the records up to it name; none where it is
// nothing.
func (b *rebuilder) alone() []folder.Base {
	var files [2][]byte
	for i, name := range folder.Readable {
		var err error
		if files[i], err = writer.ReadText(b.Dir, name, folder.MaxFile); err != nil && (i == 0 || !errors.Is(err, fs.ErrNotExist)) {
			return nil
		}
	}
	from, r := folder.Base{Name: folder.StateFile}, &wire.Replay{}
	if _ = r.Load(files[0], files[1]); r.ID() != b.ID {
		none, err := session.New(b.ID, time.Unix(0, 0))
		if err != nil {
			return nil
		}
		from.Name, r = folder.StateFile+" without "+folder.MetricsFile, &wire.Replay{}
		if _ = r.Load(files[0], wire.EncodeMetrics(none, session.Mark{})); r.ID() != b.ID {
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
	st, at, err := r.State(b.ID)
	if err != nil {
		return nil
	}
	head, _ := wire.DecodeSummary(files[0]) // of one that cannot be read nothing is missed
	if st.NumIterations() < head.Iterations {
		from.Lost = []string{fmt.Sprintf("%d of %d starts of the command", head.Iterations-st.NumIterations(), head.Iterations)}
	}
	from.Load = func() (*wire.Replay, error) { return wire.Continue(st, at), nil }
	return []folder.Base{from}
}
