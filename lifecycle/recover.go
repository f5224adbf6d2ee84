package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer"
)

// recoveryFile stands in the folder of a session that was recovered.
const recoveryFile = "recovery.json"

// A Recovery says what a damaged session comes to, and what it does not.
type Recovery struct {
	From     session.ID
	Where    string // the damaged session's folder, below .lopen
	Strategy string
	Base     string // what the records were applied to: a snapshot, state.json, or nothing
	Seq      uint64 // the record that was reached
	ID       session.ID
	// Recovered, Lost, Leftovers, Advice and Others are in words. Leftovers are what a
	// crash left behind: unfinished writes, the lock of a process that is gone, commands
	// that still live. Others are what the other strategies come to.
	Recovered, Lost, Leftovers, Advice, Others []string
	Rules                                      []session.Finding // that the files or the recovered State break

	state *session.State
	meta  Meta         // of the damaged session: the new one goes by the same name
	said  session.Mark // what the new session has of the conversation, and its checkpoint
}

// State is what was recovered, under the damaged session's ID.
func (r *Recovery) State() *session.State { return r.state }

// recoveryJSON is the content of recovery.json.
type recoveryJSON struct {
	SchemaVersion int           `json:"schemaVersion"`
	Session       string        `json:"session"`
	At            time.Time     `json:"at"`
	From          string        `json:"from"`
	Folder        string        `json:"folder"`
	Seq           uint64        `json:"seq"`
	Strategy      string        `json:"strategy"`
	Base          string        `json:"base"`
	Recovered     []string      `json:"recovered"`
	NotRecovered  []string      `json:"notRecovered"`
	Leftovers     []string      `json:"leftovers"`
	Rules         []FindingJSON `json:"rules"`
	Advice        []string      `json:"advice"`
}

// FindingJSON is a [session.Finding] as recovery.json and the commands have it.
type FindingJSON struct {
	Rule      string           `json:"rule"`
	Component string           `json:"component"`
	Kind      session.RuleKind `json:"kind"`
	Severity  session.Severity `json:"severity"`
	Count     int              `json:"count"`
	Where     []string         `json:"where"`
	Repair    string           `json:"repair"`
}

// FindingsJSON turns findings into what is printed of them; never nil.
func FindingsJSON(all []session.Finding) []FindingJSON {
	rows := make([]FindingJSON, len(all))
	for i, f := range all {
		rows[i] = FindingJSON{f.Rule.Name, f.Rule.Component, f.Rule.Kind, f.Rule.Severity, f.Count, f.Where, f.Rule.Repair}
	}
	return rows
}

// Recover makes a new session out of a damaged one, which stays exactly as it is:
// name is that of a session, or of a folder in corrupted/. The strategies:
//
//	latest-checkpoint  the newest State that is whole, in history/ or state.json, and the records after it
//	checkpoint=CP      the State of a snapshot's number, or of a checkpoint
//	journal            the records alone, from the first on
//	partial            what can be read, whatever is missing between; of a state.json that is cut off the tasks that are whole
//
// "" takes the one that saves most: the newest record; of two that reach the same one,
// the first in this list. What is left out is in Lost. With dryRun it only
// says what would come of it. The new session has the name and the pin of the damaged
// one and what its log still has of the conversation, and requires validation until [Store.Accept].
// A crash leaves no new session or the whole one.
//
// The error is a [*BusyError] where somebody holds the session, ErrNotFound where
// there is none of that name, and wraps ErrCorrupt where the strategy comes to
// nothing; what was found is returned then, too.
func (s *Store) Recover(ctx context.Context, name, strategy string, dryRun bool) (*Recovery, error) {
	id, where, err := s.findDamaged(name)
	if err != nil {
		return nil, err
	}
	dir, err := openDir(s.root(), where)
	if err != nil {
		return nil, fmt.Errorf("recover session %s: %w", id, err)
	}
	defer dir.Close()
	r := &Recovery{From: id, Where: where, Strategy: strategy}
	if err := inspect(dir, r); err != nil {
		return nil, fmt.Errorf("recover session %s: %w", id, err)
	}
	cps, err := s.Checkpoints()
	if err == nil {
		defer cps.Close()
	} else if !errors.Is(err, ErrNotFound) {
		return nil, fmt.Errorf("recover session %s: %w", id, err)
	}
	if err := rebuild(dir, r, cps); err != nil {
		return r, fmt.Errorf("recover session %s: %w", id, err)
	}
	r.named(dir)
	if r.Strategy == Partial {
		r.Advice = append(r.Advice, "it is partial: what is named as not recovered is missing from it, and what came after it may rest on that")
		s.missing(r)
	}
	r.Advice = append(r.Advice, "lopen session verify ID --accept, when you have looked at it: until then lopen run asks before it goes on")
	if dryRun {
		return r, nil
	}
	return r, s.makeRecovered(ctx, dir, r)
}

