package main

// ofHistory are mutants of whose change it is, and of what a rewind leaves alone.
var ofHistory = []mutant{
	{
		"history: an interval of nobody's that was thinned makes the rest contested", "lifecycle/checkpoint/planner.go",
		"c.doubt || c.nobody",
		"c.doubt",
		"./lifecycle/checkpoint", "TestStories",
	},
	{
		"history: a fork has no part in what that session does afterwards", "lifecycle/checkpoint/planner.go",
		"doubt = doubt || c.at.Number > p.until[a.Session]",
		"_ = p.until",
		"./lifecycle/checkpoint", "TestStories",
	},
	{
		"history: what a damaged line told nobody knows", "lifecycle/checkpoint/history.go",
		"x.doubt = x.doubt || e.Contested()",
		"x.doubt = x.doubt || len(e.By) > 1",
		"./lifecycle/checkpoint", "TestDamagedLineBetween",
	},
	{
		"history: all of a task that was cut off is contested", "lifecycle/checkpoint/history.go",
		"x.doubt = x.doubt || cut[a]",
		"_ = cut",
		"./lifecycle/checkpoint", "TestStories",
	},
	{
		"history: a path that rules had hidden is nobody's", "lifecycle/checkpoint/history.go",
		"c.uncovered = err == nil && rules.InForce.Ignored(path, likeFolder(next))",
		"_ = rules",
		"./lifecycle/checkpoint", "TestStories",
	},
	{
		"history: what could not be read may have been changed", "lifecycle/checkpoint/history.go",
		"\t\t\tc.doubt = true\n",
		"",
		"./lifecycle/checkpoint", "TestUnreadableBetween",
	},
	{
		"history: a rewind gives the owner back with the value", "lifecycle/checkpoint/history.go",
		"if known && same(f, next) {",
		"if false && known && same(f, next) {",
		"./lifecycle/checkpoint", "TestStories",
	},
	{
		"history: what only rewinds did is undone", "lifecycle/checkpoint/history.go",
		"undone = c.rewind != nil && c.quiet() && own(c.rewind)",
		"undone = false",
		"./lifecycle/checkpoint", "TestStories",
	},
	{
		"history: but not those of another session", "lifecycle/checkpoint/history.go",
		"undone = c.rewind != nil && c.quiet() && own(c.rewind)",
		"undone = c.rewind != nil && c.quiet()",
		"./lifecycle/checkpoint", "TestStories",
	},
	{
		"history: what another session took back is not the session's", "lifecycle/checkpoint/history.go",
		"!(c.quiet() && (c.rewind == nil || own(c.rewind)))",
		"!c.quiet()",
		"./lifecycle/checkpoint", "TestStories",
	},
	{
		"history: a rewind's first half is the rewind's", "lifecycle/checkpoint/history.go",
		"if begun[e.Parent] {",
		"if false {",
		"./lifecycle/checkpoint", "TestStories",
	},
	{
		"history: also of one that is not finished", "lifecycle/checkpoint/history.go",
		"e.Reason == BeforeRewind && e == newest[e.Session]",
		"false",
		"./lifecycle/checkpoint", "TestStories",
	},
	{
		"history: a damaged checkpoint costs what it alone knew", "lifecycle/checkpoint/history.go",
		"h.lost[damaged] = true",
		"return nil, nil, nil, err",
		"./lifecycle/checkpoint", "TestDamagedBetween",
	},
	{
		"plan: what was ignored at the target stays", "lifecycle/checkpoint/planner.go",
		"[]*Entry{target, p.now}",
		"[]*Entry{p.now, p.now}",
		"./lifecycle/checkpoint", "TestStories",
	},
	{
		"plan: and what a person has ignored since", "lifecycle/checkpoint/planner.go",
		"[]*Entry{target, p.now}",
		"[]*Entry{target, target}",
		"./lifecycle/checkpoint", "TestStories",
	},
	{
		"plan: what stood before the first task is not deleted", "lifecycle/checkpoint/planner.go",
		"if err != nil || it == nil || it.kind ==",
		"if err != nil || it != nil || it.kind ==",
		"./lifecycle/checkpoint", "TestStories",
	},
	{
		"plan: nor what was ignored then", "lifecycle/checkpoint/planner.go",
		"if p.firstRules.Ignored(path, dir) {",
		"if false {",
		"./lifecycle/checkpoint", "TestStories",
	},
	{
		"plan: force deletes nothing that is only another's", "lifecycle/checkpoint/planner.go",
		"!(deletes && (!own || k.Why == Uncovered))",
		"!(deletes && k.Why == Uncovered)",
		"./lifecycle/checkpoint", "TestStories",
	},
	{
		"plan: nor what was only shown", "lifecycle/checkpoint/planner.go",
		"!(deletes && (!own || k.Why == Uncovered))",
		"!(deletes && !own)",
		"./lifecycle/checkpoint", "TestStories",
	},
	{
		"plan: a task is a session's by its line, not by its name", "lifecycle/checkpoint/planner.go",
		"if p.line[a.Begun] {",
		"if a.Session == p.now.Session {",
		"./lifecycle/checkpoint", "TestStories",
	},
	{
		"history: rewinds of others that came to nothing are nothing", "lifecycle/checkpoint/history.go",
		"if had != nil && c == had[path] && c.settled() == h[path].settled() {",
		"if had != nil && c == h[path] {",
		"./lifecycle", "TestForkContinuesTheCheckpoints",
	},
}
