package main

var ofBackup = []mutant{
	{
		"backup: names that an interrupted one left are synced", "lifecycle/backup/writer.go",
		"\t\t\tif err := f.files.SyncDir(name); err != nil {",
		"\t\t\tif err := error(nil); err != nil {",
		"./lifecycle/backup", "TestPowerCutAnywhere",
	},
	{
		"backup: the snapshot's file is the last step", "lifecycle/backup/writer.go",
		"\tif err == nil {\n\t\terr = w.commit()\n\t}\n\tif err != nil {\n\t\treturn err\n\t}\n\tdata",
		"\tif err == nil {\n\t\tdefer w.commit()\n\t}\n\tif err != nil {\n\t\treturn err\n\t}\n\tdata",
		"./lifecycle/backup", "TestPowerCutAnywhere",
	},
	{
		"backup: what a failed sync left is removed", "lifecycle/backup/writer.go",
		"ok && e.Outcome != writer.NotCommitted {",
		"ok && false && e.Outcome != writer.NotCommitted {",
		"./lifecycle/backup", "TestFaultAnywhere",
	},
	{
		"backup: one at a time", "lifecycle/backup/folder.go",
		"\treturn writer.TryLock(dir, lockFile, writer.Self(what))",
		"\treturn writer.TryLock(dir, writer.TempName(lockFile), writer.Self(what))",
		"./lifecycle/backup", "TestTwoAtOnce",
	},
	{
		"backup: only what is new is stored", "lifecycle/backup/writer.go",
		"\treturn old || ours\n",
		"\treturn old && ours\n",
		"./lifecycle/backup", "TestOnlyWhatIsNewIsAdded",
	},
	{
		"backup: an object is what its hash says", "lifecycle/backup/writer.go",
		"(got != h || n != size)",
		"(false && got != h || n != size)",
		"./lifecycle/backup", "TestWrongContents",
	},
	{
		"backup: a foreign folder is refused", "lifecycle/backup/folder.go",
		"\tif err := empty(dir, o.Encrypt); err != nil {",
		"\tif err := empty(dir, o.Encrypt); false && err != nil {",
		"./lifecycle/backup", "TestForeignFolders",
	},
	{
		"backup: a folder inside of the project is refused", "lifecycle/backup/folder.go",
		"os.SameFile(info, there) {",
		"os.SameFile(info, there) && false {",
		"./lifecycle/backup", "TestForeignFolders",
	},
	{
		"backup prune: removals are durable before the sweep", "lifecycle/backup/prune.go",
		"\tif err := f.files.SyncDir(snapshotsDir); err != nil {",
		"\tif err := error(nil); err != nil {",
		"./lifecycle/backup", "TestPowerCutAnywhere",
	},
	{
		"backup prune: a damaged snapshot keeps all objects", "lifecycle/backup/prune.go",
		"if err = errors.Join(err, s.Err); err == nil {",
		"if err = errors.Join(err, nil); err == nil && s.Err == nil {",
		"./lifecycle/backup", "TestPruneKeepsWhatADamagedSnapshotMayNeed",
	},
	{
		"backup prune: the newest stays", "lifecycle/backup/prune.go",
		"\t\tcase newer == 0:",
		"\t\tcase newer == 0 && false:",
		"./lifecycle/backup", "TestRetention/the_last_stay",
	},
	{
		"backup: an endless list is refused", "lifecycle/backup/source.go",
		"s.left < 0 || len(s.lines) == 0 {",
		"false && s.left < 0 || len(s.lines) == 0 {",
		"./lifecycle/backup", "TestForgedSnapshots/a_list_that_is_longer_than_it_says",
	},
	{
		"backup: more than the folder explains is refused", "lifecycle/backup/source.go",
		"(most-maxExtra)/maxShared > usage {",
		"(most-maxExtra)/maxShared > usage && false {",
		"./lifecycle/backup", "TestForgedSnapshots/more_than_the_folder_explains",
	},
	{
		"backup: an entry is no longer than announced", "lifecycle/backup/source.go",
		"\tif e.Size > s.file.Bytes-s.bytes {",
		"\tif false {",
		"./lifecycle/backup", "TestForgedSnapshots/more_bytes_than_of_all",
	},
	{
		"backup: a key that only encrypts is refused", "lifecycle/backup/cipher.go",
		"err == nil && !k.CanDecrypt() {",
		"err == nil && !k.CanDecrypt() && false {",
		"./lifecycle/backup", "TestKeysThatDoNotFit",
	},
	{
		"backup: files are encrypted", "lifecycle/backup/cipher.go",
		"\t\treturn &sealing{File: f, key: c.key}, nil",
		"\t\treturn f, nil",
		"./lifecycle/backup", "TestEncrypted",
	},
	{
		"backup: a folder that has no backup any more is refused", "cmd/lopen/backup.go",
		"last.Folder == path && !bf.force",
		"last.Folder == path && false",
		"./cmd/lopen", "TestScripts/backup",
	},
	{
		"backup: a key that was replaced is noticed", "cmd/lopen/backup.go",
		"if known && f.KeyID() != last.Key {",
		"if known && f.KeyID() != last.Key && false {",
		"./cmd/lopen", "TestScripts/backup",
	},
	{
		"backup: another project's folder is refused", "cmd/lopen/backup.go",
		"s.Err == nil && s.Project != project {",
		"s.Err == nil && s.Project != project && false {",
		"./cmd/lopen", "TestScripts/backup",
	},
}
