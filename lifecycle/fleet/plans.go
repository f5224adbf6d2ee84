package fleet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/folder"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/tasks"
	"github.com/lopen-dev/lopen/plan"
	"github.com/lopen-dev/lopen/writer"
)

// A Plan is a module's plan in the fleet.
type Plan struct {
	Module   string
	Revision uint64 // from 1; one more with each change
	Bytes    []byte
	Open     int // tasks that are not ticked
	Total    int
	Host     string // who works on the module, or changed it last
	Held     bool   // somebody works on it
	Left     time.Duration
	Updated  time.Time
}

// summaryColumns are those of a plan without its bytes, and planColumns all.
var (
	summaryColumns = fmt.Sprintf(`pg_catalog.left(module, 64), revision, open, total, pg_catalog.left(host, %d), holder IS NOT NULL AND lease_until > pg_catalog.clock_timestamp(), %s, %s`,
		maxHost, msUntil("lease_until"), at("updated"))
	planColumns = summaryColumns + `, pg_catalog.octet_length(bytes), ` + within("bytes", maxPlan)
)

// isModule is a condition that a column has the name of a module: nobody here wrote another one.
const isModule = ` COLLATE "C" ~ '^[a-z0-9]([a-z0-9_-]{0,62}[a-z0-9])?$'`

// scan scans summaryColumns and what follows them.
func (p *Plan) scan(from pgx.Row, more ...any) error {
	var revision, left int64
	err := from.Scan(append([]any{&p.Module, &revision, &p.Open, &p.Total, &p.Host, &p.Held, &left, &p.Updated}, more...)...)
	p.Revision, p.Left, p.Host = uint64(revision), time.Duration(left)*time.Millisecond, shown(p.Host, maxHost)
	return misread("plans", err)
}

// A PlanError is returned for a plan of the fleet that no run can work with. It is not written here.
type PlanError struct {
	Plan // without its bytes
	Err  error
}

func (e *PlanError) Error() string {
	return fmt.Sprintf("the plan of %s in the fleet, revision %d by %s: %s", e.Module, e.Revision, e.Host, shown(e.Err.Error(), maxExplained)) // it may quote the plan
}

func (e *PlanError) Unwrap() error { return e.Err }

// errTooLarge means that a plan is larger than one of a fleet may be.
var errTooLarge = fmt.Errorf("a plan in a fleet has at most %d bytes, %d lines and %d tasks", maxPlan, maxPlanLines, maxTasks)

func scanPlan(from pgx.Row) (p Plan, err error) {
	var size int64
	if err := p.scan(from, &size, &p.Bytes); err != nil {
		return p, err
	}
	if p.Bytes == nil && size > 0 || !fits(p.Bytes) {
		p.Bytes = nil
		err = &PlanError{p, fmt.Errorf("it has %d bytes: %w", size, errTooLarge)}
	}
	return p, err
}

// usable returns the plan as one that a run can work with. Only such a plan is written here: it is checked as
// the run checks it that reads it. The error is a [*PlanError].
func (p *Plan) usable() (*plan.Plan, error) {
	now := plan.Parse(p.Bytes)
	err := now.Usable()
	if err == nil {
		_, err = now.Turn()
	}
	if n := len(now.Tasks()); err == nil && n == 0 {
		err = errors.New("it has no task")
	} else if err == nil && n > maxTasks {
		err = fmt.Errorf("it has %d tasks: %w", n, errTooLarge)
	}
	if err == nil {
		_, err = tasks.Reconcile(session.Blank(session.ID{Module: p.Module}), now, tasks.Between)
	}
	if err != nil {
		without := *p
		without.Bytes = nil
		return nil, &PlanError{without, err}
	}
	return now, nil
}

// fits reports whether a plan is one that a fleet may have, as far as its bytes say.
func fits(plan []byte) bool {
	return len(plan) <= maxPlan && bytes.Count(plan, []byte("\n")) <= maxPlanLines
}

// Plans returns the plans of the project, sorted by module, without their bytes.
func (f *Fleet) Plans(ctx context.Context) (all []Plan, err error) {
	err = f.reading(ctx, func(ctx context.Context, c *pgxpool.Conn) error {
		rows, err := c.Query(ctx, `SELECT `+summaryColumns+` FROM lopen_data.plans WHERE project = $1 AND module`+isModule+` ORDER BY module LIMIT $2`, f.opts.Project, maxListed+1)
		if err != nil {
			return err
		}
		all = nil
		more, err := each(rows, maxListed, func(row pgx.Rows) error {
			var p Plan
			err := p.scan(row)
			all = append(all, p)
			return err
		})
		if more {
			f.opts.Logger.Warn().Msgf("the fleet has more than %d plans: the others are not looked at", maxListed)
		}
		return err
	})
	return all, err
}

