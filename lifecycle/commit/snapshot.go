package commit

import (
	"time"

	"github.com/lopen-dev/lopen/actors"
	"github.com/lopen-dev/lopen/lifecycle/history"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
	"github.com/lopen-dev/lopen/lifecycle/wire"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/codec"
)

// A snapshot is a State that is to be written to history/.
type snapshot struct {
	st *session.State
	at session.Mark
	m  history.Manifest
	by codec.Options
}

// snapshot returns that of a State. changed is how many changes of files its manifest counts.
func (c *Committer) snapshot(st *session.State, at session.Mark, when time.Time, why history.Reason, changed int) snapshot {
	p := st.Progress()
	active, needs := []string{}, []string{}
	if id := st.ActiveTask(); id != "" {
		active = append(active, id)
		t, _ := st.Task(id)
		needs = append(needs, t.FirstDependencies()...)
	}
	return snapshot{st, at, history.Manifest{
		Session: c.id.String(), Epoch: at.Epoch, Seq: at.Seq, At: when, Reason: why,
		Tasks:    history.Tasks{Total: p.Total, Completed: p.Done, Active: active, Dependencies: needs},
		Messages: at.Messages, Changed: changed, Iterations: st.NumIterations(),
	}, c.opts.Compression}
}

func (s snapshot) write(dir writer.FS) (history.Manifest, error) {
	return history.Write(dir, s.m, wire.EncodeState(s.st, s.at), wire.EncodeMetrics(s.st, s.at), s.by)
}

// changedFiles returns how many changes of project files a batch records.
func changedFiles(b actors.Batch) (n int) {
	for _, e := range b.Entries {
		for _, op := range e.Ops {
			if op.Name == record.OpFilesChanged {
				n += op.Count
			}
		}
	}
	return n
}

// remember gives the State of a batch to the publisher if a snapshot of it is due. Until a
// publication has written the snapshot, the journal has the State.
func (c *Committer) remember(b actors.Batch, at session.Mark, when time.Time, grew bool) {
	c.since++
	c.changed += changedFiles(b)
	var why history.Reason
	switch {
	case c.base != nil && c.base.Phase() != b.State.Phase():
		why = history.Phase
	case b.Triggers[session.TriggerComponentCompleted] > 0:
		why = history.Component
	case c.opts.Iterations && grew:
		why = history.Iteration
	case c.opts.Interval > 0 && c.since >= c.opts.Interval:
		why = history.Interval
	default:
		return
	}
	snap := c.snapshot(b.State, at, when, why, c.changed)
	c.since, c.changed = 0, 0
	if c.base != nil {
		snap.m.NewIterations = b.State.NumIterations() - c.base.NumIterations()
	}
	c.pub.remember(snap, c.opts.Retention)
}
