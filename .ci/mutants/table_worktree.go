package main

// ofWorktrees are the mechanisms by which sessions work in linked work trees.
var ofWorktrees = []mutant{
	{
		"work trees: a folder that is none is refused", "lifecycle/checkpoints.go",
		"if err = errors.ErrUnsupported; s.opts.Worktree != nil {",
		"if err = nil; false {",
		"./lifecycle", "TestNoFolderButAWorkTree",
	},
	{
		"work trees: both sides name each other", "cmd/lopen/project.go",
		"if !ok || err != nil || !git.Same(filepath.Join(main, below), home) {",
		"_, _, _ = main, below, ok\n\t\tif err != nil {",
		"./cmd/lopen", "TestScripts/worktree",
	},
	{
		"work trees: each has a chain", "lifecycle/session/worktree.go",
		"if w == nil {\n\t\treturn main\n",
		"if true {\n\t\treturn main\n",
		"./lifecycle", "TestEachWorkTreeHasAChain",
	},
	{
		"work trees: a sweep marks all chains", "lifecycle/checkpoint/roots.go",
		"if !strings.HasSuffix(f.Name(), chainSuffix) {",
		"if f.Name() != MainTree+chainSuffix || strings.HasSuffix(f.Name(), \"?\") {",
		"./lifecycle", "TestASweepSparesOtherWorkTrees",
	},
	{
		"work trees: a deletion forgets in all chains", "lifecycle/trash.go",
		"if !chain.Imported() {",
		"if chain == cps.Store {",
		"./lifecycle", "TestASweepSparesOtherWorkTrees",
	},
	{
		"work trees: checkpoint_bytes counts all chains", "lifecycle/checkpoint/thin.go",
		"return append([]*Store{s}, slices.DeleteFunc(others, (*Store).Imported)...), nil",
		"return append([]*Store{s}, others[:0]...), nil",
		"./lifecycle", "TestCheckpointsOfAllWorkTreesAreBounded",
	},
	{
		"work trees: an import leaves it out", "lifecycle/carry/place.go",
		"Elsewhere: true,",
		"",
		"./lifecycle", "TestImportLeavesTheWorkTree",
	},
	{
		"work trees: a session is not gone on with in another one", "cmd/lopen/run_worktree.go",
		`if w != nil && w.Branch != "" || !r.worktree && git.Same(folder, r.tree) {`,
		"if true || git.Same(folder, r.tree) {",
		"./cmd/lopen", "TestScripts/worktree",
	},
	{
		"work trees: one of somebody's is not made anew", "cmd/lopen/internal/repo/worktree.go",
		"if !left.Making {",
		"if false {",
		"./cmd/lopen/internal/repo", "TestMakeWorktreeAfterACut",
	},
	{
		"work trees: what git was about to write is written", "cmd/lopen/internal/repo/worktree.go",
		"err != nil && r.complete()",
		"err != nil && false",
		"./cmd/lopen/internal/repo", "TestMakeWorktreeAfterACut",
	},
	{
		"work trees: one is made at a time", "cmd/lopen/internal/repo/worktree.go",
		"held, err := scratch.Lock(dir)\n",
		"held, err := true, error(nil)\n\t\t_ = scratch.Lock\n",
		"./cmd/lopen/internal/repo", "TestMakeWorktreeWaits",
	},
	{
		"work trees: a lock that is kept is not waited for", "cmd/lopen/internal/repo/worktree.go",
		"time.Since(begun) > makingPatience",
		"time.Since(begun) > 1000*makingPatience",
		"./cmd/lopen/internal/repo", "TestMakeWorktreeWaits",
	},
	{
		"work trees: the lock is held until git has ended", "cmd/lopen/internal/repo/worktree.go",
		"inherit: lock",
		"inherit: nil",
		"./cmd/lopen/internal/repo", "TestMakeWorktreeWaits",
	},
	{
		"work trees: a half-made one is made anew", "cmd/lopen/run_worktree.go",
		"if there != nil && !there.Making && worktreeOf(home, folder) == nil {",
		"if there != nil && worktreeOf(home, folder) == nil {",
		"./cmd/lopen", "TestScripts/worktree-killed",
	},
	{
		"work trees: what is not merged stays", "cmd/lopen/worktree_remove.go",
		"if row.Ahead == 0 {",
		"if true {",
		"./cmd/lopen", "TestScripts/worktree-own",
	},
	{
		"work trees: that of a session that goes on stays", "cmd/lopen/worktree_remove.go",
		"if r := goesOn(rows, row); r != nil {",
		"if r := goesOn(nil, row); r != nil {",
		"./cmd/lopen", "TestScripts/worktree-own",
	},
	{
		"work trees: hooks of a repository run where somebody approved it", "cmd/lopen/run_worktree.go",
		"if err == nil && found == nil {",
		"if false && found == nil {",
		"./cmd/lopen", "TestScripts/worktree-gone",
	},
}
