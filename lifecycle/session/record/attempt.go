package record

import (
	"fmt"
	"time"

	"github.com/lopen-dev/lopen/writer/strictjson"
)

// An Attempt is one start of the command with all that came of it. It is in the
// journal, with the change that it caused, and nowhere else: a rewind does not touch it.
// Its texts are redacted, the command's arguments among them, so that a resume takes the
// command from the settings and not from here.
type Attempt struct {
	Task      string       `json:"task"`
	Leaves    []string     `json:"leaves,omitempty"` // the tasks of a unit that has several
	Attempt   int          `json:"attempt"`          // from 1
	Iteration int          `json:"iteration"`        // of the session
	Command   []string     `json:"command"`
	Context   []ContextUse `json:"context,omitempty"` // of the specification
	StartedAt time.Time    `json:"startedAt"`
	EndedAt   time.Time    `json:"endedAt"`
	Exit      int          `json:"exit"` // -1 when a signal ended it
	Signal    string       `json:"signal,omitempty"`
	CPU       int64        `json:"cpuMs,omitempty"`  // user and system time of the command and what it waited for
	MaxRSS    int64        `json:"maxRSS,omitempty"` // bytes; 0 where it is not known
	Input     int64        `json:"inputTokens,omitempty"`
	Output    int64        `json:"outputTokens,omitempty"`
	Cached    int64        `json:"cachedTokens,omitempty"`
	CostUSD   float64      `json:"costUSD,omitempty"`
	// NoCost says that the agent does not report what it costs, so that CostUSD is no sum.
	NoCost       bool         `json:"noCost,omitempty"`
	Agent        string       `json:"agent,omitempty"`        // the profile's name: claude, codex, a recipe's, none
	AgentSession string       `json:"agentSession,omitempty"` // the agent's own name for its session
	Model        string       `json:"model,omitempty"`
	Turns        int          `json:"turns,omitempty"`
	Before       string       `json:"gitBefore,omitempty"` // HEAD
	After        string       `json:"gitAfter,omitempty"`
	Files        []FileChange `json:"files,omitempty"`
	MoreFiles    int          `json:"moreFiles,omitempty"` // beyond MaxFileChanges
	Check        *CheckRun    `json:"check,omitempty"`
	Failure      string       `json:"failure,omitempty"` // why it counts as failed
	Then         string       `json:"then"`              // what followed: Done, Failed, Waits, Needed, Uncounted, Interrupted or Killed
	// Problem is what hindered the agent and was not the task's fault: limit,
	// overload, network, login, model, no-git or nested; "" when there was none.
	Problem    string     `json:"problem,omitempty"`
	AgentError string     `json:"said,omitempty"`    // the agent's own words about what went wrong, at most 1 KiB
	RetryAt    *time.Time `json:"retryAt,omitempty"` // until when the run waits then; nil when it does not
	Denied     []string   `json:"denied,omitempty"`  // permissions that were refused, at most 20
	// Of a failed attempt, the end of what was printed, at most 16 KiB each,
	// redacted.
	Tail      string `json:"tail,omitempty"`
	CheckTail string `json:"checkTail,omitempty"`
}

// What followed an attempt. Done and Failed alone count as one of the task's attempts.
const (
	Done        = "done"        // the task is complete
	Failed      = "failed"      // it is tried again, or has failed
	Waits       = "waits"       // a limit, an overload or a network: nobody's fault
	Needed      = "needed"      // a person is: a login, a model, a repository
	Uncounted   = "uncounted"   // the circuit breaker, a used up budget or a session that the agent lost took it back
	Interrupted = "interrupted" // by a person
	Killed      = "killed"      // lopen itself was: of how the command ended only the files are known
)

// MaxFileChanges is how many files an Attempt names.
const MaxFileChanges = 1000

// MaxAttempt bounds an Attempt, in bytes of JSON: a record of the journal has
// room for it and for a change of the State.
const MaxAttempt = 1 << 20

// Size is what an Attempt takes in the journal, in bytes. The error says why it
// cannot be written: a cost or a time that JSON has no word for, or more than MaxAttempt.
func (a *Attempt) Size() (int, error) {
	data, err := strictjson.Marshal(a)
	if err == nil && len(data) > MaxAttempt {
		err = fmt.Errorf("%d bytes, more than %d", len(data), MaxAttempt)
	}
	return len(data), err
}

// A ContextUse is a piece of a file that a command was given.
type ContextUse struct {
	Path   string `json:"path"`
	Header string `json:"header,omitempty"`
	SHA256 string `json:"sha256"`
	Bytes  int    `json:"bytes"`
}

// A FileChange is a file that differs after a start of the command.
type FileChange struct {
	Path   string `json:"path"`
	Change string `json:"change"`           // created, modified, deleted, moved, mode
	From   string `json:"from,omitempty"`   // the path before a move
	Before string `json:"before,omitempty"` // SHA-256 of the content
	After  string `json:"after,omitempty"`
}

// A CheckRun is how the check after a command ended.
type CheckRun struct {
	Command string `json:"command"`
	Exit    int    `json:"exit"`
	Ms      int64  `json:"ms"`
}
