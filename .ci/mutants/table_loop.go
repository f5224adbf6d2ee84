package main

var ofLoop = []mutant{
	{
		"verdict: an error counts whatever the exit code is", "cmd/lopen/internal/loop/verdict.go",
		"(!s.knows || s.report.Final && s.report.Success)",
		"true",
		"./cmd/lopen/internal/loop", "TestVerdict",
	},
	{
		"verdict: a guess needs unchanged files", "cmd/lopen/internal/loop/verdict.go",
		"ended && !s.changed && s.guessed",
		"ended && s.guessed",
		"./cmd/lopen/internal/loop", "TestVerdict",
	},
	{
		"verdict: guesses in a row are bounded", "cmd/lopen/internal/loop/verdict.go",
		" && s.guessed < maxGuesses",
		"",
		"./cmd/lopen/internal/loop", "TestVerdict",
	},
	{
		"wait: the wall clock counts", "cmd/lopen/internal/loop/wait.go",
		"for until.After(now()) {",
		"for end := time.Now().Add(until.Sub(now())); time.Now().Before(end); {",
		"./cmd/lopen/internal/loop", "TestAWaitFollowsTheWallClock",
	},
	{
		"wait: a reset that did not help is not waited for again", "cmd/lopen/internal/loop/wait.go",
		"max(left, 0) >= b.next {",
		"true {",
		"./cmd/lopen/internal/loop", "TestAWaitUntilTheTimeThatTheAgentNames",
	},
	{
		"breaker: one task alone is a task that fails", "cmd/lopen/internal/loop/breaker.go",
		" && len(b.units) > 1",
		"",
		"./cmd/lopen/internal/loop", "TestBreakerOpens",
	},
	{
		"breaker: what it took back is no attempt", "cmd/lopen/internal/loop/breaker.go",
		"t.Attempts = max(t.Attempts-u.counts, 0)",
		"t.Attempts = max(t.Attempts, 0)",
		"./cmd/lopen", "TestScripts/breaker",
	},
	{
		"continue: not after somebody else changed a file", "cmd/lopen/internal/loop/checkpoint.go",
		"others = others || len(r.since) > 0",
		"others = others || false",
		"./cmd/lopen", "TestScripts/continue",
	},
	{
		"continue: a session's name is no flag", "cmd/lopen/internal/loop/continue.go",
		" || !plausibleID().MatchString(t.session)",
		" || t.session == \"\"",
		"./cmd/lopen/internal/loop", "TestWhatIsContinued",
	},
	{
		"continue: what was left in the middle comes first", "cmd/lopen/internal/loop/agenda.go",
		"within(st, t.ID, early)",
		"false",
		"./cmd/lopen", "TestScripts/halfway",
	},
	{
		"budget: what is left is handed on", "cmd/lopen/internal/loop/attempt.go",
		"Budget: r.left}",
		"Budget: 0}",
		"./cmd/lopen", "TestScripts/budget",
	},
	{
		"shared: a limit is that of all runs with the agent", "cmd/lopen/internal/loop/shared.go",
		"\t\ts.limits[w.key()] = l\n",
		"",
		"./cmd/lopen/internal/loop", "TestALimitIsThatOfAllRunsWithTheAgent",
	},
	{
		"shared: no attempt begins while another run knows of a limit", "cmd/lopen/internal/loop/shared.go",
		"\treturn true, r.waitForAgent(ctx, w, p, l.until)\n",
		"\t_, _ = p, ctx\n\treturn false, nil\n",
		"./cmd/lopen", "TestScripts/work-shared",
	},
	{
		"shared: what attempts in progress may cost is not given twice", "cmd/lopen/internal/loop/shared.go",
		"\t\t\tleft -= given\n",
		"\t\t\t_ = given\n",
		"./cmd/lopen/internal/loop", "TestTheAttemptsInProgressStayWithinTheBudget",
	},
	{
		"shared: a budget is for all runs together", "cmd/lopen/internal/loop/shared.go",
		"range s.spent {",
		"range (map[*runner]spent)(nil) {",
		"./cmd/lopen/internal/loop", "TestTheAttemptsInProgressStayWithinTheBudget",
	},
	{
		"work: a panic of one run does not stop the others", "cmd/lopen/work_run.go",
		"if v := recover(); v != nil {",
		"if v := any(nil); v != nil {",
		"./cmd/lopen", "TestAPanicOfOneRun",
	},
	{
		"work: what comes after a module that failed is not begun", "cmd/lopen/work_order.go",
		"before.why != \"\" || before.over && before.err != nil",
		"false",
		"./cmd/lopen", "TestTheTurnsOfModules",
	},
}
