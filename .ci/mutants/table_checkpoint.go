package main

var ofCheckpoint = []mutant{
	{
		"delete: contents that others need stay", "lifecycle/checkpoints.go",
		"for _, name := range []string{sessionsDir, trashDir, corruptedDir} {",
		"for _, name := range []string{} {",
		"./lifecycle", "TestForkHasTheCheckpoints",
	},
	{
		"rewind: folders are tried before anything is seen", "lifecycle/checkpoint/apply.go",
		"a.stage(ctx) }, a.tryFolders,",
		"a.stage(ctx) },",
		"./lifecycle/checkpoint", "TestApplyDenied",
	},
	{
		"fork: the folder of a checkpoint is synced", "lifecycle/checkpoint/share.go",
		"root.SyncDir(dir); err != nil",
		"error(nil); err != nil",
		"./lifecycle", "TestPowerCutWhileCheckpointsAreShared",
	},
	{
		"release: what was last seen is read again", "lifecycle/checkpoints.go",
		"err == nil && (k.seen == nil || old.At.After(k.seen.At)) {",
		"err == nil && false && old != nil {",
		"./lifecycle", "TestLookWritesOnce",
	},
	{
		"assess: nothing is stored when the scope changed meanwhile", "cache/assess/cache.go",
		"\tcase !same:\n",
		"\tcase !same && lookErr != nil:\n",
		"./cache/assess", "TestWhatIsNotStored",
	},
	{
		"unpin: fsync of the folder", "lifecycle/checkpoint/store.go",
		"\tif err := s.dir.SyncDir(id.String()); err != nil {\n\t\treturn writer.NewError(\"unpin checkpoint\", s.path(name), writer.NotDurable, err)\n\t}\n",
		"",
		"./lifecycle", "TestPinsAreDurable",
	},
}
