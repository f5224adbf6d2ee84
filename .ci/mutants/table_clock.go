package main

// ofClock are mutants of what one wrong clock must not do, and of what a killed run left.
var ofClock = []mutant{
	{
		"clock: a mark in the future is dropped", "lifecycle/prune.go",
		"t.Due.IsZero() || t.Due.After(now)",
		"t.Due.IsZero()",
		"./lifecycle", "TestMarkInTheFuture",
	},
	{
		"clock: what is not due has no mark", "lifecycle/prune.go",
		"\t\tt.Due, t.Again = time.Time{}, time.Time{}\n\t\treturn t, stayed",
		"\t\treturn t, stayed",
		"./lifecycle", "TestNothingIsDeletedOnTheWordOfOneClock",
	},
	{
		"clock: the store knows a time after the mark", "lifecycle/prune.go",
		"if known.Sub(t.Due) < confirmed {",
		"if false {",
		"./lifecycle", "TestNothingIsDeletedOnTheWordOfOneClock",
	},
	{
		"clock: a move in the future keeps nothing for years", "lifecycle/prune.go",
		"since = t.Ahead",
		"since = t.At",
		"./lifecycle", "TestNothingIsDeletedOnTheWordOfOneClock",
	},
	{
		"clock: a move at 1970 was not before the completion", "lifecycle/trash.go",
		"if x.at.After(note.At) {",
		"if false {",
		"./lifecycle", "TestNothingIsDeletedOnTheWordOfOneClock",
	},
	{
		"clock: a completion in the future takes nobody's slot", "lifecycle/prune.go",
		"if ahead := a.at.After(now); ahead != b.at.After(now) {",
		"if ahead := a.at.After(now); false {",
		"./lifecycle", "TestCompletedInTheFuture",
	},
	{
		"clock: backups have to agree", "lifecycle/backup/prune.go",
		"at.Before(now) {",
		"false {",
		"./lifecycle/backup", "TestRetentionOfAWrongClock",
	},
	{
		"orphan: strays without the descriptor have the variable", "writer/process/process_linux.go",
		"inherited = variable(pid, g.Mark)",
		"inherited = no",
		"./writer/process", "TestStraysOfAKilledLoopAreEnded/its_descriptors_are_closed",
	},
	{
		"orphan: strays without the variable have the descriptor", "writer/process/process_linux.go",
		"marked = inherited == yes || ",
		"marked = inherited == yes || false && ",
		"./writer/process", "TestStraysOfAKilledLoopAreEnded/its_variables_are_gone",
	},
	{
		"fleet: nothing goes by age that the database has just received", "lifecycle/fleet/forget.go",
		"if found[x.ID].Ago <= r.Age && ",
		"if false && ",
		"./lifecycle/fleet", "TestBeyondOfAWrongClock",
	},
	{
		"fleet: by number a session goes whatever the clocks say", "lifecycle/fleet/forget.go",
		" && !slices.ContainsFunc(crowded, isX)",
		" && (true || !slices.ContainsFunc(crowded, isX))",
		"./lifecycle/fleet", "TestBeyondOfAWrongClock",
	},
	{
		"orphan: 0 is no process group", "writer/process/flock_unix.go",
		"return pgid != 0 && (",
		"return (",
		"./writer/process", "TestOrphanBeforeRecordInAContainer",
	},
	{
		"orphan: a free lock says nothing of what closed it", "writer/process/orphan.go",
		"if !held && !o.Alive {",
		"if !held {",
		"./writer/process", "TestStraysOfAKilledLoopAreEnded/its_descriptors_are_closed",
	},
	{
		"orphan: what a command left whose end was seen is no orphan", "writer/process/lock.go",
		"g.Over = true",
		"",
		"./writer/process", "TestStraysOfOthersAreLeftAlone",
	},
	{
		"orphan: another command's variable is not ours", "writer/process/process_linux.go",
		"if ok && string(value) == mark {",
		"if ok && value != nil {",
		"./writer/process", "TestStraysOfOthersAreLeftAlone",
	},
	{
		"orphan: a signal is for one start of a number", "writer/process/stray.go",
		"if proc.Start(s.PID) != s.start {",
		"if false {",
		"./writer/process", "TestStraysOfOthersAreLeftAlone",
	},
	{
		"orphan: what may be of the command is not believed gone", "writer/process/orphan.go",
		"|| held && !o.Over && o.mayBe(boot, here)",
		"",
		"./writer/process", "TestWhatMayBeOfAKilledLoopIsNamed",
	},
	{
		"orphan: the numbers of another PID namespace are not believed", "writer/process/orphan.go",
		"here := boot && o.Space == proc.Space()",
		"here := boot",
		"./writer/process", "TestWhatMayBeOfAKilledLoopIsNamed/another_PID_namespace",
	},
	{
		"orphan: what cannot be seen is not believed gone", "writer/process/orphan.go",
		"if unseen || boot && (!here || o.PGID == 0) {",
		"if unseen && false || boot && here && o.PGID == 0 {",
		"./writer/process", "TestKilledLoopOfAnotherNamespace",
	},
	{
		"orphan: a run ends nothing that it only knows by name", "cmd/lopen/internal/loop/orphan.go",
		"if err = nil; !beside {",
		"if err = nil; false {",
		"./cmd/lopen", "TestScripts/orphan-strays",
	},
}
