package main

// ofSidecar are of transactions and the git repository that has them.
var ofSidecar = []mutant{
	{
		"side-car: a pack is durable before a branch names its commit", "lifecycle/sidecar/git.go",
		"err = s.repo.SyncDir(to)", "_ = to",
		"./lifecycle/sidecar", "TestOrderOfWrites",
	},
	{
		"side-car: a git of somebody else has a lock", "lifecycle/sidecar/store.go",
		"} else if err == nil {\n\t\t\terr = errors", "} else if false {\n\t\t\terr = errors",
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
		"len(oid) != 40 ||", "len(oid) == 41 &&",
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
		"side-car: the lock of another git is left alone", "lifecycle/sidecar/store.go",
		"time.Since(info.ModTime()) > abandoned", "info != nil",
		"./lifecycle/sidecar", "TestAnOldLock",
	},
	{
		"side-car: what a process that was killed wrote goes", "lifecycle/sidecar/git.go",
		"err := s.repo.RemoveAll(incoming)", "err := error(nil)",
		"./lifecycle/sidecar", "TestGitIsKilled",
	},
	{
		"side-car: what a git that was killed wrote goes", "lifecycle/sidecar/git.go",
		"_ = s.repo.RemoveAll(incoming)", "",
		"./lifecycle/sidecar", "TestGitIsKilled",
	},
	{
		"side-car: the index of a pack comes last", "lifecycle/sidecar/git.go",
		"cmp.Compare(b.Name(), a.Name())", "cmp.Compare(a.Name(), b.Name())",
		"./lifecycle/sidecar", "TestOrderOfWrites",
	},
	{
		"side-car: packs are for this user", "lifecycle/sidecar/git.go",
		"sharedRepository = 0600", "sharedRepository = 0644",
		"./lifecycle/sidecar", "TestOddTrees",
	},
	{
		"side-car: packs are for this user after a gc as well", "lifecycle/sidecar/store.go",
		"\\tsharedRepository = 0600\\n", "",
		"./lifecycle/sidecar", "TestOddTrees",
	},
	{
		"side-car: what git does not check out is not in it", "lifecycle/sidecar/write.go",
		"checkpoint.Reserved(name) || ", "checkpoint.Reserved(name) && ",
		"./lifecycle/sidecar", "TestOddTrees",
	},
	{
		"side-car: what macOS does not see in a name", "lifecycle/sidecar/write.go",
		"ignorable.ReplaceAllString(name, \"\")", "name",
		"./lifecycle/sidecar", "TestOddTrees",
	},
	{
		"side-car: what it lacks is said", "cmd/lopen/run_transaction.go",
		"\tt.warnLeft(t.stderr)\n", "",
		"./cmd/lopen", "TestScripts/transaction",
	},
	{
		"side-car: a git that prints nothing is not believed", "lifecycle/sidecar/log.go",
		"if len(all) == 0 {", "if false {",
		"./cmd/lopen", "TestScripts/transaction-broken",
	},
	{
		"side-car: a git that tells no version is none", "lifecycle/sidecar/git.go",
		"if err == nil && !bytes.HasPrefix(", "if err == nil && false && !bytes.HasPrefix(",
		"./cmd/lopen", "TestScripts/transaction-broken",
	},
	{
		"side-car: Ctrl-C ends a listing", "cmd/lopen/transaction_status.go",
		"v.all.Status(ctx, t, v.chain)", "v.all.Status(context.Background(), t, v.chain)",
		"./cmd/lopen", "TestScripts/transaction-broken",
	},
	{
		"side-car: a damaged content is no commit", "lifecycle/sidecar/git.go",
		"case wrong != nil:\n\t\treturn nil, wrong\n", "case wrong != nil && len(out.Bytes()) > 1<<20:\n\t\treturn nil, wrong\n",
		"./lifecycle/sidecar", "TestDamagedContent",
	},
	{
		"side-car: what was deleted is gone", "lifecycle/sidecar/write.go",
		"\t\t\tst.remove(c.Path)", "",
		"./lifecycle/sidecar", "TestTransaction",
	},
	{
		"side-car: what was moved away is gone", "lifecycle/sidecar/write.go",
		"\t\t\tst.remove(c.From)", "",
		"./lifecycle/sidecar", "TestOddTrees",
	},
	{
		"side-car: a git that hangs is killed", "lifecycle/sidecar/git.go",
		"s.opts.Patience+time", "time.Hour+time",
		"./lifecycle/sidecar", "TestGitHangs",
	},
	{
		"side-car: one writes at a time", "lifecycle/sidecar/store.go",
		"l, err := writer.LockWait(ctx, s.root, lockName,", "l, err := writer.LockWait(ctx, s.root, writer.TempName(lockName),",
		"./lifecycle/sidecar", "TestOneWriter",
	},
	{
		"side-car: a git that hung is not asked again", "lifecycle/sidecar/git.go",
		"\t\ts.hung = err\n", "",
		"./lifecycle/sidecar", "TestGitHangs",
	},
	{
		"transaction: nothing that is missing goes to main", "lifecycle/sidecar/commit.go",
		"\"rev-list\", \"--objects\", \"--quiet\",", "\"rev-list\", \"--quiet\",",
		"./lifecycle/sidecar", "TestNothingMissingIsCommitted",
	},
	{
		"transaction: a merge begins where the branch does", "lifecycle/sidecar/commit.go",
		"draft{parent: base, tree: main.tree", "draft{parent: main, tree: main.tree",
		"./lifecycle/sidecar", "TestMainMovesOn",
	},
	{
		"transaction: main gets nothing of one in progress", "lifecycle/sidecar/transaction.go",
		"if err != nil || others && tip != \"\" {", "if err != nil || others && tip == \"\" {",
		"./lifecycle/sidecar", "TestMainMovesOn",
	},
	{
		"transaction: a contradiction changes nothing", "lifecycle/sidecar/commit.go",
		"\treturn \"\", conflict(", "\terr = nil\n\t\t_ = conflict(",
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
		"return e.Session == t.Session && ", "return ",
		"./lifecycle/sidecar", "TestRolledBackAndUndone",
	},
	{
		"transaction: where nothing was rolled back nothing is undone", "cmd/lopen/run_transaction.go",
		"if t.Before > 0 {", "if true {",
		"./cmd/lopen", "TestScripts/transaction-broken",
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
		"before := t.Rewound(all.chain())", "before := t.Rewound(nil)",
		"./cmd/lopen", "TestScripts/transaction-import",
	},
	{
		"side-car: a full disk is no damage, as git says it", "lifecycle/sidecar/git.go",
		", \"Out of diskspace\"", "",
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
		"\tr.warnOnce(\"transaction: ", "\tpanic(err)\n\tr.warnOnce(\"transaction: ",
		"./cmd/lopen", "TestScripts/transaction-git",
	},
}
