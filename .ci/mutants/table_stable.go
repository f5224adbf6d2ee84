package main

// ofStable are mutants of what is renamed while the tree is looked at.
var ofStable = []mutant{
	{
		"stable: a folder that changed while it was looked at is read again", "cache/files/settle.go",
		"if err != nil || !st.same(l.st) || l.racy() {",
		"if err != nil || st.mount != l.st.mount {",
		"./cache/files", "TestRenamedWhileLookedAt",
	},
	{
		"stable: a change within the tick of the clock is one", "cache/files/settle.go",
		"|| l.racy() {",
		"{",
		"./cache/files", "TestChangedWithinTheTick",
	},
	{
		"stable: what never settles is recorded", "cache/files/settle.go",
		"\t\tunstable = append(unstable, l.at.path)\n",
		"",
		"./cache/files", "TestNeverSettles",
	},
	{
		"stable: absence in an unstable folder is not known", "cache/files/snapshot.go",
		"&& !s.unsettledAt(path)",
		"",
		"./cache/files", "TestNeverSettles",
	},
	{
		"stable: a rewind deletes nothing that an unstable folder may have had", "lifecycle/checkpoint/diff.go",
		"case it == nil && s.unstable:",
		"case false:",
		"./lifecycle/checkpoint", "TestUnstableFolder",
	},
	{
		"stable: what was moved out of an unstable folder is not removed", "lifecycle/checkpoint/unstable.go",
		"case m.hidden[contentOf(cmp.Or(c.Old, c.New))]:",
		"case c.Path == \"\" && m.hidden[contentOf(cmp.Or(c.Old, c.New))]:",
		"./lifecycle/checkpoint", "TestUnstableNow",
	},
	{
		"stable: what is older than an unstable target is not removed", "lifecycle/checkpoint/unstable.go",
		"return !info.ModTime().After(than.At), nil",
		"return info == nil, nil",
		"./lifecycle/checkpoint", "TestUnstableFolder",
	},
}
