package agent

import (
	"strings"
	"time"

	"github.com/lopen-dev/lopen/writer/plain"
)

const (
	maxText   = 1 << 10 // bytes of an agent's words
	maxDetail = 200     // bytes of what a tool call is about
	maxName   = 200     // bytes of a model's name
	maxDenied = 20      // permissions that are named
	maxCount  = 1e12    // tokens, turns and USD: more is nonsense
)

// A Report is what the events of an attempt show. The zero value is that of an agent whose
// events are not known.
type Report struct {
	Usage
	Session string // the agent's own, "" when unknown
	Gone    bool   // the session that was to be resumed is not there: a start without it may work
	Spoke   bool   // the model printed something: text, or a tool call
	Final   bool   // the event that ends a run was seen
	Success bool   // it says that the agent ended well
	// Error is the agent's own words for what failed, at most 1 KiB; "" when nothing did.
	Error string
	// Problem is what keeps the agent from working and is not the task's fault; nil when
	// there is none. One that is hopeless ended the attempt: see Read.
	Problem *Problem
	Denied  []Denied // permissions that were refused, at most 20
}

// Usage is what an attempt cost, by the agent's final result where partial events are
// placeholders.
type Usage struct {
	Input, Output, Cached int64 // tokens; Input is without Cached
	CostUSD               float64
	CostKnown             bool // the agent says what it cost, be it nothing
	Model                 string
	Turns                 int
	ContextWindow         int64 // in tokens; 0 when unknown
	ContextUsed           int64 // of it, by the last answer that says so
}

// Denied is a permission that an agent wanted and did not get.
type Denied struct {
	Tool   string // Bash
	Detail string // go test ./..., at most 200 bytes
	Grant  string // the flag that grants it, quoted for a shell; "" when none is known
}

// A Problem is nobody's fault, or nothing that another attempt mends.
type Problem struct {
	Kind    Kind
	Text    string    // the agent's words, at most 1 KiB
	ResetAt time.Time // of a limit; zero when unknown
	Mend    string    // the command that mends it, "" when waiting does or none is known
}

// A Kind is what sort of problem it is.
type Kind string

// The kinds. A wait mends the first three; the others stop a run.
const (
	Limit    Kind = "limit"    // of usage: over at ResetAt
	Overload Kind = "overload" // of the provider
	Network  Kind = "network"
	Login    Kind = "login"  // or an account without credit
	Model    Kind = "model"  // there is no such one, or it may not be used
	NoGit    Kind = "no-git" // the agent wants a repository
	Nested   Kind = "nested" // the agent refuses to start inside another agent's session
)

// Waits says whether waiting mends a kind of problem.
func (k Kind) Waits() bool { return k == Limit || k == Overload || k == Network }

// count is a number of an event, 0 for nonsense.
func count(n float64) int64 {
	if n >= 0 && n <= maxCount { // false of NaN too
		return int64(n)
	}
	return 0
}

// cost is an amount of an event in USD; false for nonsense.
func cost(usd *float64) (float64, bool) {
	if usd == nil || !(*usd >= 0 && *usd <= maxCount) {
		return 0, false
	}
	return *usd, true
}

// clip cuts a text to n bytes, and not within a character.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return plain.Clip(s, n-len("...")) + "..."
}

// oneLine is a text of at most n bytes without line feeds and repeated spaces.
func oneLine(s string, n int) string {
	s = plain.Clip(s, 4*n) // megabytes of a file's content are not split into words
	return clip(strings.Join(strings.Fields(s), " "), n)
}