// makeRecovered makes the new session. It is not held afterwards.
func (s *Store) makeRecovered(ctx context.Context, from writer.FS, r *Recovery) error {
	c := &committer{event: session.EventRecovered}
	c.beside = func(dir writer.FS) error {
		if r.meta != (Meta{}) {
			if err := writeMeta(dir, r.meta); err != nil {
				return err
			}
		}
		return writeSealed(dir, recoveryFile, s.recoveryJSON(r))
	}
	c.share = func(to string) (session.Mark, error) { return s.share(from, r.Where, to, r.said) }
	err := s.make(ctx, r.From.Module, c, func(id session.ID, now time.Time) (*session.State, error) {
		r.ID = id
		for i := range r.Advice {
			r.Advice[i] = strings.ReplaceAll(r.Advice[i], " ID ", " "+id.String()+" ")
		}
		return recovered(r, now)
	})
	if err != nil {
		r.ID = session.ID{}
		return fmt.Errorf("recover session %s: %w", r.From, err)
	}
	s.noteRecovered(r.Where, r.ID)
	s.Logger(r.ID).Info().Stringer("from", r.From).Str("strategy", r.Strategy).Uint64("seq", r.Seq).Msg("session recovered")
	return c.Close()
}

// named takes over what a person said of the damaged session: who looks for the work
// under its name finds the session that goes on with it. The damaged one keeps both.
func (r *Recovery) named(dir writer.FS) {
	var err error
	if r.meta, err = readMeta(dir, metaFile); err != nil {
		r.Lost = append(r.Lost, "its name and whether it is pinned: "+err.Error())
		return
	}
	if r.meta.Name != "" {
		r.Recovered = append(r.Recovered, fmt.Sprintf("its name: %s", r.meta.Name))
	}
	if r.meta.Pinned {
		r.Recovered = append(r.Recovered, "it is pinned")
	}
}

// missing names the tasks of the module's plan that are not among what could be
// read. The next run takes them from the plan.
func (s *Store) missing(r *Recovery) {
	p, err := s.Plan(r.From.Module)
	if err != nil {
		return // nothing tells of them
	}
	var lost []string
	for _, t := range p.Tasks() {
		if _, ok := r.state.Task(t.ID); !ok {
			lost = append(lost, "task "+t.ID+", which is in the plan")
		}
	}
	r.Lost = append(r.Lost, firstOf(lost, "tasks of the plan")...)
	if len(lost) > 0 {
		r.Advice = append(r.Advice, "look at the boxes in "+PlanPath(r.From.Module)+": the next run takes the missing tasks from there, and a ticked one counts as done")
	}
}

// recovered is the first State of the new session. What was worked on is at rest.
func recovered(r *Recovery, now time.Time) (*session.State, error) {
	st, err := r.state.As(r.ID)
	if err != nil {
		return nil, err
	}
	e := st.Edit()
	h := e.Header()
	h.Lineage = &session.Lineage{Kind: session.LineageRecovered, From: r.From, Seq: r.Seq}
	h.RequiresValidation, h.TransactionID = true, ""
	h.UpdatedAt = now
	if h.Status == session.StatusActive {
		h.Status, h.ExitReason = session.StatusPaused, session.ExitCrashed
	}
	return e.State()
}

func (s *Store) recoveryJSON(r *Recovery) recoveryJSON {
	list := func(all []string) []string { return append([]string{}, all...) } // [] and not null
	return recoveryJSON{1, r.ID.String(), s.opts.Now().UTC(), r.From.String(), r.Where, r.Seq, r.Strategy, r.Base,
		list(r.Recovered), list(r.Lost), list(r.Leftovers), FindingsJSON(r.Rules), list(r.Advice)}
}

// findDamaged finds what is meant by a name: a session in its place, or what was
// moved aside, the newest where there are several.
func (s *Store) findDamaged(name string) (session.ID, string, error) {
	id, err := s.Resolve(name)
	var bad *DamagedError
	if errors.As(err, &bad) {
		return bad.ID, bad.Where, nil
	}
	return id, sessionsDir + "/" + id.String(), err
}

// Accept says that a person has looked at a session that was recovered. Of one that
// does not require it nothing is changed.
func (s *Store) Accept(ctx context.Context, id session.ID) error {
	sess, err := s.Open(id)
	if err != nil {
		return err
	}
	if sess.State().Header().RequiresValidation {
		err = sess.Change(session.TriggerStepCompleted, func(e *session.Edit) error {
			e.Header().RequiresValidation = false
			return nil
		})
	}
	err = errors.Join(err, sess.Close(ctx))
	if err == nil {
		sess.log.Info().Msg("session accepted")
	}
	return err
}
