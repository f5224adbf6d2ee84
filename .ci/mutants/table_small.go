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
	{
		"blob: one of another size is not read", "writer/blob/read.go",
		"if err == nil && want != anySize && size != want {",
		"if err == nil && want != anySize && size < want {",
		"./lifecycle/checkpoint", "TestABlobThatGrewIsNotRead",
	},
	{
		"blob: what grows while it is read ends", "writer/blob/read.go",
		"case r.left < 0, r.left == 0 && err == nil:",
		"case r.left < -1<<22:",
		"./writer/blob", "TestReadOfABlobThatGrows",
	},
	{
		"blob: a Put ends while it verifies", "writer/blob/batch.go",
		"if b.ended != nil && b.ended() != nil {",
		"if b.ended == nil && b.ended() != nil {",
		"./writer/blob", "TestPutEndsWhileItVerifies",
	},
	{
		"rewind: the end of the command ends the hashing of a large file", "lifecycle/checkpoint/state.go",
		"inContext{ctx, io.LimitReader(file, f.Size+1)}",
		"inContext{context.WithoutCancel(ctx), io.LimitReader(file, f.Size+1)}",
		"./lifecycle/checkpoint", "TestHashingOfALargeFileEnds",
	},
	{
		"export: a readable file with holes is not read", "lifecycle/carry/part.go",
		"\tp.files = x.onlyText(p.dir, p.at, p.files)\n",
		"",
		"./lifecycle", "TestExportLeavesASparseFileOut",
	},
	{
		"export: an object of another size is not read", "lifecycle/carry/chains.go",
		"if err == nil && size >= 0 && bytes != size {",
		"if false {",
		"./lifecycle", "TestExportLeavesASparseFileOut",
	},
	{
		"verify: what is larger than any content is not read", "lifecycle/repair/checkpoints.go",
		"size > files.DefaultMaxBytes {",
		"size < 0 {",
		"./lifecycle", "TestVerifyDataIsBounded",
	},
	{
		"export: a session that goes while its files are read is no damage", "lifecycle/carry/export.go",
		"if len(x.bad) == bad && !gone {",
		"if len(x.bad) == bad && (!gone || gone) {",
		"./lifecycle", "TestExportOfASessionThatIsDeletedMeanwhile",
	},
	{
		"export: a session that goes before its files are read is no damage", "lifecycle/carry/export.go",
		"if err != nil && x.gone(id) {",
		"if false {",
		"./lifecycle", "TestExportOfASessionThatIsDeletedMeanwhile",
	},
	{
		"checkpoint: the first one needs no session", "cmd/lopen/checkpoint_create.go",
		"if alone {\n",
		"if false {\n",
		"./cmd/lopen", "TestScripts/checkpoint-first",
	},
	{
		"import: a checkpoint without a session is one", "lifecycle/carry/check.go",
		"err != nil && e.Session != \"\" {",
		"err != nil {",
		"./cmd/lopen", "TestScripts/checkpoint-first",
	},
	{
		"rewind: --contested leaves what a deleted session alone may have changed", "lifecycle/checkpoint/planner.go",
		"case mine > 0 && p.perhapsOthers(c):",
		"case false:",
		"./lifecycle/checkpoint", "TestContestedLeavesWhatADeletedSessionChanged",
	},
	{
		"append: the length is checked before the redaction", "lifecycle/conversation.go",
		"\tif err == nil {\n\t\terr = s.fits(len(body)) // ",
		"\tif err == nil {\n\t\terr = nil // ",
		"./lifecycle", "TestAppendChecksTheLengthFirst",
	},
	{
		"append: the length of an event is checked before the redaction", "lifecycle/conversation.go",
		"if err = s.fits(len(body)); err != nil {",
		"if err != nil {",
		"./lifecycle", "TestAppendChecksTheLengthFirst",
	},
	{
		"doctor: contents are read", "lifecycle/repair/sample.go",
		"\t\t\terr = blobs.VerifySized(ctx, h, size)\n",
		"",
		"./lifecycle", "TestDoctorSamplesContents",
	},
	{
		"verify: what was not read is said", "cmd/lopen/session_verify.go",
		"return r.Unread > 0 }",
		"return r.Unread < 0 }",
		"./cmd/lopen", "TestScripts/checkpoint-first",
	},
}
