package main

// Of the hooks of agents that a person started.
var ofHooks = []mutant{
	{
		"hook: the late end of a turn ends no later one", "cmd/lopen/hook_keep.go",
		"if found = true; !t.Late(k.event) {",
		"if found = true; true {",
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
		"if refused := k.unapproved(ctx, g); refused != \"\" {",
		"if refused := k.unapproved(ctx, g); refused != \"\" && false {",
		"./cmd/lopen", "TestScripts/hook-gate",
	},
	{
		"hook: an agent approves nothing", "cmd/lopen/gate.go",
		"return a.byAgent() || a.getenv(\"CLAUDECODE\") != \"\" }",
		"return false }",
		"./cmd/lopen", "TestScripts/trust",
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
	{
		"hook: what is changed after a turn was stopped is contested", "cmd/lopen/internal/turns/settle.go",
		"if !k.later(changes, e.At) {",
		"if true {",
		"./cmd/lopen", "TestScripts/hook-transcript",
	},
	{
		"hook: a turn that the transcript ends is not in progress", "cmd/lopen/internal/turns/settle.go",
		"\tif e := k.ending(); e != nil {\n\t\treturn k.settle(ctx, e)\n\t}\n\treturn nil\n",
		"\treturn nil\n",
		"./cmd/lopen", "TestScripts/hook-transcript",
	},
	{
		"hook: a check ends with its agent", "cmd/lopen/hook_gate.go",
		"if k.holder != nil && !(*lifecycle.Owner)(k.holder).Alive() {",
		"if k.holder != nil && !(*lifecycle.Owner)(k.holder).Alive() && false {",
		"./cmd/lopen", "TestACheckEndsWithItsAgent",
	},
	{
		"hook: a store that was removed is told of", "cmd/lopen/hook_keep.go",
		"\t\tk.mark().Set(k.home)\n",
		"",
		"./cmd/lopen", "TestScripts/hook-faults",
	},
	{
		"hook: a prompt does not wait for a long transcript", "cmd/lopen/internal/histories/import.go",
		"\t\t\tif im.once {\n",
		"\t\t\tif false {\n",
		"./cmd/lopen/internal/histories", "TestInParts",
	},
	{
		"hook: turns of other sessions that have ended do not count as active", "cmd/lopen/hook_keep.go",
		"\t\tk.settleOthers(ctx)\n",
		"",
		"./cmd/lopen", "TestScripts/hook-transcript",
	},
	{
		"hook: a rewind ends the turn of an agent that is gone", "cmd/lopen/hook_keep.go",
		"k.pid, end = 0, (*turns.Keeper).Leave",
		"k.pid = 0",
		"./cmd/lopen", "TestScripts/hook-rewound",
	},
	{
		"doctor: what is wrong in a project's settings is named", "cmd/lopen/doctor.go",
		"for _, text := range v.Wrong() {",
		"for _, text := range v.Wrong()[:0] {",
		"./cmd/lopen", "TestScripts/hook-rewound",
	},
}
