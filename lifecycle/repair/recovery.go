package repair

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/folder"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/plan"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/envelope"
)

// A Recovery is what can be recovered of a damaged session, and what cannot.
type Recovery struct {
	From     session.ID
	Where    string // the damaged session's folder, below .lopen
	Strategy string
	Base     string // what the records were applied to: a snapshot, state.json, or nothing
	Seq      uint64 // the last record of the recovered State
	ID       session.ID
	// Recovered, Lost, Leftovers, Advice and Others are texts. Leftovers are what a crash
	// left behind: unfinished writes, the lease of a dead process, commands that still run.
	// Others are the results of the other strategies.
	Recovered, Lost, Leftovers, Advice, Others []string
	Rules                                      []session.Finding // rules that the files or the recovered State break

	state        *session.State
	conversation session.Mark // up to where the new session has the conversation, and its checkpoint
}

// State returns the recovered State, with the damaged session's ID.
func (r *Recovery) State() *session.State { return r.state }

// A Note is the content of recovery.json, in the folder of a recovered session.
type Note struct {
	Session      string            `json:"session"`
	At           time.Time         `json:"at"`
	From         string            `json:"from"`
	Folder       string            `json:"folder"`
	Seq          uint64            `json:"seq"`
	Strategy     string            `json:"strategy"`
	Base         string            `json:"base"`
	Recovered    []string          `json:"recovered"`
	NotRecovered []string          `json:"notRecovered"`
	Leftovers    []string          `json:"leftovers"`
	Rules        []session.Finding `json:"rules"`
	Advice       []string          `json:"advice"`
}

// Recover recovers the State of a session from its damaged folder. It changes nothing. where
// is the folder below .lopen, report the result of Verify, and chain the project's
// checkpoints, or nil if there are none. The strategies:
//
//	latest-checkpoint  the newest intact State, in history/ or state.json, and the records after it
//	checkpoint=CP      the State of a snapshot's number, or of a checkpoint
//	journal            only the records, from the first on
//	partial            everything that can be read, although records in between may be missing
//
// "" chooses the strategy that saves most: the one that reaches the newest record, and of two
// that reach the same record, the first in this list. Lost has what is left out. The error
// wraps [envelope.ErrCorrupt] if the strategy recovers nothing; then the Recovery is returned
// as well.
func Recover(dir writer.FS, where, strategy string, report Report, chain *checkpoint.Store) (*Recovery, error) {
	if errors.Is(report.Err, envelope.ErrFutureVersion) {
		return nil, report.Err // no damage: a newer version can resume the session
	}
	r := &Recovery{From: report.ID, Where: where, Strategy: strategy}
	r.take(report)
	return r, rebuild(dir, r, chain)
}

// take adds the damage and the leftovers of a report.
func (r *Recovery) take(report Report) {
	if report.Err != nil {
		r.Leftovers = append(r.Leftovers, "damage: "+report.Err.Error())
	}
	for _, f := range report.Faults {
		r.Leftovers = append(r.Leftovers, f.String())
	}
	for _, f := range report.Rules {
		if f.Severity == session.SeverityCritical { // the recovered State is checked for the others
			r.Rules = append(r.Rules, f)
		}
	}
	r.Leftovers = append(r.Leftovers, report.Leftovers...)
	if report.Orphan != nil {
		r.Advice = append(r.Advice, "end what is left of the old command before the new session runs: it may still change files")
	}
}

// Conversation returns the Mark up to which the new session has the messages and events, with
// the checkpoint from which its line continues.
func (r *Recovery) Conversation() session.Mark { return r.conversation }

// Advise adds advice. After a partial recovery it also lists the tasks of the module's plan that
// are missing. p is the plan, or nil if there is none; path is its path.
func (r *Recovery) Advise(p *plan.Plan, path string) {
	if r.Strategy == Partial {
		r.Advice = append(r.Advice, "it is partial: what is named as not recovered is missing from it, and what came after it may rest on that")
		if p != nil {
			r.missing(p, path)
		}
	}
	r.Advice = append(r.Advice, "lopen session verify ID --accept, when you have looked at it: until then lopen run asks before it goes on")
}

// missing adds the tasks of the module's plan that the recovered State lacks. The next run takes
// them from the plan.
func (r *Recovery) missing(p *plan.Plan, path string) {
	var lost []string
	for _, t := range p.Tasks() {
		if _, ok := r.state.Task(t.ID); !ok {
			lost = append(lost, "task "+t.ID+", which is in the plan")
		}
	}
	r.Lost = append(r.Lost, folder.FirstOf(lost, "tasks of the plan")...)
	if len(lost) > 0 {
		r.Advice = append(r.Advice, "look at the boxes in "+path+": the next run takes the missing tasks from there, and a ticked one counts as done")
	}
}

// First returns the first State of the new session and sets r.ID. If the session was active, it
// becomes paused with the exit reason "crashed".
func (r *Recovery) First(id session.ID, now time.Time) (*session.State, error) {
	st, err := r.state.As(id)
	if err != nil {
		return nil, err
	}
	r.ID = id
	for i := range r.Advice {
		r.Advice[i] = strings.ReplaceAll(r.Advice[i], " ID ", " "+id.String()+" ")
	}
	e := st.Edit()
	h := e.Header()
	h.Lineage = &session.Lineage{Kind: session.LineageRecovered, From: r.From, Seq: r.Seq}
	h.RequiresValidation, h.TransactionID, h.Holder = true, "", nil
	h.UpdatedAt = now
	if h.Status == session.StatusActive {
		h.Status, h.ExitReason = session.StatusPaused, session.ExitCrashed
	}
	return e.State()
}

// Note returns the content of recovery.json.
func (r *Recovery) Note(now time.Time) Note {
	list := func(all []string) []string { return append([]string{}, all...) } // [] and not null
	return Note{r.ID.String(), now.UTC(), r.From.String(), r.Where, r.Seq, r.Strategy, r.Base,
		list(r.Recovered), list(r.Lost), list(r.Leftovers), append([]session.Finding{}, r.Rules...), list(r.Advice)}
}

// conversation returns the Mark of the messages and events that a session's logs have up to a
// Mark, whose counts they may exceed. It adds what they have and lack to a Recovery.
func conversation(dir writer.FS, to session.Mark, r *Recovery) (session.Mark, error) {
	has := to
	has.Seq, has.OpenCalls = 0, nil
	for _, events := range []bool{false, true} {
		n, what := 0, map[bool]string{false: "messages", true: "events of its transcript"}[events]
		for a, err := range folder.ReadAppended(dir, to, events) {
			switch {
			case errors.Is(err, folder.ErrDamaged):
				r.Lost = append(r.Lost, err.Error())
			case err != nil:
				return has, err
			default:
				n++
				has.Seq, has.Messages, has.Transcript = max(has.Seq, a.At.Seq), max(has.Messages, a.At.Messages), max(has.Transcript, a.At.Transcript)
				if !events {
					has.OpenCalls = session.Answered(has.OpenCalls, &a.Message)
				}
			}
		}
		if n > 0 {
			r.Recovered = append(r.Recovered, fmt.Sprintf("%d %s", n, what))
		}
	}
	return has, nil
}
