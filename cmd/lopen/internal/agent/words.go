package agent

import (
	"regexp"
	"strings"
	"time"

	"github.com/lopen-dev/lopen/writer/plain"
)

// saying is what agents and their providers say about one kind of problem.
type saying struct {
	kind  Kind
	words func() *regexp.Regexp
}

// mends are the commands that mend a kind of problem, whichever agent has it.
var mends = map[Kind]string{Nested: "unset CLAUDECODE", NoGit: "git init # or add --skip-git-repo-check"}

// billing is an account that has no credit; gone is a session that is not there.
var (
	billing = plain.Pattern(`(?i)credit balance is too low|insufficient_quota|exceeded your current quota|quota exceeded\. check your plan|` +
		`to use codex with your chatgpt plan, upgrade|workspace is out of credits`)
	gone = plain.Pattern(`No conversation found with session ID|no rollout found for thread id|Session not found$`)
)

// status is what stands before a status of HTTP.
const status = `\b(?:status|error|code|http)[ :=/]{1,3}(?:code:? )?`

// sayings are looked for, in this order, in the words of error events only.
var sayings = []saying{
	{Nested, plain.Pattern(`cannot be launched inside another Claude Code session`)},
	{NoGit, plain.Pattern(`Not inside a trusted directory and --skip-git-repo-check was not specified`)},
	{Login, billing},
	{Limit, plain.Pattern(`(?i)usage limit reached|you.{1,3}ve (hit|reached) your .{0,40}limit|out of extra usage|limit reached [·∙•]|` +
		`usage limit has been reached|usage_limit_reached|` + status + `429\b|request rejected \(429\)|rate.?limit(ed| reached| exceeded|_error)|too many requests|rate_limit_exceeded|resource_?exhausted`)},
	{Model, plain.Pattern(`(?i)issue with the selected model|model_not_found|model not found|the model .{1,100} does not exist|` +
		`model is not supported when using codex|"message":"model: |ProviderModelNotFoundError|no such model`)},
	{Overload, plain.Pattern(`(?i)overloaded|at capacity|high demand|` + status + `(500|502|503|504|529)\b|internal server error|bad gateway|service unavailable|gateway timeout`)},
	{Login, plain.Pattern(`(?i)not logged in|please run /login|invalid (x-)?api.key|incorrect api key|oauth token (has expired|revoked)|failed to authenticate|` +
		status + `401\b|unauthorized|authentication_error|please log out and sign in again|refresh token|ProviderAuthError|missing bearer|api key is missing|missing environment variable: .\w+_KEY`)},
	{Network, plain.Pattern(`(?i)ECONN(REFUSED|RESET|ABORTED)|ENOTFOUND|EAI_AGAIN|ETIMEDOUT|ENETUNREACH|EHOSTUNREACH|getaddrinfo|fetch failed|` +
		`connection (error|refused|reset|failed|timed out|closed)|unable to connect|cannot connect to api|could not resolve|error sending request|socket hang up|` +
		`socket connection was closed|request timed out|stream disconnected|dns error|network is unreachable|no route to host`)},
}

// problemOf reads the words of an error: nil when they are about the task.
func problemOf(text string, now time.Time) *Problem { return said(sayings, text, now) }

// said is the problem that the first saying in a text is about, or nil.
func said(all []saying, text string, now time.Time) *Problem {
	for _, s := range all {
		if s.words().MatchString(text) {
			p := &Problem{Kind: s.kind, Text: clip(strings.TrimSpace(text), maxText), Mend: mends[s.kind]}
			if s.kind == Limit {
				p.ResetAt = resetAt(text, now)
			}
			return p
		}
	}
	return nil
}
