package main

// ofPlaces are the mechanisms that keep an agent out of what git runs, other users out of the folders that lopen
// works in, and what was typed before a question out of its answer.
var ofPlaces = []mutant{
	{
		"begin: git is not started as the person starts it on what an agent changed", "cmd/lopen/internal/repo/begun.go",
		"if len(names) == 0 {",
		"if true || len(names) == 0 {",
		"./cmd/lopen/internal/repo", "TestNothingOfTheAgentRuns/a_hook",
	},
	{
		"begin: what husky's scripts read is compared", "cmd/lopen/internal/repo/hooks.go",
		"\t\tw.folder(beside, false, \"*\")\n",
		"",
		"./cmd/lopen/internal/repo", "TestNothingOfTheAgentRuns/a_hook_of_husky",
	},
	{
		"begin: what a manager of hooks is told is compared", "cmd/lopen/internal/repo/hooks.go",
		"if len(b.hooks) > 0 {",
		"if false {",
		"./cmd/lopen/internal/repo", "TestNothingOfTheAgentRuns/what_a_manager_is_told",
	},
	{
		"begin: hooks that are too many do not run", "cmd/lopen/internal/repo/hooks.go",
		"\tif w.over() {\n\t\tb.parts",
		"\tif false {\n\t\tb.parts",
		"./cmd/lopen/internal/repo", "TestNothingOfTheAgentRuns/more_than_can_be_compared",
	},
	{
		"begin: whether a hook can be executed counts", "cmd/lopen/internal/repo/hooks.go",
		`fmt.Sprintf("%t %x", info.Mode()&0o111 != 0, sha256.Sum256(data))`,
		`fmt.Sprintf("%t %x", false, sha256.Sum256(data))`,
		"./cmd/lopen/internal/repo", "TestNothingOfTheAgentRuns/a_hook_that_could_not_run",
	},
	{
		"begin: the attributes are those of then", "cmd/lopen/internal/repo/begin.go",
		"b.attributes[key], b.parts[r.nameOf(name)] = data, string(data)",
		"b.attributes[key] = data",
		"./cmd/lopen/internal/repo", "TestNothingOfTheAgentRuns/attributes",
	},
	{
		"begin: no git tidies up by references that are links", "cmd/lopen/internal/repo/begun.go",
		`"gc.auto": "0", "maintenance.auto": "false"`,
		`"gc.later": "0"`,
		"./cmd/lopen/internal/repo", "TestTheBeginGoesOn",
	},
	{
		"begin: what a filter stores stays", "cmd/lopen/internal/repo/begun.go",
		"\tadd(entry{key: \"lfs.storage\"",
		"\tadd(entry{key: \"lfs.none\"",
		"./cmd/lopen/internal/repo", "TestTheBeginGoesOn",
	},
	{
		"begin: another repository is not the project's", "cmd/lopen/internal/repo/begin.go",
		"if at.Dir != now.Dir || at.Common != now.Common {",
		"if false {",
		"./cmd/lopen/internal/repo", "TestAnotherRepositoryInItsPlace",
	},
	{
		"begin: a work tree that is made later has its files by the filters of then", "cmd/lopen/internal/repo/worktree.go",
		"\tif r.frozen {",
		"\tif false {",
		"./cmd/lopen/internal/repo", "TestAWorkTreeIsMadeOfTheBegin",
	},
	{
		"begin: hooks that an agent committed are not those of the next module", "cmd/lopen/internal/repo/begin.go",
		"if fresh && inTree(name) &&",
		"if false && fresh && inTree(name) &&",
		"./cmd/lopen/internal/repo", "TestHooksOfAWorkTree",
	},
	{
		"begin: what Git LFS sets takes no hook away", "cmd/lopen/internal/repo/begin.go",
		`return name == "access" || key == "lfs.repositoryformatversion"`,
		`return name == "access"`,
		"./cmd/lopen/internal/repo", "TestUnchangedHooksRun",
	},
	{
		"begin: a run has one", "cmd/lopen/internal/loop/commit.go",
		"err = r.cfg.Repository.Begin(ctx, r.sayChanged)",
		"err = nil",
		"./cmd/lopen", "TestScripts/commit-begin",
	},
	{
		"begin: that of a module is that of the work", "cmd/lopen/run_commit.go",
		"len(main.Changed(ctx)) > 0 {",
		"len(main.Changed(ctx)) < 0 {",
		"./cmd/lopen", "TestScripts/work-begin",
	},
}
