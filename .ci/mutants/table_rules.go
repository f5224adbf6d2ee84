package main

// Of what only rules hide that a task wrote.
var ofRules = []mutant{
	{
		"hidden: what is hidden is known by name", "cache/files/hidden.go",
		"skips = append(skips, Skip{Path: c.path, Reason: Hidden, Listing: l})",
		"_ = l",
		"./lifecycle/checkpoint", "TestHiddenIsMovedAway",
	},
	{
		"hidden: so many files of a task are stored", "cache/files/hidden.go",
		"return l.Files <= b.Files && l.Bytes <= b.Bytes",
		"return l.Bytes <= b.Bytes",
		"./lifecycle/checkpoint", "TestHiddenBudget",
	},
	{
		"hidden: and so many bytes", "cache/files/hidden.go",
		"return l.Files <= b.Files && l.Bytes <= b.Bytes",
		"return l.Files <= b.Files",
		"./lifecycle/checkpoint", "TestHiddenBudget",
	},
	{
		"hidden: a thousand files", "lifecycle/checkpoint/hidden.go",
		"files.Budget{Files: 1000,",
		"files.Budget{Files: 1001,",
		"./cmd/lopen", "TestScripts/rewind-hidden",
	},
	{
		"hidden: 16 MiB", "lifecycle/checkpoint/hidden.go",
		"Bytes: 16 << 20}",
		"Bytes: 17 << 20}",
		"./cmd/lopen", "TestScripts/rewind-hidden",
	},
	{
		"hidden: of each task, not of each checkpoint", "lifecycle/checkpoint/hidden.go",
		"left = left.Less(p.Taken)",
		"_ = left",
		"./lifecycle/checkpoint", "TestHiddenBudget",
	},
	{
		"hidden: what is hidden stays so", "cache/files/hidden.go",
		"case !c.was && left.Less(used).covers(l):",
		"case left.Less(used).covers(l):",
		"./lifecycle/checkpoint", "TestHiddenBudget",
	},
	{
		"hidden: what was recorded stays so", "cache/files/ignore.go",
		"case !ignored || w.keeps(at.path):",
		"case !ignored:",
		"./lifecycle/checkpoint", "TestHiddenBudget",
	},
	{
		"hidden: what others made stays", "lifecycle/checkpoint/planner.go",
		"default:\n\t\tk, err = p.blame(path, now, was)",
		"case !hidden(now):\n\t\tk, err = p.blame(path, now, was)",
		"./lifecycle/checkpoint", "TestHiddenThatStays",
	},
	{
		"hidden: a repository in it stays", "lifecycle/checkpoint/hidden.go",
		"case l.Fixed:",
		"case l.Fixed && false:",
		"./lifecycle/checkpoint", "TestHiddenThatStays",
	},
	{
		"hidden: it is moved, not deleted", "lifecycle/checkpoint/planner.go",
		"c.Kind, c.At = KindAway, 0",
		"c.Kind, c.At = KindDelete, 0",
		"./lifecycle/checkpoint", "TestHiddenIsMovedAway",
	},
	{
		"hidden: undo moves it back", "lifecycle/checkpoint/planner.go",
		"c.Kind, c.At = KindBack, 0",
		"c.Kind, c.At = KindCreate, 0",
		"./lifecycle/checkpoint", "TestHiddenIsMovedAway",
	},
	{
		"hidden: it is moved as the plan saw it", "lifecycle/checkpoint/moved.go",
		"case l.Hash != c.Old.Hash:",
		"case l.Hash != c.Old.Hash && false:",
		"./lifecycle/checkpoint", "TestHiddenChangedMeanwhile",
	},
	{
		"hidden: it comes back whole or not", "lifecycle/checkpoint/moved.go",
		"if err != nil || l.Hash != m.hash {",
		"if err != nil {",
		"./lifecycle/checkpoint", "TestHiddenChangedMeanwhile",
	},
	{
		"hidden: what is gone is named", "lifecycle/checkpoint/moved.go",
		"p.retained[path] = Retained{Path: path, Why: Unstored}",
		"_ = path",
		"./lifecycle/checkpoint", "TestMovedIsSwept",
	},
	{
		"hidden: where the kernel refuses, it is named and left", "lifecycle/checkpoint/moved.go",
		"case Refused(err): // as if",
		"case Refused(err) && false: // as if",
		"./lifecycle/checkpoint", "TestHiddenMeetsAMount",
	},
	{
		"hidden: the move is durable", "lifecycle/checkpoint/moved.go",
		"a.s.grown.Add(c.Old.Size)\n\treturn \"\", to.SyncDir(\".\")",
		"a.s.grown.Add(c.Old.Size)\n\treturn \"\", nil",
		"./lifecycle/checkpoint", "TestHiddenIsMovedOnce",
	},
	{
		"hidden: what is moved counts at once", "lifecycle/checkpoint/moved.go",
		"a.s.grown.Add(c.Old.Size)",
		"_ = a.s",
		"./lifecycle/checkpoint", "TestHiddenChangedMeanwhile",
	},
	{
		"hidden: what was moved counts", "lifecycle/checkpoint/thin.go",
		"s.objects = n + moved",
		"s.objects = n + 0*moved",
		"./lifecycle/checkpoint", "TestMovedIsSwept",
	},
	{
		"hidden: what is needed is not swept", "lifecycle/checkpoint/moved.go",
		"if _, is := needed[m.hash]; is {",
		"if _, is := needed[m.hash]; is && false {",
		"./lifecycle/checkpoint", "TestMovedIsSwept",
	},
	{
		"hidden: it goes with its session", "lifecycle/checkpoints.go",
		"_, err = checkpoint.SweepMoved(c.root, needed)",
		"_ = c.root",
		"./cmd/lopen", "TestScripts/moved-swept",
	},
	{
		"hidden: and with one that a prune deletes", "lifecycle/checkpoints.go",
		"_, err = checkpoint.SweepMoved(c.root, needed)",
		"_ = c.root",
		"./lifecycle", "TestPruneSweepsWhatWasMoved",
	},
	{
		"hidden: an export names it", "lifecycle/carry/chains.go",
		"if n.last = nil; e == nil || e.Hidden == 0 {",
		"if n.last = nil; e == nil || e.Hidden >= 0 {",
		"./cmd/lopen", "TestScripts/rewind-hidden",
	},
	{
		"hidden: a machine to which the session comes names it", "cmd/lopen/session_pull.go",
		"if k.Why == checkpoint.Unstored {",
		"if k.Why == checkpoint.Unsaved {",
		"./cmd/lopen", "TestScripts/fleet-database",
	},
}
