package main

// ofCriteria are of what is remembered of specifications, and of updates of plans.
var ofCriteria = []mutant{
	{
		"criteria: the record is replaced durably", "plan/criteria/record.go",
		"writer.ReplaceFile(dir, fileName, data, 0o600)",
		"writer.ReplaceUnsynced(dir, fileName, data, 0o600)",
		"./plan/criteria", "TestSaveEveryCut",
	},
	{
		"criteria: a record's numbers are checked", "plan/criteria/record.go",
		"c.Section < 0 || c.Section >= len(r.Sections)",
		"c.Section < -1",
		"./plan/criteria", "TestHostileRecord",
	},
	{
		"criteria: a large record is not read", "plan/criteria/record.go",
		"int64(format.Max)",
		"64<<20",
		"./plan/criteria", "TestHostileRecord",
	},
	{
		"criteria: what is done is not reworded", "plan/criteria/update.go",
		"	if e.settled(id) {\n",
		"	if false && e.settled(id) {\n",
		"./plan/criteria", "TestUpdate",
	},
	{
		"criteria: what was attempted stays", "plan/criteria/update.go",
		"case e.tried(t.ID) == Tried:",
		"case false:",
		"./plan/criteria", "TestUpdate",
	},
	{
		"criteria: what a person changed stays", "plan/criteria/update.go",
		"case !e.asMade(t, was):",
		"case false:",
		"./plan/criteria", "TestUpdate",
	},
	{
		"criteria: what is beneath a task stays", "plan/criteria/update.go",
		"case len(t.Children) > 0:",
		"case false:",
		"./plan/criteria", "TestUpdate",
	},
	{
		"criteria: an update without its record is not made twice", "plan/criteria/diff.go",
		"if d.link[i] = t.find(now, i); d.link[i] == \"\" && c.Text != \"\" {",
		"if c.Text != \"\" {",
		"./plan/criteria", "TestUpdate",
	},
	{
		"criteria: IDs are followed from edit to edit", "plan/criteria/update.go",
		"			*id = renamed[*id]\n",
		"			_ = renamed[*id]\n",
		"./plan/criteria", "TestAnyUpdate",
	},
	{
		"run: it is not done while a criterion has no task", "cmd/lopen/internal/loop/finish.go",
		"case uncovered != nil:",
		"case uncovered != nil && p.Total < 0:",
		"./cmd/lopen", "TestScripts/spec-new",
	},
	{
		"run: nothing is left to do only if each criterion has a task", "cmd/lopen/run_session.go",
		"		if err := r.printDifferences(store, p); err != nil {\n",
		"		if err := r.printDifferences(store, p); err != nil && p == nil {\n",
		"./cmd/lopen", "TestScripts/spec-new",
	},
	{
		"run: what a newer lopen remembered stays", "cmd/lopen/internal/loop/specification.go",
		"case err != nil && !errors.Is(err, fs.ErrNotExist):",
		"case err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, lifecycle.ErrFutureVersion):",
		"./cmd/lopen", "TestScripts/spec-carried",
	},
	{
		"run: a plan without a record is compared by its tasks", "cmd/lopen/internal/loop/specification.go",
		"p.Origin() == spec",
		"p.Origin() == \"\"",
		"./cmd/lopen", "TestScripts/spec-carried",
	},
	{
		"plan update: a specification that lost its content takes no task back", "cmd/lopen/internal/loop/specification.go",
		"missing := len(bytes.TrimSpace(src)) == 0",
		"missing := len(bytes.TrimSpace(src)) == 0 && err != nil",
		"./cmd/lopen", "TestScripts/spec-new",
	},
	{
		"plan update: a dry run changes nothing", "cmd/lopen/plan_update.go",
		"	if u.dryRun {\n		return u.rehearse(p)",
		"	if u.dryRun && p == nil {\n		return u.rehearse(p)",
		"./cmd/lopen", "TestScripts/spec-new",
	},
}
