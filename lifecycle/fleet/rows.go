package fleet

import (
	"context"
	"iter"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/commit"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

// durable is what a session has on the local disk.
type durable = commit.Durable

// A summary is what a listing shows of a session; the names are those of state.json.
type summary struct {
	Seq           uint64             `json:"seq"`
	Name          string             `json:"name,omitempty"`
	Pinned        bool               `json:"pinned,omitempty"`
	Status        session.Status     `json:"status,omitempty"`
	Phase         session.Phase      `json:"phase,omitempty"`
	Step          session.Step       `json:"step,omitempty"`
	ExitReason    session.ExitReason `json:"exitReason,omitempty"`
	Component     string             `json:"component,omitempty"`
	ActiveTask    string             `json:"activeTask,omitempty"`
	CreatedAt     time.Time          `json:"createdAt"`
	UpdatedAt     time.Time          `json:"updatedAt"`
	CompletedAt   *time.Time         `json:"completedAt,omitempty"`
	Progress      progress           `json:"progress"`
	Iterations    int                `json:"iterations"`
	InputTokens   int64              `json:"inputTokens"`
	OutputTokens  int64              `json:"outputTokens"`
	CachedTokens  int64              `json:"cachedTokens"`
	TotalCostUSD  float64            `json:"totalCostUSD"`
	Messages      uint64             `json:"messages"`
	Origin        session.Origin     `json:"origin,omitempty"`
	TransactionID string             `json:"transactionId,omitempty"`
	Checkpoint    string             `json:"checkpoint,omitempty"` // the newest one
	Head          string             `json:"gitHead,omitempty"`
}

type progress struct {
	Done    int `json:"done"`
	Total   int `json:"total"`
	Failed  int `json:"failed"`
	Skipped int `json:"skipped"`
}

// summarize returns the summary of a State.
func summarize(here *durable, meta lifecycle.Meta) summary {
	st := here.State
	h, p, t := st.Header(), st.Progress(), st.Totals()
	s := summary{Seq: here.Seq, Name: clean(meta.Name), Pinned: meta.Pinned, Status: st.Status(), Phase: st.Phase(), Step: h.Step,
		ExitReason: h.ExitReason, Component: clean(h.Component), ActiveTask: clean(st.ActiveTask()), CreatedAt: h.CreatedAt, UpdatedAt: h.UpdatedAt,
		Progress: progress{p.Done, p.Total, p.Failed, p.Skipped}, Iterations: st.NumIterations(),
		InputTokens: t.InputTokens, OutputTokens: t.OutputTokens, CachedTokens: t.CachedTokens, TotalCostUSD: h.TotalCostUSD,
		Messages: here.Messages, Origin: h.Origin, TransactionID: h.TransactionID, Checkpoint: here.Checkpoint, Head: clean(h.Git.Head)}
	if !h.CompletedAt.IsZero() {
		s.CompletedAt = &h.CompletedAt
	}
	return s
}

// meta returns the session's name and pin; without them if they cannot be read.
func (s *Session) meta() lifecycle.Meta {
	m, err := s.store.Meta(s.ID())
	if err != nil {
		s.log.Debug().Err(err).Msg("the session's name cannot be read")
	}
	return m
}

// show makes the readable columns and rows those of a State, in the transaction that makes its
// record the last one.
func (s *shipping) show(ctx context.Context, tx pgx.Tx, here *durable, meta lifecycle.Meta) error {
	data, err := strictjson.Marshal(summarize(here, meta))
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `SELECT lopen_data.show_session($1::bigint, $2::bigint, $3::text, $4::jsonb, $5::text)`,
		s.row.key, s.row.term, s.session.fleet.secret, string(data), string(here.State.Status())); err != nil {
		return err
	}
	if err := showTasks(ctx, tx, s.row.key, s.shown, here.State); err != nil {
		return err
	}
	return showIterations(ctx, tx, s.row.key, s.shown, here.State)
}

// A taskRow is a row of the tasks.
type taskRow struct {
	Task      string     `json:"task"`
	Place     int        `json:"place"`
	Parent    string     `json:"parent"`
	Kind      string     `json:"kind"`
	Name      string     `json:"name"`
	State     string     `json:"state"`
	Attempts  int        `json:"attempts"`
	LastError string     `json:"last_error"`
	Started   *time.Time `json:"started_at"`
	Completed *time.Time `json:"completed_at"`
}

