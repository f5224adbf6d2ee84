package record

import (
	"fmt"
	"time"

	"github.com/lopen-dev/lopen/writer/strictjson"
)

// An Attempt is one start of the command with its outcome. It is only in the journal, in
// one record with the change that it caused, and a rewind does not change it. Its texts,
// including the command's arguments, are redacted, so that a resume takes the command from
// the settings and not from here.
type Attempt struct {
	Task      string       `json:"task"`
	Leaves    []string     `json:"leaves,omitempty"` // IDs of the tasks, if the unit has several
	Attempt   int          `json:"attempt"`          // from 1
	Iteration int          `json:"iteration"`        // of the session
	Command   []string     `json:"command"`
	Context   []ContextUse `json:"context,omitempty"` // of the specification
	StartedAt time.Time    `json:"startedAt"`
	EndedAt   time.Time    `json:"endedAt"`
	Exit      int          `json:"exit"` // -1 when a signal ended it
	Signal    string       `json:"signal,omitempty"`
	CPU       int64        `json:"cpuMs,omitempty"`  // user and system time, with children it waited for, in ms
	MaxRSS    int64        `json:"maxRSS,omitempty"` // in bytes; 0 if it is not known
	Input     int64        `json:"inputTokens,omitempty"`
	Output    int64        `json:"outputTokens,omitempty"`
	Cached    int64        `json:"cachedTokens,omitempty"`
	CostUSD   float64      `json:"costUSD,omitempty"`
	// NoCost says that the agent does not report its cost, so that CostUSD means nothing.
	NoCost       bool         `json:"noCost,omitempty"`
	Agent        string       `json:"agent,omitempty"`        // the profile's name: claude, codex, a recipe's, none
	AgentSession string       `json:"agentSession,omitempty"` // the agent's own ID of its session
	Model        string       `json:"model,omitempty"`
	Turns        int          `json:"turns,omitempty"`
	Before       string       `json:"gitBefore,omitempty"` // HEAD
	After        string       `json:"gitAfter,omitempty"`
	Files        []FileChange `json:"files,omitempty"`
	MoreFiles    int          `json:"moreFiles,omitempty"` // number of changed files beyond MaxFileChanges
	Check        *CheckRun    `json:"check,omitempty"`
	Failure      string       `json:"failure,omitempty"` // why the attempt counts as failed
	Then         string       `json:"then"`              // one of the constants below, such as Done
	// Problem is what prevented the work and is not the task's fault: limit, overload,
	// network, login, model, no-git or nested; "" if there was none.
	Problem    string     `json:"problem,omitempty"`
	AgentError string     `json:"said,omitempty"`    // the agent's own error message, at most 1 KiB
	RetryAt    *time.Time `json:"retryAt,omitempty"` // the end of the wait that follows; nil if none follows
	Denied     []string   `json:"denied,omitempty"`  // permissions that were refused, at most 20
	// Tail and CheckTail are the ends of the output of a failed attempt and of its check, at
	// most 16 KiB each.
	Tail      string `json:"tail,omitempty"`
	CheckTail string `json:"checkTail,omitempty"`
}

// What followed an attempt. Only Done and Failed count as attempts at the task.
const (
	Done        = "done"        // the task is complete
	Failed      = "failed"      // the task is tried again, or has failed
	Waits       = "waits"       // the run waits: a limit, an overload or the network
	Needed      = "needed"      // a person is needed: a login, a model, a repository
	Uncounted   = "uncounted"   // not counted: the circuit breaker, a used-up budget, or a session that the agent lost
	Interrupted = "interrupted" // a person interrupted the run
	Killed      = "killed"      // lopen itself was killed; only the changed files are known
)

// MaxFileChanges bounds the files that an Attempt names.
const MaxFileChanges = 1000

// MaxAttempt bounds an Attempt, in bytes of JSON, so that a record has room for it and for a
// change of the State.
const MaxAttempt = 1 << 20

// Size returns the encoded size of an Attempt in bytes. It returns an error if the Attempt
// has a cost or a time that JSON cannot express, or more than MaxAttempt bytes.
func (a *Attempt) Size() (int, error) {
	data, err := strictjson.Marshal(a)
	if err == nil && len(data) > MaxAttempt {
		err = fmt.Errorf("%d bytes, more than %d", len(data), MaxAttempt)
	}
	return len(data), err
}

// A ContextUse is a part of a file that was in a command's prompt.
type ContextUse struct {
	Path   string `json:"path"`
	Header string `json:"header,omitempty"`
	SHA256 string `json:"sha256"`
	Bytes  int    `json:"bytes"`
}

// A FileChange is a file that an attempt changed.
type FileChange struct {
	Path   string `json:"path"`
	Change string `json:"change"`           // created, modified, deleted, moved, mode
	From   string `json:"from,omitempty"`   // the path before a move
	Before string `json:"before,omitempty"` // SHA-256 of the old content
	After  string `json:"after,omitempty"`  // SHA-256 of the new content
	// Unstored has the numbers of files and bytes of what no checkpoint stores, because only rules
	// hide it that a task wrote. Path may be a folder, with all that is in it.
	Unstored string `json:"unstored,omitempty"`
}

// A CheckRun is a run of the check after a command.
type CheckRun struct {
	Command string `json:"command"`
	Exit    int    `json:"exit"`
	Ms      int64  `json:"ms"`
}
