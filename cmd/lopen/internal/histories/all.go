package histories

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/agents"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

const (
	// small is the size in bytes up to which a history is imported beside others.
	small = 1 << 20
	// batchLen and batchBytes bound the histories that are imported together: what a kill undoes.
	batchLen   = 64
	batchBytes = 4 << 20
	// workers is how many such batches are imported at once. They wait for the disk.
	workers = 4
)

// All imports histories as [Import] does. It yields what became of each in their order, when that
// is durable. Small ones are imported in batches, several at once; of a batch that was cut off each
// session is whole or absent. When the caller stops, All waits for what was begun.
func All(ctx context.Context, store *lifecycle.Store, x Index, all []agents.History) iter.Seq2[*Result, error] {
	return func(yield func(*Result, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		var large sync.Mutex // held while a history is imported that is not small
		var running []chan []outcome
		defer func() {
			cancel()
			for _, r := range running {
				<-r
			}
		}()
		next := func() bool {
			first := <-running[0]
			running = running[1:]
			for _, o := range first {
				if !yield(o.res, o.err) {
					return false
				}
			}
			return true
		}
		for len(all) > 0 {
			n := batchOf(all)
			b := batch{store: store, index: x, histories: all[:n], outcomes: make([]outcome, n)}
			all = all[n:]
			ended := make(chan []outcome, 1)
			running = append(running, ended)
			go func() {
				if !isSmall(&b.histories[0]) {
					large.Lock()
					defer large.Unlock()
				}
				b.run(ctx)
				ended <- b.outcomes
			}()
			if len(running) == workers && !next() {
				return
			}
		}
		for len(running) > 0 {
			if !next() {
				return
			}
		}
	}
}

// isSmall reports whether a history may be a part of a batch. The size of one in a database is not
// known.
func isSmall(h *agents.History) bool { return h.Bytes > 0 && h.Bytes <= small }

// batchOf returns how many of the first histories are imported together.
func batchOf(all []agents.History) int {
	n, bytes := 0, int64(0)
	for n < min(len(all), batchLen) && isSmall(&all[n]) && bytes < batchBytes {
		bytes += all[n].Bytes
		n++
	}
	return max(n, 1)
}

// An outcome is what All yields.
type outcome struct {
	res *Result
	err error
}

// batch has histories that are imported together. It belongs to one goroutine.
type batch struct {
	store     *lifecycle.Store
	index     Index
	histories []agents.History
	outcomes  []outcome
}

// run imports the histories. Those that have no session yet get one together.
func (b *batch) run(ctx context.Context) {
	var fresh []int
	var modules []string
	for i := range b.histories {
		h := &b.histories[i]
		if module := agents.Module(h.Agent, h.ID); isSmall(h) && len(b.index[module]) == 0 {
			fresh, modules = append(fresh, i), append(modules, module)
		} else {
			b.alone(ctx, i)
		}
	}
	if len(fresh) == 0 {
		return
	}
	if err := b.together(ctx, fresh, modules); err != nil {
		for _, i := range fresh {
			if h := &b.histories[i]; b.outcomes[i].err == nil {
				b.outcomes[i] = outcome{begun(h), fmt.Errorf("import history %s: %w", h.ID, err)}
			}
		}
	}
}

func (b *batch) alone(ctx context.Context, i int) {
	res, err := Import(ctx, b.store, b.index, &b.histories[i])
	b.outcomes[i] = outcome{res, err}
}

// together makes the sessions of new histories, and puts those in place that have something.
func (b *batch) together(ctx context.Context, fresh []int, modules []string) (err error) {
	made, err := b.store.Batch(ctx, modules)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, made.Close()) }()
	for n, i := range fresh {
		res, err := b.create(ctx, made, n, &b.histories[i])
		b.outcomes[i] = outcome{res, err}
	}
	late, err := made.Place(ctx, func(n int) bool { return b.outcomes[fresh[n]].err == nil && b.outcomes[fresh[n]].res.Made })
	if err != nil {
		return err
	}
	for _, n := range late { // another process took the history meanwhile
		b.alone(ctx, fresh[n])
	}
	return nil
}

// create makes the session of a new history in a batch. It is not to be placed if the history has
// nothing.
func (b *batch) create(ctx context.Context, made *lifecycle.Batch, n int, h *agents.History) (*Result, error) {
	res := begun(h)
	head, err := h.Head()
	if err != nil {
		return res, fmt.Errorf("import history %s: %w", h.ID, err)
	}
	sess, err := made.Create(n, h.ID, Name(head.Title), origin(h))
	if err != nil {
		return res, fmt.Errorf("import history %s: %w", h.ID, err)
	}
	err = errors.Join(Continue(ctx, b.store, sess, h, res), sess.Close(context.WithoutCancel(ctx)))
	if err != nil {
		nothing := begun(h)
		nothing.Report = res.Report
		return nothing, err
	}
	if res.Messages == 0 { // nobody said anything, or nothing of it can be read
		nothing := begun(h)
		nothing.Report = res.Report
		return nothing, nil
	}
	res.Made, res.Session = true, sess.ID().String()
	return res, nil
}

// begun returns the Result of a history of which nothing is known yet.
func begun(h *agents.History) *Result { return &Result{Agent: h.Agent, ID: h.ID, Path: h.Path} }

// origin returns what writes the header of a session that an import makes.
func origin(h *agents.History) func(*session.Header) {
	return func(hd *session.Header) {
		hd.Origin, hd.AgentName = session.OriginImport, h.Agent
		hd.Status, hd.Phase, hd.ExitReason = session.StatusComplete, session.PhaseComplete, session.ExitComplete
		hd.CompletedAt = hd.CreatedAt
	}
}
