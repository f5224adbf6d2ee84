package main

var ofClock = []mutant{
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
