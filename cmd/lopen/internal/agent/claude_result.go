package agent

import (
	"cmp"
	"strings"

	"github.com/lopen-dev/lopen/writer/strictjson"
)

func (c *claudeEvents) end(r *Reader) {
	e := c.result
	if e == nil {
		r.report.Problem = cmp.Or(r.report.Problem, c.rejected)
		return
	}
	r.report.Final = true
	r.report.Success = string(e.IsError) == "false" && !strings.HasPrefix(e.Subtype, "error")
	c.usage(r, e)
	for _, d := range e.Denials {
		denied := Denied{Tool: oneLine(d.Tool, 60), Detail: oneLine(detail(d.Input), maxDetail)}
		var command string
		_ = strictjson.UnmarshalForeign(d.Input["command"], &command)
		denied.Grant = claudeFlag(d.Tool, command)
		r.deny(denied)
	}
	if r.report.Success {
		return
	}
	text := e.words()
	r.report.Error = oneLine(text, maxText)
	r.report.Gone = gone().MatchString(text)
	switch e.Subtype {
	case "error_max_budget_usd", "error_max_turns": // bounds that a person has set
		r.report.Problem = nil
		return
	}
	r.report.Problem = cmp.Or(c.problem(r, int(count(e.APIStatus)), c.code, r.report.Error), r.report.Problem, c.rejected)
}

// usage takes the counts of the result. Those by model hold what subagents and calls that
// broke off have used, and are what the cost is made of; versions without them have the sum.
func (c *claudeEvents) usage(r *Reader, e *claudeEvent) {
	u := &r.report.Usage
	u.CostUSD, u.CostKnown = cost(e.Cost)
	u.Turns = int(count(e.NumTurns))
	var in, out, cached int64
	for _, m := range e.Models {
		in += count(m.Input) + count(m.Made)
		out += count(m.Output)
		cached += count(m.Cached)
	}
	u.Input, u.Output, u.Cached = count(e.Usage.Input)+count(e.Usage.Made), count(e.Usage.Output), count(e.Usage.Cached)
	if in+out+cached > 0 {
		run, before := *u, &r.before
		u.Input, u.Output, u.Cached = in, out, cached
		// Newer versions (2.1.332) count these and the cost from a session's beginning, and the sum for one process.
		if before.Input+before.Output+before.Cached > 0 &&
			in >= before.Input+run.Input && out >= before.Output+run.Output && cached >= before.Cached+run.Cached {
			u.Input, u.Output, u.Cached = in-before.Input, out-before.Output, cached-before.Cached
			u.CostUSD = max(u.CostUSD-before.CostUSD, 0)
		}
	}
	if m, ok := e.Models[u.Model]; ok {
		u.ContextWindow = count(m.Window)
	}
}

// claudeFlag is the flag that grants a tool, quoted for a shell; "" when none is known.
func claudeFlag(tool, command string) string {
	switch tool {
	case "Bash":
		if !simple(command) {
			return ""
		}
		return "--allowedTools " + quote(bashRule(command))
	case "Edit", "MultiEdit", "Write", "NotebookEdit":
		return "--permission-mode acceptEdits"
	case "AskUserQuestion", "ExitPlanMode":
		return "" // nobody is there to answer
	}
	if tool == "" || len(tool) > 100 || strings.ContainsFunc(tool, func(r rune) bool {
		return r != '_' && r != '-' && (!plainRune(r) || strings.ContainsRune("./=:@%+", r))
	}) {
		return ""
	}
	return "--allowedTools " + tool
}

// words are what a result that failed says: where its subtype is an error, its text is the
// model's last one.
func (e *claudeEvent) words() string {
	text := e.Result
	if strings.HasPrefix(e.Subtype, "error") {
		text = ""
	}
	return cmp.Or(text, strings.Join(e.Errors, "; "), e.Subtype)
}