// Plan returns the plan of a module. The error wraps ErrNotFound if the fleet has none. It is a [*PlanError] for one
// that is too large, and all of it but its bytes is returned as well.
func (f *Fleet) Plan(ctx context.Context, module string) (p Plan, err error) {
	err = f.call(ctx, func(ctx context.Context, c *pgxpool.Conn) (err error) {
		p, err = scanPlan(c.QueryRow(ctx, `SELECT `+planColumns+` FROM lopen_data.plans WHERE project = $1 AND module = $2`, inBinary, f.opts.Project, module))
		return err
	})
	if errors.Is(err, pgx.ErrNoRows) {
		err = fmt.Errorf("plan of %s: %w", module, ErrNotFound)
	}
	return p, err
}

// A ConflictError is returned when the plan in the fleet is not the one that the change was made of.
type ConflictError struct {
	Plan // that is there
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("the plan of %s was changed in the fleet: revision %d, by %s", e.Module, e.Revision, e.Host)
}

// planNote is the file of a module's folder that says which plan the fleet and this folder had in
// common last.
const planNote = "fleet.json"

// A planBase is its content.
type planBase struct {
	Project  string `json:"project"`
	Revision uint64 `json:"revision"`
	SHA256   string `json:"sha256"` // of the plan
}

// moduleDir opens the folder of a module.
func moduleDir(store *lifecycle.Store, module string) (writer.FS, error) {
	root, err := writer.OpenFS(store.Path())
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return writer.OpenDir(root, "modules/"+module)
}

// base returns what the fleet and this folder had in common last; the zero value if that is not
// known.
func (f *Fleet) base(store *lifecycle.Store, module string) (b planBase, err error) {
	dir, err := moduleDir(store, module)
	if errors.Is(err, fs.ErrNotExist) {
		return b, nil
	}
	if err != nil {
		return b, err
	}
	defer dir.Close()
	if err := folder.ReadSmall(dir, planNote, &b); err != nil || b.Project != f.opts.Project {
		return planBase{}, nil //nolint:nilerr // then the person decides
	}
	return b, nil
}

func (f *Fleet) setBase(store *lifecycle.Store, p *Plan) error {
	dir, err := moduleDir(store, p.Module)
	if err != nil {
		return err
	}
	defer dir.Close()
	return folder.WriteSmall(dir, planNote, planBase{f.opts.Project, p.Revision, folder.SHA256(p.Bytes)})
}

// PushPlan makes the plan of a module here the one of the fleet, if the plan there is the one that
// this one was made of. Else the error is a [*ConflictError] with the one that is there; with over
// that one is replaced all the same. It returns the plan as it is there then.
func (f *Fleet) PushPlan(ctx context.Context, store *lifecycle.Store, module string, over bool) (Plan, error) {
	here, err := store.Plan(module)
	if err != nil {
		return Plan{}, err
	}
	if !fits(here.Source()) || len(here.Tasks()) > maxTasks {
		return Plan{}, fmt.Errorf("the plan of %s is not sent: %w", module, errTooLarge)
	}
	base, err := f.base(store, module)
	if err != nil {
		return Plan{}, err
	}
	there, err := f.Plan(ctx, module)
	switch {
	case errors.Is(err, ErrNotFound):
		there = Plan{Module: module}
	case errors.Is(err, errTooLarge) && over:
	case err != nil:
		return Plan{}, err
	case string(there.Bytes) == string(here.Source()):
		return there, f.setBase(store, &there)
	case there.Revision != base.Revision && !over:
		return Plan{}, &ConflictError{there}
	}
	return f.swap(ctx, store, module, there.Revision, here)
}

