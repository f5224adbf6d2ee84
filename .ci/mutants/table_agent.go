package main

var ofAgent = []mutant{
	{
		"agent: is_error fails whatever the subtype says", "cmd/lopen/internal/agent/claude_result.go",
		`string(e.IsError) == "false" && !strings`,
		"!strings",
		"./cmd/lopen/internal/agent", "TestIsErrorFails",
	},
	{
		"agent: a result that says error fails", "cmd/lopen/internal/agent/claude_result.go",
		" && !strings.HasPrefix(e.Subtype, \"error\")\n",
		"\n",
		"./cmd/lopen/internal/agent", "TestIsErrorFails",
	},
	{
		"agent: a turn that failed is no success", "cmd/lopen/internal/agent/codex.go",
		"\t\tr.report.Success = false\n\t\tr.report.Error = oneLine(c.failed, maxText)\n",
		"\t\tr.report.Error = oneLine(c.failed, maxText)\n",
		"./cmd/lopen/internal/agent", "TestIsErrorFails",
	},
	{
		"agent: words of a notice are no error", "cmd/lopen/internal/agent/codex.go",
		`r.say("notice: " + oneLine(i.Message, maxText))`,
		"c.failed = i.Message",
		"./cmd/lopen/internal/agent", "TestWordsOfAModelAreNoProblem",
	},
	{
		"agent: the last text of a failed run is the model's", "cmd/lopen/internal/agent/claude_result.go",
		` || strings.HasPrefix(e.Subtype, "error") {`,
		" {",
		"./cmd/lopen/internal/agent", "TestWordsOfAModelAreNoProblem",
	},
	{
		"agent: stderr counts while nothing else was said", "cmd/lopen/internal/agent/reader.go",
		"!r.report.Final && !r.report.Spoke && r.report.Problem == nil",
		"r.report.Problem == nil",
		"./cmd/lopen/internal/agent", "TestWordsOfAModelAreNoProblem",
	},
	{
		"agent: a healthy notice is no limit", "cmd/lopen/internal/agent/claude_events.go",
		`e.Info.Status == "rejected" && `,
		"",
		"./cmd/lopen/internal/agent", "TestHealthyNoticesAreNoLimit",
	},
	{
		"agent: what was overcome is no problem", "cmd/lopen/internal/agent/reader.go",
		"\t\trep.Error, rep.Problem = \"\", nil",
		"\t\trep.Error = \"\"",
		"./cmd/lopen/internal/agent", "TestHopelessRetries",
	},
	{
		"agent: two retries are not hopeless", "cmd/lopen/internal/agent/claude_events.go",
		"if c.retries >= hopelessRetry {",
		"if c.retries > 0 {",
		"./cmd/lopen/internal/agent", "TestHopelessRetries",
	},
	{
		"agent: a message that claude made up is not the model's", "cmd/lopen/internal/agent/claude_events.go",
		"\t\t\tif code == \"\" && e.Message.Model != \"<synthetic>\" {\n",
		"\t\t\tif true {\n",
		"./cmd/lopen/internal/agent", "TestProblems",
	},
	{
		"agent: a resumed session's usage counts once", "cmd/lopen/internal/agent/reader.go",
		"rep.Input = max(rep.Input-r.before.Input, 0)",
		"rep.Input = max(rep.Input, 0)",
		"./cmd/lopen/internal/agent", "TestUsageOfAResumedSession",
	},
	{
		"agent: the total of a thread is not summed", "cmd/lopen/internal/agent/codex.go",
		"u.Input, u.Output = max(count(e.Usage.Input)-u.Cached, 0), count(e.Usage.Output)",
		"u.Input, u.Output = max(count(e.Usage.Input)-u.Cached, 0), u.Output+count(e.Usage.Output)",
		"./cmd/lopen/internal/agent", "TestUsageOfAResumedSession",
	},
	{
		"agent: a check that is granted is plain words", "cmd/lopen/internal/agent/claude.go",
		`return w == "" || strings.ContainsFunc(w, func(r rune) bool { return !plainRune(r) })`,
		`return w == ""`,
		"./cmd/lopen/internal/agent", "TestGrant",
	},
	{
		"agent: a rule of the person's own decides", "cmd/lopen/internal/agent/claude.go",
		` || covered(t.values("--disallowedTools"), check)`,
		"",
		"./cmd/lopen/internal/agent", "TestGrantIsNotTwice",
	},
	{
		"agent: a session's name is no flag", "cmd/lopen/internal/agent/render.go",
		`r.report.Session == "" && sessionID(id)`,
		`r.report.Session == ""`,
		"./cmd/lopen/internal/agent", "TestNonsense",
	},
	{
		"agent: a line of events is bounded", "cmd/lopen/internal/agent/reader.go",
		"case len(r.held)+len(piece) > maxLine:",
		"case len(piece) > 1<<30:",
		"./cmd/lopen/internal/agent", "TestLineWithoutEnd",
	},
	{
		"agent: a last line is the whole line", "cmd/lopen/internal/agent/classify.go",
		"`^(?:` + line + `)$`",
		"`(?:` + line + `)`",
		"./cmd/lopen/internal/agent", "TestClassify",
	},
	{
		"agent: a line that is no event is none", "cmd/lopen/internal/agent/reader.go",
		"	default:\n		r.say(string(line))",
		"	default:\n		r.tick()\n		r.say(string(line))",
		"./cmd/lopen/internal/agent", "TestOnlyEventsAreCounted",
	},
	{
		"run: an idle timeout that nobody named is not remembered as none", "cmd/lopen/run_before.go",
		"if old.IdleTimeout > 0 {",
		"if old.IdleTimeout >= 0 {",
		"./cmd/lopen", "TestScripts/attempts",
	},
	{
		"run: a failed task's neighbour is judged again by its own patch", "lifecycle/rewind/patch.go",
		"t.State != session.TaskComplete ||",
		"t.State == session.TaskComplete ||",
		"./cmd/lopen", "TestScripts/diff-file",
	},
}
