package main

var ofChild = []mutant{
	{
		what: "keeper: output is read when lopen is gone", file: "cmd/lopen/internal/child/keeper_unix.go",
		from: "go func() { _, _ = io.Copy(io.Discard, r) }()", to: "_ = io.Discard\n\t\t_ = r.Close()",
		pkg: "./cmd/lopen/internal/child", test: "TestCommandOutlivesItsLoop",
	},
	{
		what: "keeper: kills when lopen panics", file: "cmd/lopen/internal/child/keeper_unix.go",
		from: "\t\t_ = syscall.Kill(-pgid, syscall.SIGKILL)\n\t\treturn\n", to: "\t\treturn\n",
		pkg: "./cmd/lopen/internal/child", test: "TestPanicEndsTheCommand",
	},
	{
		what: "panic: one that is recovered has ended the command", file: "cmd/lopen/internal/child/running.go",
		from: "\t\tp.kill()\n\t\tp.gone(ctx)\n\t\tpanic(v)\n", to: "\t\t_ = ctx\n\t\tpanic(v)\n",
		pkg: "./cmd/lopen/internal/child", test: "TestAPanicThatIsRecovered",
	},
	{
		what: "keeper: what it notes is of one attempt", file: "lifecycle/session.go",
		from: " || e.Iteration != s.State().NumIterations()+1", to: "",
		pkg: "./lifecycle", test: "TestCommandEnded",
	},
	{
		what: "keeper: an earlier end is forgotten", file: "cmd/lopen/internal/child/child.go",
		from: "c.Lock != nil && c.Iteration > 0", to: "false",
		pkg: "./cmd/lopen/internal/child", test: "TestAnEarlierEndIsForgotten",
	},
	{
		what: "keeper: its end ends the command", file: "cmd/lopen/internal/child/keep_unix.go",
		from: "\t\t_ = syscall.Kill(-p.leader(), syscall.SIGKILL)\n", to: "",
		pkg: "./cmd/lopen/internal/child", test: "TestCommandKillsItsKeeper",
	},
	{
		what: "stop: a second signal kills the group", file: "cmd/lopen/internal/child/running.go",
		from: "\torderKill()\n\tfor _, p := range all {\n\t\tp.kill()\n\t}\n", to: "",
		pkg: "./cmd/lopen", test: "TestStopMeansStop/ignores_SIGTERM",
	},
	{
		what: "stop: processes in other groups are ended", file: "cmd/lopen/internal/child/child_unix.go",
		from: "for _, stray := range p.strays() {", to: "for _, stray := range p.strays()[:0] {",
		pkg: "./cmd/lopen", test: "TestStopMeansStop/children_in_other_groups",
	},
	{
		what: "stop: what others started is left alone", file: "writer/process/process_linux.go",
		from: "slices.Contains(at, position(g.Mark))", to: "len(at) > 0",
		pkg: "./writer/process", test: "TestStrays",
	},
	{
		what: "stop: what was there before the command is left alone", file: "writer/process/process_linux.go",
		from: "|| start < g.begun(), unknown", to: "|| start < g.begun() && false, unknown",
		pkg: "./writer/process", test: "TestStrays",
	},
}
