package main

// ofMemory are mutants of what spares the reading of files, and of who is believed about it.
var ofMemory = []mutant{
	{
		"memory: the hash decides", "cache/files/memory.go",
		"known = m != nil && m.Noted(key, sha256.Sum256(data)); !known",
		"known = m != nil; !known",
		"./lifecycle", "TestForgedSnapshotIsNotBelieved",
	},
	{
		"memory: the hash in the user's state decides", "cmd/lopen/internal/seen/memory.go",
		"n == m.of(key, sum)",
		"n.Folder == m.project && n.Snapshot == key",
		"./cmd/lopen", "TestForgedMemory",
	},
	{
		"memory: the command has one", "cmd/lopen/store.go",
		" Memory: a.memory(project),",
		"",
		"./cmd/lopen", "TestRunOfAnUnchangedTree/no_checkpoints",
	},
	{
		"memory: without a Memory nothing is believed", "cache/files/memory.go",
		"known = m != nil && m.Noted(key, sha256.Sum256(data)); !known",
		"known = m == nil || m.Noted(key, sha256.Sum256(data)); !known",
		"./cache/files", "TestRecall",
	},
	{
		"memory: an unknown snapshot spares no reading", "cache/files/memory.go",
		"s.At, s.Stored = time.Time{}, blob.Hash{}",
		"_, _ = time.Time{}, blob.Hash{}",
		"./lifecycle", "TestForgedLookIsNotBelieved",
	},
	{
		"memory: a store that is closed remembers", "lifecycle/session.go",
		"group.Go(func() { errs[i] = sess.leave(ctx) })",
		"group.Go(func() { _, _ = i, sess })",
		"./lifecycle", "TestSecondRunReadsWhatChanged/the_store_is_closed",
	},
	{
		"memory: what is released is remembered", "lifecycle/checkpoints.go",
		"if err := c.Remember(); err != nil {",
		"if err := error(nil); err != nil {",
		"./lifecycle", "TestSecondRunReadsWhatChanged/there_is_no_session",
	},
	{
		"memory: a look notes what it saw", "lifecycle/changes.go",
		"files.Remember(s.store.project, s.seenPath(), now, s.store.opts.Memory,",
		"files.Remember(s.store.project, s.seenPath(), now, nil,",
		"./lifecycle", "TestSecondRunReadsWhatChanged/no_checkpoints_are_made",
	},
	{
		"memory: young files are remembered as settled", "lifecycle/checkpoint/store.go",
		"s.kept.Settled() && ",
		"",
		"./lifecycle", "TestSecondRunReadsWhatChanged/the_store_is_closed",
	},
	{
		"memory: one is noted while no other process remembers", "lifecycle/checkpoint/store.go",
		"err := s.locked(context.Background(), func(*chain) error {\n\t\treturn files.Remember(s.dir, s.trackerFile(), s.base, s.opts.Memory, trackerKey(s.name))\n\t})",
		"err := files.Remember(s.dir, s.trackerFile(), s.base, s.opts.Memory, trackerKey(s.name))",
		"./lifecycle/checkpoint", "TestRememberExcludesOthers",
	},
	{
		"memory: a close that is stuck ends with its context", "lifecycle/checkpoints.go",
		"case <-ctx.Done():\n\t\treturn nil // what would be remembered is derived",
		"case <-context.Background().Done():\n\t\treturn nil // what would be remembered is derived",
		"./lifecycle", "TestCloseDoesNotWaitForMemory",
	},
	{
		"memory: a forged assessment is none", "cache/assess/cache.go",
		"f == nil || c.opts.Memory != nil && !c.opts.Memory.Noted(memoryKey(key), hashOf(f))",
		"f == nil",
		"./cache/assess", "TestForgedEntry",
	},
	{
		"memory: another task's check reads what changed", "cache/assess/cache.go",
		"return entry{scope: f[2], result: Result{At: noResult}}",
		"return entry{result: Result{At: noResult}}",
		"./cmd/lopen", "TestRunOfAnUnchangedTree/with_a_check",
	},
	{
		"memory: a note of another snapshot is none", "cmd/lopen/internal/seen/memory.go",
		"n == m.of(key, sum)",
		"n.SHA256 == m.of(key, sum).SHA256",
		"./cmd/lopen/internal/seen", "TestDamagedNotes",
	},
	{
		"memory: a note is no change where the user's home is the project", "cmd/lopen/internal/seen/memory.go",
		"folder = \"seen/\" + lifecycle.Dir",
		"folder = \"seen/notes\" + lifecycle.Dir",
		"./cmd/lopen", "TestScripts/checkpoint",
	},
	{
		"memory: notes do not pile up", "cmd/lopen/internal/seen/memory.go",
		"\t\tm.clear()\n",
		"",
		"./cmd/lopen/internal/seen", "TestOldNotesGo",
	},
}
