package main

var ofCommand = []mutant{
	{
		"temporary folder: that of another user is left alone", "cmd/lopen/internal/scratch/scratch.go",
		"!info.IsDir() || !owner.Mine(info)",
		"!info.IsDir() || !owner.Mine(info) && false",
		"./cmd/lopen/internal/scratch", "TestWhatIsNotOursIsLeftAlone",
	},
	{
		"temporary folder: that of who lives is left alone", "cmd/lopen/internal/scratch/scratch.go",
		"\tif locked, err := lock(hold); err != nil || !locked {\n\t\treturn\n\t}\n",
		"",
		"./cmd/lopen/internal/scratch", "TestTheFolderOfWhoLivesIsLeftAlone",
	},
	{
		"temporary folder: the next run sweeps", "cmd/lopen/internal/scratch/scratch.go",
		"\twithin(func() { sweep(os.TempDir()) })\n",
		"",
		"./cmd/lopen/internal/scratch", "TestWhatAKilledRunLeftIsRemoved",
	},
	{
		"temporary folder: one that was replaced is not used", "cmd/lopen/internal/scratch/scratch.go",
		"return err == nil && os.SameFile(have, info)",
		"return have != info || err == nil",
		"./cmd/lopen/internal/scratch", "TestAFolderThatWasReplacedIsNotUsed",
	},
	{
		"temporary folder: only a regular file is read", "writer/regular.go",
		"case !info.Mode().IsRegular():",
		"case false:",
		"./cmd/lopen/internal/scratch", "TestOnlyARegularFileIsRead",
	},
	{
		"temporary folder: the command inherits the lock", "cmd/lopen/internal/loop/attempt.go",
		"if lock := r.dir.Lock(); lock != nil {",
		"if lock := r.dir.Lock(); false {",
		"./cmd/lopen", "TestScripts/leftover",
	},
	{
		"limit: a far retryAt is not added to", "cmd/lopen/internal/loop/limits.go",
		"d > budget-l.waited",
		"l.waited+d > budget",
		"./cmd/lopen/internal/loop", "TestLimitFollowsRetryAt",
	},
	{
		"metrics: times are bounded", "cmd/lopen/internal/loop/metrics.go",
		"if m.RetryAt != nil && m.RetryAt.After(late) {",
		"if false {",
		"./cmd/lopen/internal/loop", "TestReadMetrics",
	},
	{
		what: "loop: a command has no terminal of its own", file: "cmd/lopen/internal/child/child_unix.go",
		from: "Setsid: true", to: "Setpgid: true",
		pkg: "./cmd/lopen", test: "TestScripts/forged",
	},
	{
		what: "loop: a session has a command without its credentials", file: "cmd/lopen/internal/loop/runner.go",
		from: "r.command, r.check = cfg.Session.RedactArgs(cfg.Command), ", to: "r.command, r.check = cfg.Command, ",
		pkg: "./cmd/lopen", test: "TestScripts/trust-kept",
	},
	{
		what: "loop: a session has a check without its credentials", file: "cmd/lopen/internal/loop/runner.go",
		from: "cfg.Session.Redact(cfg.Check)\n", to: "cfg.Check\n",
		pkg: "./cmd/lopen", test: "TestScripts/trust-kept",
	},
	{
		what: "loop: .child has a command without its credentials", file: "cmd/lopen/internal/loop/attempt.go",
		from: "strings.Join(r.sess.RedactArgs(c.Argv), \" \")", to: "strings.Join(c.Argv, \" \")",
		pkg: "./cmd/lopen", test: "TestScripts/trust-kept",
	},
	{
		what: "trust: approvals are the repository's", file: "cmd/lopen/internal/trust/trust.go",
		from: `if p.Repository != "" {
		key =`, to: `if false {
		key =`,
		pkg: "./cmd/lopen", test: "TestScripts/trust-moved",
	},
	{
		what: "trust: a saved session does not silence LOPEN_CHECK", file: "cmd/lopen/run.go",
		from: `if old.Check != "" {`, to: `if true {`,
		pkg: "./cmd/lopen", test: "TestScripts/trust",
	},
}
