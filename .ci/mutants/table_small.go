package main

var ofSmall = []mutant{
	{
		"move: a folder that cannot be renamed is copied", "writer/move.go",
		"if !errors.Is(err, syscall.EXDEV) {",
		"if true {",
		"./lifecycle", "TestFoldersOfALowerLayer",
	},
	{
		"move: the old folder counts as moved before a part of it is removed", "writer/move.go",
		"if dir.Rename(noteOf(movingPrefix, from), note) == nil && dir.SyncDir(path.Dir(from)) == nil {",
		"if note != \"\" {",
		"./writer/crashfs", "TestMoveFolderByCopyEveryCut",
	},
	{
		"move: the copy has its name durably before the old one goes", "writer/move.go",
		"\tif err := dir.SyncDir(path.Dir(to)); err != nil {\n\t\treturn err // ",
		"\tif err := error(nil); err != nil {\n\t\treturn err // ",
		"./writer/crashfs", "TestMoveFolderByCopyEveryCut",
	},
	{
		"move: what is no copy of the old folder takes it not away", "writer/move.go",
		"has(dir, string(to), from) && ",
		"",
		"./writer/crashfs", "TestMoveFolderByCopyFails",
	},
}
