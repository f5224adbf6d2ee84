package agent

import (
	"bytes"
	"strings"
	"time"

	"github.com/lopen-dev/lopen/writer/plain"
)

// lastLines are how the output of agents ends that cannot work: whole lines, as they were recorded, with what varies in
// them. They hold sentences of known agents only, each with what no other program prints: a
// plan that builds a rate limiter has "429, try again at" at the end of its tests.
var lastLines = []saying{
	// claude -p
	whole(Limit, `Claude AI usage limit reached\|\d{10}`),
	whole(Limit, `(You['’]ve hit your (\w+ ){0,2}limit|(5-hour|Session|Weekly|Opus weekly) limit reached|You['’]re out of extra usage) [·∙•] resets [A-Za-z0-9][A-Za-z0-9:, ]{0,30}( \([A-Za-z0-9_+/-]+\))?`),
	whole(Limit, `API Error: Request rejected \(429\) · .{1,500}`),
	whole(Overload, `API Error: (Repeated 529 Overloaded errors\.|(500|502|503|504|529) \{"type":"error",).{0,1000}`),
	whole(Network, `API Error: (Connection error\.|Unable to connect to API .{1,300}|Connection to the API was lost .{1,300}|Request timed out\.)`),
	whole(Login, `Not logged in · Please run /login|Invalid API key · (Please run /login|Fix external API key)|OAuth token revoked · Please run /login|Credit balance is too low`),
	whole(Login, `(Failed to authenticate\.|Please run /login ·) API Error: 401 .{0,500}`),
	whole(Model, `There's an issue with the selected model \(.{1,100}\)\. It may not exist or you may not have access to it\..{0,100}`),
	whole(Nested, `To bypass this check, unset the CLAUDECODE environment variable\.|(Error: )?Claude Code cannot be launched inside another Claude Code session\.`),
	// codex exec
	whole(Limit, `ERROR: You['’]ve hit your usage limit( for [\w.-]+)?\. .{0,250}[Tt]ry again (later|at [A-Z0-9][A-Za-z0-9:, ]{1,30}|in \d[a-z0-9 ]{1,60})\.`),
	whole(Limit, `ERROR: exceeded retry limit, last status: 429 Too Many Requests.{0,200}`),
	whole(Overload, `ERROR: (Selected model is at capacity\. Please try a different model\.|We['’]re currently experiencing high demand, which may cause temporary errors\.)`),
	whole(Overload, `ERROR: (unexpected status|exceeded retry limit, last status:) 5\d\d .{1,500}`),
	whole(Network, `ERROR: (stream disconnected before completion|Connection failed): .{1,500}`),
	whole(Login, `ERROR: (unexpected status 401 Unauthorized: .{0,500}|Quota exceeded\. Check your plan and billing details\.)`),
	whole(Model, "ERROR: The model `.{1,100}` does not exist or you do not have access to it\\."),
	whole(NoGit, `Not inside a trusted directory and --skip-git-repo-check was not specified\.`),
	// aider
	whole(Limit, `The API provider has rate limited you\. Try again later or check your quotas\.`),
	whole(Overload, `The API provider['’]s servers are down or overloaded\.`),
	whole(Login, `The API provider is not able to authenticate you\. Check your API key\.`),
	// gemini
	whole(Limit, `(✕ )?\[API Error: You have exhausted your (daily quota|capacity) on this model\.( Your quota will reset after [0-9dhms.]{1,20}\.)?\]`),
}

func whole(k Kind, line string) saying { return saying{k, plain.Pattern(`^(?:` + line + `)$`)} }

// maxLast bounds the line that Classify reads, in bytes.
const maxLast = 2 << 10

// Classify reads the last line that is not empty of what an agent printed whose events are
// not known and that failed: a problem where it is, as a whole, what a known agent prints
// that cannot work; nil otherwise. now is for times without a date. A person's own words,
// and a model's, are never enough: see the samples in testdata.
func Classify(tail []byte, now time.Time) *Problem {
	tail = bytes.TrimSpace(tail[max(0, len(tail)-2*maxLast):])
	line := string(tail[bytes.LastIndexByte(tail, '\n')+1:])
	line = strings.TrimSpace(plain.Uncolored(line))
	if len(line) > maxLast {
		return nil
	}
	return said(lastLines, line, now)
}
