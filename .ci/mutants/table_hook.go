package main

// Of the hooks of agents that a person started.
var ofHooks = []mutant{
	{
		"hook: the late end of a turn ends no later one", "cmd/lopen/hook_keep.go",
		"if !t.Late(k.event, k.came) {",
		"if true {",
		"./cmd/lopen", "TestALateStopEndsNoLaterTurn",
	},
	{
		"hook: a copy of a session is held for nobody", "lifecycle/carry/rewrite.go",
		`, "worktree", "holder")`,
		`, "worktree")`,
		"./lifecycle", "TestACopyIsHeldForNobody",
	},
	{
		"hook: what keeps an event is not the agent's to end", "cmd/lopen/internal/turns/detach_unix.go",
		"&syscall.SysProcAttr{Setsid: true}",
		"&syscall.SysProcAttr{}",
		"./cmd/lopen", "TestAHookThatIsKilledKeepsItsEvent",
	},
	{
		"hook: an agent that a run started is the run's", "cmd/lopen/hook.go",
		"if h.getenv(\"LOPEN_SESSION_ID\") != \"\" || ",
		"if ",
		"./cmd/lopen", "TestScripts/hook-faults",
	},
	{
		"hook: one prompt that comes twice is one turn", "cmd/lopen/internal/turns/turns.go",
		"if known := noted(&h).Prompt; known != \"\" && known == event.PromptID || event",
		"if event",
		"./cmd/lopen", "TestScripts/hook-faults",
	},
	{
		"hook: a turn is sent back three times at most", "cmd/lopen/internal/turns/turns.go",
		"if n = task.Attempts + 1; n > MaxGates {",
		"if n = task.Attempts + 1; n > 99 {",
		"./cmd/lopen", "TestScripts/hook-gate",
	},
	{
		"hook: a check that was not approved does not run", "cmd/lopen/hook_gate.go",
		"if refused := k.unapproved(ctx); refused != \"\" {",
		"if refused := k.unapproved(ctx); refused != \"\" && false {",
		"./cmd/lopen", "TestScripts/hook-gate",
	},
	{
		"hook: an agent approves nothing", "cmd/lopen/trust.go",
		"|| a.getenv(\"CLAUDECODE\") != \"\" {",
		"{",
		"./cmd/lopen", "TestScripts/hook-gate",
	},
	{
		"hook: a turn is one task, whichever process ends it", "lifecycle/checkpoints.go",
		"if s.continues && k.last != nil {",
		"if false {",
		"./lifecycle", "TestASessionIsHeldForAnAgent",
	},
	{
		"rewind: the State of an agent's own session stays", "cmd/lopen/checkpoint_rewind.go",
		"\tr.options.State = false\n",
		"",
		"./cmd/lopen", "TestScripts/hook",
	},
}
