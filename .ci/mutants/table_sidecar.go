package main

// ofSidecar are of transactions and the git repository that has them.
var ofSidecar = []mutant{
	{
		"side-car: a pack is durable before a branch names its commit", "lifecycle/sidecar/store.go",
		"s.repo.SyncDir(\"objects/pack\"); err != nil", "error(nil); err != nil",
		"./lifecycle/sidecar", "TestOrderOfWrites",
	},
	{
		"side-car: a git of somebody else has a lock", "lifecycle/sidecar/store.go",
		"s.repo.Lstat(name); err == nil {\n\t\t\treturn &writer.Error{Op: \"write", "s.repo.Lstat(name); err == nil && false {\n\t\t\treturn &writer.Error{Op: \"write",
		"./lifecycle/sidecar", "TestFaultsOfTheSidecar",
	},
	{
		"side-car: nothing in objects leads elsewhere", "lifecycle/sidecar/store.go",
		"if !e.IsDir() {", "if false {",
		"./lifecycle/sidecar", "TestFaultsOfTheSidecar",
	},
	{
		"side-car: no objects from elsewhere", "lifecycle/sidecar/store.go",
		"repo.Lstat(\"objects/info/alternates\"); err == nil", "repo.Lstat(\"objects/info/alternates\"); err == nil && false",
		"./lifecycle/sidecar", "TestFaultsOfTheSidecar",
	},
	{
		"side-car: a branch names a commit", "lifecycle/sidecar/store.go",
		"len(text) != 40 ||", "len(text) == 41 &&",
		"./lifecycle/sidecar", "TestFaultsOfTheSidecar",
	},
	{
		"side-car: its configuration is not read", "lifecycle/sidecar/git.go",
		"\"--git-dir=\" + dir}", "\"--git-dir=\" + s.repo.Name()}",
		"./lifecycle/sidecar", "TestNothingOfTheSidecarRuns",
	},
	{
		"side-car: no variable of git reaches it", "lifecycle/sidecar/git.go",
		"return strings.HasPrefix(strings.ToUpper(kv), \"GIT_\")", "return strings.HasPrefix(strings.ToUpper(kv), \"GIT_NO\")",
		"./cmd/lopen", "TestScripts/transaction-git",
	},
	{
		"side-car: a part of a stream is no commit", "lifecycle/sidecar/write.go",
		"\"--quiet\", \"--done\",", "\"--quiet\",",
		"./lifecycle/sidecar", "TestGitIsKilled",
	},
	{
		"side-car: what another git writes is left alone", "lifecycle/sidecar/write.go",
		"time.Since(info.ModTime()) > abandoned", "info != nil",
		"./lifecycle/sidecar", "TestGitIsKilled",
	},
	{
		"side-car: a damaged content is no commit", "lifecycle/sidecar/git.go",
		"case wrong != nil:\n\t\treturn nil, wrong\n", "case wrong != nil && len(out.Bytes()) > 1<<20:\n\t\treturn nil, wrong\n",
		"./lifecycle/sidecar", "TestDamagedContent",
	},
	{
		"side-car: what was deleted is gone", "lifecycle/sidecar/write.go",
		"if c.Kind == files.Deleted && ", "if false && ",
		"./lifecycle/sidecar", "TestTransaction",
	},
	{
		"side-car: what was moved away is gone", "lifecycle/sidecar/write.go",
		"} else if c.Kind == files.Moved && ", "} else if false && ",
		"./lifecycle/sidecar", "TestOddTrees",
	},
	{
		"side-car: a git that hangs is killed", "lifecycle/sidecar/git.go",
		"s.patience+time", "time.Hour+time",
		"./lifecycle/sidecar", "TestGitHangs",
	},
	{
		"side-car: one writes at a time", "lifecycle/sidecar/store.go",
		"l, err := writer.LockWait(ctx, s.root, lockName,", "l, err := writer.LockWait(ctx, s.root, writer.TempName(lockName),",
		"./lifecycle/sidecar", "TestOneWriter",
	},
	{
		"side-car: a git that hung is not asked again", "cmd/lopen/internal/loop/transaction.go",
		"\t\tr.cfg.Transaction = nil\n", "",
		"./cmd/lopen/internal/loop", "TestTransactionThatFails",
	},
	{
		"transaction: nothing that is missing goes to main", "lifecycle/sidecar/commit.go",
		"\"rev-list\", \"--objects\", \"--quiet\",", "\"rev-list\", \"--quiet\",",
		"./lifecycle/sidecar", "TestNothingMissingIsCommitted",
	},
	{
		"transaction: a merge begins where the branch does", "lifecycle/sidecar/commit.go",
		"\"commit-tree\", main.tree, \"-p\", base.ID)", "\"commit-tree\", main.tree, \"-p\", main.ID)",
		"./lifecycle/sidecar", "TestMainMovesOn",
	},
	{
		"transaction: main gets nothing of one in progress", "lifecycle/sidecar/transaction.go",
		"if err != nil || others && tip != \"\" {", "if err != nil || others && tip == \"\" {",
		"./lifecycle/sidecar", "TestMainMovesOn",
	},
	{
		"transaction: a contradiction changes nothing", "lifecycle/sidecar/commit.go",
		"errors.As(err, &g) && g.exit() == 1:", "errors.As(err, &g) && g.exit() == 7:\n\t\terr = nil",
		"./lifecycle/sidecar", "TestConflict",
	},
	{
		"transaction: main decides what is committed", "lifecycle/sidecar/log.go",
		"case merged[t.ID] != \"\":", "case false:",
		"./lifecycle/sidecar", "TestStatusIsOfGit",
	},
	{
		"transaction: what main has is not committed again", "lifecycle/sidecar/commit.go",
		"if id := merged[t.ID]; id != \"\" {", "if id := merged[t.ID]; id == \"x\" {",
		"./lifecycle/sidecar", "TestStatusIsOfGit",
	},
	{
		"transaction: an undo of the rollback counts", "lifecycle/sidecar/manifest.go",
		"is, undo = !is, e.Parent", "undo = e.Parent",
		"./lifecycle/sidecar", "TestRolledBackAndUndone",
	},
	{
		"transaction: another session's rewind is no undo", "lifecycle/sidecar/manifest.go",
		" && e.Session == t.Session", "",
		"./lifecycle/sidecar", "TestRolledBackAndUndone",
	},
	{
		"transaction: a rolled back session is not resumed", "cmd/lopen/run_transaction.go",
		"\t\treturn rolledBack(at)\n", "",
		"./cmd/lopen", "TestScripts/transaction",
	},
	{
		"transaction: that of another session is not taken for a session's", "cmd/lopen/transaction.go",
		"err == nil && at.Session != id {", "err == nil && false {",
		"./cmd/lopen", "TestScripts/transaction-import",
	},
	{
		"transaction: undo of an earlier rewind to the begin counts", "cmd/lopen/transaction_rollback.go",
		"before := t.Undone(all.chain())", "before := t.Undone(nil)",
		"./cmd/lopen", "TestScripts/transaction-import",
	},
	{
		"side-car: a full disk is no damage, as git says it", "lifecycle/sidecar/git.go",
		" || strings.Contains(g.text, \"Out of diskspace\")", "",
		"./lifecycle/sidecar", "TestAFullDiskIsNoDamage",
	},
	{
		"transaction: its begin stays", "cmd/lopen/run_transaction.go",
		"t.sess.PinCheckpoint(ctx, at.ID, true)", "t.sess.PinCheckpoint(ctx, at.ID, false)",
		"./cmd/lopen", "TestScripts/transaction-git",
	},
	{
		"transaction: a fork is in none", "lifecycle/session/derive.go",
		"utc(now), utc(now), &l, \"\"", "utc(now), utc(now), &l, h.TransactionID",
		"./cmd/lopen", "TestScripts/transaction",
	},
	{
		"transaction: a side-car that fails ends no run", "cmd/lopen/internal/loop/transaction.go",
		"\tif err == nil || ctx.Err() != nil {\n\t\treturn\n\t}\n\tr.log", "\tif err == nil || ctx.Err() != nil {\n\t\treturn\n\t}\n\tpanic(err)\n\tr.log",
		"./cmd/lopen", "TestScripts/transaction-git",
	},
}
