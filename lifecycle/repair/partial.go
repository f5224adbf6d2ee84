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

// partial builds a State from everything that can be read. It begins with the newest readable
// State, and applies every intact record above it that leads to a State without broken critical
// rules, although records in between may be missing. A person has to check the result.
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

// maxSkipped bounds the number of records that are found not to fit, because finding each one
// costs time in proportion to the size of the State.
const maxSkipped = 100

// A fitter applies the records that fit.
type fitter struct {
	b folder.Builder
	*folder.Built
	skipped []string // texts about records that do not fit
	left    int      // number of records that were not tried
}

// take applies records. If all of them at once do not lead to a valid State, it tries the first
// half and then the second. A single record that does not fit is skipped.
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

// alone returns state.json as a base even if its checksum is wrong or metrics.json is missing,
// with the iterations from the records up to it. It returns none if state.json cannot be decoded.
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
		_, _ = r.Apply(line) // adds iterations only; errors are ignored
		return nil
	})
	r.Level()
	st, at, err := r.State(b.ID)
	if err != nil {
		return nil
	}
	head, _ := wire.DecodeSummary(files[0]) // after an error nothing is reported as lost
	if st.NumIterations() < head.Iterations {
		from.Lost = []string{fmt.Sprintf("%d of %d starts of the command", head.Iterations-st.NumIterations(), head.Iterations)}
	}
	from.Load = func() (*wire.Replay, error) { return wire.Continue(st, at), nil }
	return []folder.Base{from}
}
