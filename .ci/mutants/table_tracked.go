package main

// ofTracked are mutants of what git tracks although a rule ignores it.
var ofTracked = []mutant{
	{
		"tracked: what git's index has is not ignored", "cache/files/ignore.go",
		"return r, !isTracked || r.ownIgnored(path, name, isDir)",
		"return r, isTracked || true",
		"./cache/files", "TestTrackedIsTaken",
	},
	{
		"tracked: .lopenignore wins", "cache/files/ignore.go",
		"!isTracked || r.ownIgnored(path, name, isDir)",
		"!isTracked",
		"./cache/files", "TestTrackedIsTaken",
	},
	{
		"tracked: the rest of a folder that is entered stays ignored", "cache/files/ignore.go",
		"\tr.only = true\n",
		"",
		"./cache/files", "TestTrackedIsTaken",
	},
	{
		"tracked: names that the rules in force have are taken as well", "cache/files/tracked.go",
		"all = append(all, opts.InForce.names)",
		"_ = all",
		"./cache/files", "TestTrackedIsTaken",
	},
	{
		"tracked: if git cannot be asked, the last known names hold", "lifecycle/checkpoint/look.go",
		"knownTracked(s.opts.Outside(), was)",
		"s.opts.Outside()",
		"./lifecycle/checkpoint", "TestTrackedByAPerson",
	},
	{
		"tracked: a task that takes a name off the index hides nothing", "lifecycle/checkpoint/tracked.go",
		"if !task {",
		"if true {",
		"./lifecycle/checkpoint", "TestTracked",
	},
	{
		"tracked: a person who takes a name off the index hides it", "lifecycle/checkpoint/tracked.go",
		"&& !gone[string(name)]",
		"&& gone != nil",
		"./lifecycle/checkpoint", "TestTrackedByAPerson",
	},
	{
		"tracked: a young index is asked again", "cmd/lopen/internal/git/tracked.go",
		"now.Sub(info.ModTime()) < racy",
		"false && now.IsZero()",
		"./cmd/lopen/internal/git", "TestTrackedIsAskedOnce",
	},
	{
		"tracked: git is asked once for one index", "cmd/lopen/internal/git/tracked.go",
		"!sameIndex(x.info, info)",
		"sameIndex(x.info, info)",
		"./cmd/lopen/internal/git", "TestTrackedIsAskedOnce",
	},
	{
		"tracked: a run without checkpoints sees it", "lifecycle/changes.go",
		"Outside: s.store.outside(w), ",
		"",
		"./cmd/lopen", "TestScripts/tracked",
	},
	{
		"tracked: what a task added with git add -f is committed", "cmd/lopen/internal/repo/commit.go",
		"out, err = p.Git(ctx, Command{Args: check, Input: out})",
		"_ = check",
		"./cmd/lopen", "TestScripts/tracked",
	},
	{
		"tracked: a submodule in another state is named", "lifecycle/checkpoint/diff.go",
		" && !moved(a, b) }",
		" }",
		"./lifecycle/checkpoint", "TestStories",
	},
	{
		"tracked: a look without checkpoints names a submodule", "cache/files/compare.go",
		"changes = append(changes, stated(old, next)...)",
		"_ = stated",
		"./cache/files", "TestRepositoryInAnotherState",
	},
	{
		"tracked: a commit takes no submodule away", "cmd/lopen/internal/repo/commit.go",
		"folders, err = p.notSubmodules(ctx, folders)",
		"_ = p.notSubmodules",
		"./cmd/lopen/internal/repo", "TestSubmoduleIsNotCommitted",
	},
	{
		"tracked: the report says what a set back left", "lifecycle/rewind/run.go",
		"k.Why == checkpoint.Mounted || r.Task != \"\" {",
		"k.Why == checkpoint.Mounted {",
		"./cmd/lopen", "TestScripts/tracked",
	},
	{
		"rules: no checkpoint is said to have what is hidden", "lifecycle/checkpoint/planner.go",
		"k.At = 0 // no checkpoint",
		"// no checkpoint",
		"./cmd/lopen", "TestScripts/rewind-hidden",
	},
	{
		"tracked: the rules of the folders above hold", "cmd/lopen/internal/git/excludes.go",
		"\tt.above(r, prefix, add)\n",
		"",
		"./cmd/lopen/internal/git", "TestExcludes",
	},
	{
		"tracked: of the folders above each has its own part of the path", "cmd/lopen/internal/git/excludes.go",
		"add(\"above/\"+name, rest, data, err)",
		"add(\"above/\"+name, prefix, data, err)",
		"./cmd/lopen/internal/git", "TestExcludes",
	},
	{
		"tracked: the case of letters is that of git", "cmd/lopen/internal/git/excludes.go",
		"if r.foldsCase() {",
		"if false {",
		"./cmd/lopen/internal/git", "TestFoldsCase",
	},
	{
		"tracked: patterns match without the case", "cache/files/ignore.go",
		"folded(string(f.Data), sub.fold)",
		"folded(string(f.Data), false)",
		"./cache/files", "TestIgnoredWithoutCase",
	},
	{
		"tracked: a set back that keeps all says so", "cmd/lopen/internal/loop/setback.go",
		"case len(fixed) > 0:",
		"case false:",
		"./cmd/lopen", "TestScripts/tracked",
	},
	{
		"rules: --force takes no folder that has a person's files", "lifecycle/checkpoint/planner.go",
		"p.opts.Force && !whole && !(deletes",
		"p.opts.Force && !(deletes",
		"./cmd/lopen", "TestScripts/rewind-hidden",
	},
	{
		"tracked: a git that hangs is asked once", "cmd/lopen/internal/git/tracked.go",
		"if x.hangs {",
		"if false {",
		"./cmd/lopen/internal/git", "TestTrackedOfAGitThatHangs",
	},
}
