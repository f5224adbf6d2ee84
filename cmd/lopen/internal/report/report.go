package report

import (
	"time"

	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
)

// A Report sums up the log of one session, as --json prints it. The names are stable.
// Times are in UTC, durations in seconds.
type Report struct {
	Session string    `json:"session"` // ID
	Module  string    `json:"module"`
	Status  string    `json:"status"` // active, interrupted (its run was killed), paused, complete
	Ended   string    `json:"ended"`  // the exit reason of the last run, crashed after a kill; "" while one works
	Why     string    `json:"why"`    // the same in a sentence
	From    time.Time `json:"from"`   // of the first record that is counted
	To      time.Time `json:"to"`     // the end of the last run, or of the last record
	Kills   int       `json:"kills"`  // how often a run ended without saying so
	Active  string    `json:"active"` // ID of the task at work, or that a kill cut off

	Progress  session.Progress `json:"progress"`
	Blocked   int              `json:"blocked"` // tasks that wait for others
	Failures  []Failure        `json:"failures"`
	Waits     []Wait           `json:"waits"`
	Waited    []Waited         `json:"waited"` // sums of Waits
	TakenBack []Attempt        `json:"takenBack"`
	Denied    []Denied         `json:"denied"`
	Limits    []Limit          `json:"rateLimits"`     // the newest, at most 100
	Windows   []Window         `json:"contextWindows"` // of the newest starts, at most 100
	Done      []Task           `json:"done"`
	Unchanged []string         `json:"unchanged"` // IDs of tasks that are done and changed no file
	Totals    Totals           `json:"totals"`
	Lost      int              `json:"lost"` // starts that the State counts and the log does not have: see [lifecycle.Session.Unpause]
	Next      []Step           `json:"next"`

	origin session.Origin
}

// Skipped says what a task that is skipped is in a session: a prompt was interrupted.
func Skipped(made session.Origin) string {
	if made == session.OriginHook {
		return "interrupted"
	}
	return "skipped"
}

// Usage is a sum over starts of the command: exactly that of their records.
type Usage struct {
	Starts  int     `json:"starts"`
	Seconds float64 `json:"seconds"` // of the command and the check
	Input   int64   `json:"inputTokens"`
	Output  int64   `json:"outputTokens"`
	Cached  int64   `json:"cachedTokens"`
	CostUSD float64 `json:"costUSD"`
	NoCost  int     `json:"noCost"` // starts of which nobody knows what they cost
}

func (u *Usage) add(a *record.Attempt) {
	u.Starts++
	u.Seconds += took(a).Seconds()
	u.Input += a.Input
	u.Output += a.Output
	u.Cached += a.Cached
	u.CostUSD += a.CostUSD
	if a.NoCost {
		u.NoCost++
	}
}

// took is how long the command and the check of an attempt worked.
func took(a *record.Attempt) time.Duration {
	d := a.EndedAt.Sub(a.StartedAt)
	if a.Check != nil {
		d += time.Duration(a.Check.Ms) * time.Millisecond
	}
	return max(d, 0)
}

// Totals are the sums over all starts of the command that are counted, and what followed.
type Totals struct {
	Usage
	Then map[string]int `json:"then"` // starts by what followed: done, failed, waits, ...
}

// A Task is what the command did on one task, or on a unit of several.
type Task struct {
	Usage
	Task     string    `json:"task"` // ID
	Name     string    `json:"name"`
	State    string    `json:"state"`    // as it is now
	Attempts int       `json:"attempts"` // that counted
	Files    int       `json:"files"`    // that it changed
	At       time.Time `json:"at"`       // the end of its last start
	// Unstored are the paths that it changed and that no checkpoint has, because a rule hides them
	// that a task wrote, each with its numbers of files and bytes.
	Unstored []string `json:"unstored,omitempty"`
}

// A Failure is a task whose last attempt failed and that was not done since.
type Failure struct {
	Task
	Message string   `json:"message"`
	Check   *Check   `json:"check,omitempty"` // of the last attempt
	Lines   []string `json:"lines"`           // the last useful ones of the check, or of the output without one
	Kept    string   `json:"kept"`            // the checkpoint of what it left, if its files were set back
	Stayed  []string `json:"stayed"`          // files that were not set back with the others, and why
	Left    string   `json:"left"`            // why they were not; "" where nobody tried
	// Commands show what it left, and bring it back, where it is kept.
	Commands []string `json:"commands"`
}

// A Check is a run of the check.
type Check struct {
	Exit    int     `json:"exit"`
	Seconds float64 `json:"seconds"`
}

// An Attempt is one start of the command.
type Attempt struct {
	Task    string    `json:"task"`
	At      time.Time `json:"at"` // its end
	Message string    `json:"message"`
}

// A Wait is the time after a start of the command that met something that is nobody's
// fault. It ends with the next start, or when the run ends.
type Wait struct {
	Problem string    `json:"problem"` // limit, overload, network, or circuit breaker
	Agent   string    `json:"agent"`
	Task    string    `json:"task"`
	Said    string    `json:"said"` // the agent's words
	From    time.Time `json:"from"`
	To      time.Time `json:"to"`
	Open    bool      `json:"open"` // it is not over; To is when it is to end, or now
	Seconds float64   `json:"seconds"`
}

// Waited is a sum of waits.
type Waited struct {
	Problem string  `json:"problem"`
	Waits   int     `json:"waits"`
	Seconds float64 `json:"seconds"`
}

// Denied is a permission that was refused, with the flag that grants it where one is known.
type Denied struct {
	Text  string   `json:"text"`
	Times int      `json:"times"`
	Tasks []string `json:"tasks"` // the first ones
}

// A Step is something to do next.
type Step struct {
	What     string   `json:"what"`
	Commands []string `json:"commands"` // for a shell
}
