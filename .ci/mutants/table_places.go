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
	{
		"others: a folder of work trees is only the user's", "cmd/lopen/run_worktree.go",
		"\tif !errors.As(err, &exposed) {",
		"\tif true || !errors.As(err, &exposed) {",
		"./cmd/lopen", "TestScripts/worktree-foreign",
	},
	{
		"others: a new folder of work trees lets nobody in", "cmd/lopen/run_worktree.go",
		"os.Mkdir(dir, 0o700)",
		"os.Mkdir(dir, 0o755)",
		"./cmd/lopen", "TestScripts/worktree-foreign",
	},
	{
		"others: nothing is started in a folder that was swapped", "cmd/lopen/internal/loop/attempt.go",
		"if err == nil && os.SameFile(info, r.cfg.Folder) {",
		"if err == nil || os.SameFile(info, r.cfg.Folder) {",
		"./cmd/lopen", "TestScripts/worktree-foreign",
	},
	{
		"others: a state that they may write does not count", "cmd/lopen/internal/trust/trust.go",
		`err = owner.Private(dir, getenv("HOME"))`,
		`_ = owner.Private(dir, getenv("HOME"))`,
		"./cmd/lopen", "TestScripts/trust-foreign",
	},
	{
		"others: approvals that they may have written do not count", "cmd/lopen/internal/trust/trust.go",
		"owner.ReadFile(path, maxApprovals)",
		"os.ReadFile(path)",
		"./cmd/lopen", "TestScripts/trust-foreign",
	},
	{
		"others: a fleet that they may have written does not count", "cmd/lopen/fleet.go",
		"owner.ReadFile(path, maxJoining)",
		"func() ([]byte, error) { _ = owner.Alone; return os.ReadFile(path) }()",
		"./cmd/lopen", "TestScripts/trust-foreign",
	},
	{
		"others: a note that they may have written does not count", "cmd/lopen/internal/seen/memory.go",
		"owner.ReadFile(m.path(key), maxNote)",
		"func() ([]byte, error) { _ = owner.Alone; return os.ReadFile(m.path(key)) }()",
		"./cmd/lopen/internal/seen", "TestNotesOfOthers",
	},
	{
		"others: folders above count", "cmd/lopen/internal/owner/private.go",
		"if dir == home || dir == filepath.Dir(dir) {",
		"if true || dir == home {",
		"./cmd/lopen/internal/owner", "TestPrivate",
	},
	{
		"others: a sticky folder of another user's is theirs", "cmd/lopen/internal/owner/private.go",
		"info.Mode()&fs.ModeSticky != 0 && !others(info)",
		"info.Mode()&fs.ModeSticky != 0",
		"./cmd/lopen/internal/owner", "TestPrivate",
	},
	{
		"others: a group with another member is none of the user's own", "cmd/lopen/internal/owner/group_unix.go",
		"mine = mine && (f[2] == uid || f[2] == \"0\")",
		"mine = mine && f[2] != \"\"",
		"./cmd/lopen/internal/owner", "TestOnlyMember",
	},
	{
		"questions: what was typed ahead answers none", "cmd/lopen/question.go",
		"\tdropTyped(a.stdin)\n",
		"",
		"./cmd/lopen", "TestTypeAheadAgreesToNothing",
	},
	{
		"questions: what is typed as one is drawn does not answer it", "cmd/lopen/question.go",
		"\tselect {\n\tcase <-read():\n\tcase <-ctx.Done():\n\t\tfmt.Fprintln(a.stderr)\n\t\treturn \"\", ctx.Err()\n\t}\n\tdropTyped(a.stdin)\n",
		"\tdropTyped(a.stdin)\n\tselect {\n\tcase <-read():\n\tcase <-ctx.Done():\n\t\tfmt.Fprintln(a.stderr)\n\t\treturn \"\", ctx.Err()\n\t}\n",
		"./cmd/lopen", "TestTypedAhead",
	},
	{
		"questions: a line that a reader holds answers none", "cmd/lopen/question.go",
		"\ta.lines = bufio.NewReader(a.stdin) //",
		"\tif a.lines == nil {\n\t\ta.lines = bufio.NewReader(a.stdin)\n\t} //",
		"./cmd/lopen", "TestTypedAhead",
	},
	{
		"questions: an answer is a whole line", "cmd/lopen/question.go",
		`return strings.EqualFold(answer, "y") || strings.EqualFold(answer, "yes")`,
		`return strings.HasPrefix(strings.ToLower(answer), "y")`,
		"./cmd/lopen", "TestAgreed",
	},
}