// swap replaces the plan of a revision; 0 is none.
func (f *Fleet) swap(ctx context.Context, store *lifecycle.Store, module string, revision uint64, p *plan.Plan) (Plan, error) {
	done, total := p.Progress()
	var priority *int64
	after := []string{}
	if turn, err := p.Turn(); err == nil {
		if turn.Priority < math.MaxInt {
			priority = ptr(int64(turn.Priority))
		}
		after = append(after, turn.After...)
	}
	var now Plan
	err := f.durably(ctx, func(ctx context.Context, tx pgx.Tx) (err error) {
		statement := `INSERT INTO lopen_data.plans AS p (project, module, revision, bytes, open, total, priority, after, host)
			SELECT $1, $2, 1, $3, $4, $5, $6, $7, $8 WHERE $9 = 0 ON CONFLICT DO NOTHING RETURNING `
		if revision > 0 {
			statement = `UPDATE lopen_data.plans SET revision = revision + 1, bytes = $3, open = $4, total = $5, priority = $6, after = $7,
					host = CASE WHEN holder IS NULL THEN $8 ELSE host END, updated = clock_timestamp()
				WHERE project = $1 AND module = $2 AND revision = $9 RETURNING `
		}
		now, err = scanPlan(tx.QueryRow(ctx, statement+planColumns, f.opts.Project, module, p.Source(), total-done, total, priority, after, f.opts.Host, int64(revision)))
		return err
	})
	if errors.Is(err, pgx.ErrNoRows) {
		there, err := f.Plan(ctx, module)
		if err != nil {
			return Plan{}, err
		}
		return Plan{}, &ConflictError{there}
	}
	if err != nil && !errors.Is(err, errUnconfirmed) {
		return Plan{}, err
	}
	return now, f.setBase(store, &now)
}

// PullPlan makes the plan of the fleet the one of a module here, if it was changed there. One here that was changed since
// the two were the same as well stays, and the error is a [*ConflictError], unless it differs in boxes and marks
// alone: those follow from what was done, and the fleet knows of more. With a plan there that no run can
// work with, a [*PlanError], the one here stays as well. changed says that the plan here is another one now.
func (f *Fleet) PullPlan(ctx context.Context, store *lifecycle.Store, module string) (changed bool, err error) {
	there, err := f.Plan(ctx, module)
	if err != nil {
		return false, err
	}
	next, err := there.usable()
	if err != nil {
		return false, err
	}
	here, err := store.Plan(module)
	if errors.Is(err, fs.ErrNotExist) {
		if err := store.CreatePlan(module, there.Bytes); err != nil {
			return false, err
		}
		return true, f.setBase(store, &there)
	}
	if err != nil {
		return false, err
	}
	if string(here.Source()) == string(there.Bytes) {
		return false, f.setBase(store, &there)
	}
	base, err := f.base(store, module)
	if err != nil {
		return false, err
	}
	switch was := base.SHA256; {
	case was == folder.SHA256(there.Bytes): // what was changed here is newer
		return false, nil
	case was != folder.SHA256(here.Source()) && !sameButBoxes(here, next):
		return false, &ConflictError{there}
	}
	_, err = store.EditPlan(module, here, func(was, now *plan.Plan) (*plan.Plan, error) {
		if string(was.Source()) != string(now.Source()) {
			return nil, &ConflictError{there}
		}
		return next, nil
	})
	if err != nil {
		return false, err
	}
	return true, f.setBase(store, &there)
}

// sameButBoxes reports whether two plans differ in boxes and marks alone.
func sameButBoxes(a, b *plan.Plan) bool {
	return slices.Equal(bare(a), bare(b))
}

// bare is a plan without boxes and marks.
func bare(p *plan.Plan) []byte {
	boxes, marks := map[string]bool{}, map[string]plan.Mark{}
	for t := range p.All() {
		boxes[t.ID] = false
		if t.Mark != (plan.Mark{}) {
			marks[t.ID] = plan.Mark{}
		}
	}
	for _, change := range []plan.Change{plan.Boxes(boxes), plan.Marks(marks)} {
		now, err := change(p, p)
		if err != nil {
			return p.Source() // it counts as it is
		}
		p = now
	}
	return p.Source()
}

// shippedPlan is what the goroutine of a Session knows of the plan of its module.
type shippedPlan struct {
	last     *plan.Plan // that was looked at last
	conflict uint64     // the revision of the one there that is another one; said once
}

// ship makes the plan here the one of the fleet, if that has the one that this one was made of. A
// conflict is said and left to a person: it does not keep the session.
func (p *shippedPlan) ship(ctx context.Context, s *Session) error {
	module := s.ID().Module
	now, err := s.store.ReloadPlan(module, p.last)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		s.log.Debug().Err(err).Msg("the plan is not shipped")
		return nil
	}
	if now == p.last {
		return nil
	}
	_, err = s.fleet.PushPlan(ctx, s.store, module, false)
	var conflict *ConflictError
	switch {
	case errors.As(err, &conflict):
		if p.conflict != conflict.Revision {
			p.conflict = conflict.Revision
			s.log.Warn().Err(err).Msg("the plan is not shipped: lopen plan push says how they differ")
		}
	case errors.Is(err, errTooLarge):
		s.log.Warn().Err(err).Msg("the plan is not shipped")
	case err != nil:
		return err
	}
	p.last = now
	return nil
}
