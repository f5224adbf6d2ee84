package main

// Of files that somebody has open for writing.
var ofOpen = []mutant{
	{
		"open: the preview asks for each path", "lifecycle/checkpoint/open.go",
		"if _, err := a.opened(c); err != nil {",
		"if _, err := a.opened(&Change{}); err != nil {",
		"./lifecycle/checkpoint", "TestOpenFilesStay",
	},
	{
		"open: and again before a file is replaced", "lifecycle/checkpoint/apply.go",
		"if stays, err := a.spared(c); stays || err != nil {\n\t\t\treturn altered, err\n\t\t}\n\t\tif _,",
		"if stays, err := a.spared(c); stays && err != nil {\n\t\t\treturn altered, err\n\t\t}\n\t\tif _,",
		"./lifecycle/checkpoint", "TestOpenedInTheMiddle",
	},
	{
		"open: and again before a file is removed", "lifecycle/checkpoint/apply.go",
		"if stays, err := a.spared(c); stays || err != nil {\n\t\treturn altered, err\n\t}\n\ta.descent",
		"if stays, err := a.spared(c); stays && err != nil {\n\t\treturn altered, err\n\t}\n\ta.descent",
		"./lifecycle/checkpoint", "TestOpenedInTheMiddle",
	},
	{
		"open: the kernel's refusal counts", "writer/openers_linux.go",
		"return err != nil, err == nil || err == unix.EAGAIN",
		"return false, err == nil || err == unix.EAGAIN",
		"./lifecycle/checkpoint", "TestOpenFilesStay",
	},
	{
		"open: where the lease is another's, the processes decide", "writer/openers_linux.go",
		"return err != nil, err == nil || err == unix.EAGAIN",
		"return err == unix.EAGAIN, true",
		"./writer", "TestOpenersOfAnothersFile",
	},
	{
		"open: a descriptor that only reads is no reason", "writer/openers_linux.go",
		"if flags&unix.O_ACCMODE == unix.O_RDONLY || flags&unix.O_PATH != 0 {",
		"if flags&unix.O_PATH != 0 {",
		"./writer", "TestOpenersOfAnothersFile",
	},
	{
		"open: a mapping alone is a reason", "writer/openers_linux.go",
		"o.mappings(pid)",
		"_ = o.mappings",
		"./writer", "TestOpenersOfAnothersFile",
	},
	{
		"open: a database stays whole from the start", "lifecycle/checkpoint/open.go",
		"if err := a.holds(d); err != nil {\n\t\t\t\treturn a.failed",
		"if err := a.holds(&database{}); err != nil {\n\t\t\t\treturn a.failed",
		"./lifecycle/checkpoint", "TestDatabasesStayWhole",
	},
	{
		"open: a database is looked at as a whole before its first file", "lifecycle/checkpoint/open.go",
		"if err := a.holds(d); err != nil || d.held != \"\" {",
		"if err := a.holds(&database{}); err != nil || d.held != \"\" {",
		"./lifecycle/checkpoint", "TestOpenedInTheMiddle",
	},
	{
		"open: what the plan leaves holds a database", "lifecycle/checkpoint/open.go",
		"stays := a.stays[path] || slices",
		"stays := a.stays[path] || false && slices",
		"./lifecycle/checkpoint", "TestDatabasesStayWhole",
	},
	{
		"open: what the plan does not change holds a database", "lifecycle/checkpoint/open.go",
		"} else if !is {\n\t\t\t\tcontinue",
		"} else if !is || true {\n\t\t\t\tcontinue",
		"./lifecycle/checkpoint", "TestDatabasesStayWhole",
	},
	{
		"open: the log goes before the database", "lifecycle/checkpoint/open.go",
		"return c != first && c.New == nil }, a.removeOne)",
		"return false }, a.removeOne)",
		"./lifecycle/checkpoint", "TestOpenedInTheMiddle",
	},
	{
		"open: an ignored file holds its database", "lifecycle/checkpoint/open.go",
		"case p.found.InForce.Ignored(path, false):\n\t\tk.Why = Ignored",
		"case p.found.InForce.Ignored(path, false):\n\t\tk.Why = \"\"",
		"./cmd/lopen", "TestRewindOfAnOpenFile",
	},
	{
		"open: the preview says so", "lifecycle/rewind/plan.go",
		"would.keep(used)",
		"_ = used",
		"./cmd/lopen", "TestRewindOfAnOpenFile",
	},
	{
		"open: force takes it", "lifecycle/checkpoint/plan.go",
		"InUse: opts.Force, ",
		"",
		"./cmd/lopen", "TestRewindOfAnOpenFile",
	},
	{
		"open: a night says so", "cmd/lopen/internal/loop/setback.go",
		"case len(used) > 0:",
		"case false:",
		"./cmd/lopen", "TestNightWithAnOpenFile",
	},
	{
		"open: what an attempt left ends before its files are looked at", "cmd/lopen/internal/loop/attempt.go",
		"if ctx.Err() != nil || out.weigh().then != record.Done {",
		"if ctx.Err() != nil {",
		"./cmd/lopen", "TestScripts/attempt-strays",
	},
	{
		"open: and where only the changes decide that it failed", "cmd/lopen/internal/loop/attempt.go",
		"if out.then != record.Done {",
		"if false {",
		"./cmd/lopen", "TestScripts/attempt-strays",
	},
	{
		"open: what a successful attempt left works on", "cmd/lopen/internal/loop/attempt.go",
		"if out.then != record.Done {",
		"if true {",
		"./cmd/lopen", "TestScripts/attempt-strays",
	},
	{
		"open: what an earlier attempt left is not named", "writer/process/stray.go",
		"func(s Stray) bool { return s.earlier })), err",
		"func(Stray) bool { return false })), err",
		"./cmd/lopen", "TestScripts/attempt-strays",
	},
	{
		"open: an answer is for one change", "lifecycle/checkpoint/open.go",
		"if a.asked.of == c { // state has just read it",
		"if true {",
		"./lifecycle/checkpoint", "TestOpenedInTheMiddle",
	},
	{
		"open: the content and the writer are of one descriptor", "lifecycle/checkpoint/state.go",
		"a.asked = answer{c, who, is}",
		"a.asked = answer{c, \"\", false && is && who == \"\"}",
		"./lifecycle/checkpoint", "TestOpenFilesStay",
	},
}