// changedTasks returns the rows of the tasks that changed or moved between two States, and the IDs of
// those that are gone.
func changedTasks(was, now *session.State) (changed []taskRow, gone []string) {
	places := map[string]int{}
	if was != nil {
		for t := range was.All() {
			places[t.ID] = len(places)
		}
	}
	place := 0
	for t := range now.All() {
		before, known := places[t.ID]
		delete(places, t.ID)
		if !known || before != place || was.Lookup(t.ID) != now.Lookup(t.ID) {
			changed = append(changed, taskRow{clean(t.ID), place, clean(t.Parent), string(t.Kind), clean(t.Name), string(t.State), t.Attempts, clip(t.LastError), moment(t.StartedAt), moment(t.CompletedAt)})
		}
		place++
	}
	for id := range places {
		gone = append(gone, clean(id))
	}
	return changed, gone
}

// showTasks writes the rows of the tasks that changed, or moved.
func showTasks(ctx context.Context, tx pgx.Tx, key int64, was, now *session.State) error {
	changed, gone := changedTasks(was, now)
	if was == nil {
		if _, err := tx.Exec(ctx, `DELETE FROM lopen_data.tasks WHERE session = $1`, key); err != nil {
			return err
		}
	}
	if len(gone) > 0 {
		if _, err := tx.Exec(ctx, `DELETE FROM lopen_data.tasks WHERE session = $1 AND task = ANY($2::text[])`, key, gone); err != nil {
			return err
		}
	}
	if len(changed) == 0 {
		return nil
	}
	data, err := strictjson.Marshal(changed)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `INSERT INTO lopen_data.tasks (session, task, place, parent, kind, name, state, attempts, last_error, started_at, completed_at)
		SELECT $1, t.* FROM jsonb_to_recordset($2::jsonb) AS t(task text, place integer, parent text, kind text, name text, state text,
			attempts integer, last_error text, started_at timestamptz, completed_at timestamptz)
		ON CONFLICT (session, task) DO UPDATE SET place = excluded.place, parent = excluded.parent, kind = excluded.kind, name = excluded.name,
			state = excluded.state, attempts = excluded.attempts, last_error = excluded.last_error,
			started_at = excluded.started_at, completed_at = excluded.completed_at`, key, string(data))
	return err
}

// showIterations writes the rows of the iterations that were added, or all anew where the State
// went back.
func showIterations(ctx context.Context, tx pgx.Tx, key int64, was, now *session.State) error {
	type fields struct {
		Number   int        `json:"number"`
		Task     string     `json:"task"`
		Attempt  int        `json:"attempt"`
		Model    string     `json:"model"`
		Started  *time.Time `json:"started_at"`
		Duration int64      `json:"duration_ms"`
		Input    int64      `json:"input_tokens"`
		Output   int64      `json:"output_tokens"`
		Cached   int64      `json:"cached_tokens"`
		Cost     float64    `json:"cost_usd"`
	}
	before := kept(was, now)
	if was == nil || was.NumIterations() > before {
		if _, err := tx.Exec(ctx, `DELETE FROM lopen_data.iterations WHERE session = $1 AND number > $2`, key, before); err != nil {
			return err
		}
	}
	if before == now.NumIterations() {
		return nil
	}
	var added []fields
	n := 0
	for it := range now.Iterations() {
		if n++; n > before {
			added = append(added, fields{it.Number, clean(it.Task), it.Attempt, clean(it.Model), moment(it.StartedAt), it.Duration.Milliseconds(), it.InputTokens, it.OutputTokens, it.CachedTokens, it.CostUSD})
		}
	}
	data, err := strictjson.Marshal(added)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `INSERT INTO lopen_data.iterations (session, number, task, attempt, model, started_at, duration_ms, input_tokens, output_tokens, cached_tokens, cost_usd)
		SELECT $1, t.* FROM jsonb_to_recordset($2::jsonb) AS t(number integer, task text, attempt integer, model text, started_at timestamptz,
			duration_ms bigint, input_tokens bigint, output_tokens bigint, cached_tokens bigint, cost_usd double precision)
		ON CONFLICT (session, number) DO UPDATE SET task = excluded.task, attempt = excluded.attempt, model = excluded.model,
			started_at = excluded.started_at, duration_ms = excluded.duration_ms, input_tokens = excluded.input_tokens,
			output_tokens = excluded.output_tokens, cached_tokens = excluded.cached_tokens, cost_usd = excluded.cost_usd`, key, string(data))
	return err
}

// kept returns how many iterations of a State are the first ones of another, too.
func kept(was, now *session.State) (n int) {
	if was == nil {
		return 0
	}
	next, stop := iter.Pull(was.Iterations())
	defer stop()
	for it := range now.Iterations() {
		if old, ok := next(); !ok || old != it {
			break
		}
		n++
	}
	return n
}

// moment returns a time as the database has it: null for none.
func moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
