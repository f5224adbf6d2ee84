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
		"ignore files: those of the folders above count", "cache/files/ignore.go",
		"int64(maxIgnore-size)",
		"int64(maxIgnore)",
		"./cache/files", "TestIgnoreFilesAreBounded",
	},
	{
		"unpin: fsync of the folder", "lifecycle/checkpoint/store.go",
		"\tif err := s.dir.SyncDir(id.String()); err != nil {\n\t\treturn writer.NewError(\"unpin checkpoint\", s.path(name), writer.NotDurable, err)\n\t}\n",
		"",
		"./lifecycle", "TestPinsAreDurable",
	},
	{
		"sweep: nothing goes while a manifest is unread", "lifecycle/checkpoints.go",
		"\t\t\tif err := checkpoint.Roots(s.root(), name, needed); err != nil {\n\t\t\t\treturn nil, err\n\t\t\t}",
		"\t\t\t_ = checkpoint.Roots(s.root(), name, needed)",
		"./lifecycle", "TestUnreadManifestKeepsAllContents",
	},
	{
		"rewind: looks again before it replaces", "lifecycle/checkpoint/apply.go",
		"\t\tst, err := a.state(c)\n\t\tif err != nil || st != pending {\n\t\t\treturn st, err\n\t\t}\n\t\tif _, err := a.chain.to",
		"\t\tif _, err := a.chain.to",
		"./lifecycle/checkpoint", "TestChangedWhileItIsApplied",
	},
	{
		"rewind: looks again before it removes", "lifecycle/checkpoint/apply.go",
		"\tif c.New == nil {\n\t\tif st, err := a.state(c); err != nil || st != pending {\n\t\t\treturn st, err\n\t\t}\n\t}\n",
		"",
		"./lifecycle/checkpoint", "TestChangedWhileItIsApplied",
	},
	{
		"rewind: modes of files are synced", "lifecycle/checkpoint/apply.go",
		"info.Mode()&specialBits); err == nil {\n\t\t\terr = f.Sync()\n\t\t}\n",
		"info.Mode()&specialBits); err == nil {\n\t\t\terr = error(nil)\n\t\t}\n",
		"./lifecycle/checkpoint", "TestPowerCutInApply",
	},
	{
		"rewind: permission bits only", "lifecycle/checkpoint/stage.go",
		"f.Chmod(c.New.Mode.Perm())",
		"f.Chmod(c.New.Mode)",
		"./lifecycle/checkpoint", "TestManifestWithSpecialBitsIsRefused",
	},
	{
		"rewind: special bits of a folder stay", "lifecycle/checkpoint/folders.go",
		"f.Chmod(mode.Perm() | info.Mode()&specialBits)",
		"f.Chmod(mode.Perm())",
		"./lifecycle/checkpoint", "TestRewindLeavesSpecialBits",
	},
	{
		"rewind: no mode through a hard link", "lifecycle/checkpoint/apply.go",
		"a.linked[c] = err == nil && writer.Shared(info)",
		"a.linked[c] = err == nil && writer.Shared(info) && false",
		"./lifecycle/checkpoint", "TestModeOfAHardLink",
	},
	{
		"checkpoint: its name is synced", "lifecycle/checkpoint/create.go",
		"\tif err := s.dir.SyncDir(\".\"); err != nil {",
		"\tif err := error(nil); err != nil {",
		"./lifecycle/checkpoint", "TestPowerCutInCreate",
	},
}
