package main

var ofExport = []mutant{
	{
		"export: what is open stays readable", "lifecycle/carry/frozen.go",
		"f, own := h.f, io.Closer(nil)",
		"f, own := writer.File(nil), io.Closer(nil)",
		"./lifecycle", "TestExportWhileItRuns",
	},
	{
		"export: the log ends behind a whole line", "lifecycle/carry/frozen.go",
		"z.held[name].size = size",
		"_ = size",
		"./lifecycle", "TestExportOfEachCondition",
	},
	{
		"export: what an import would refuse is not exported", "lifecycle/carry/part.go",
		"log, err = z.suffices(id)",
		"log, err = journal.Read(z, 0, true)",
		"./lifecycle", "TestExportOfALogWithAHole",
	},
	{
		"export: an edit is not taken for the session", "lifecycle/carry/part.go",
		"ld.Edited(); err != nil {",
		"ld.Edited(); err == folder.ErrNotFound {",
		"./cmd/lopen", "TestScripts/export",
	},
	{
		"export: sweeps are kept out", "lifecycle/carry/chains.go",
		"x.blobs, x.hold, x.contents = blobs, hold, blobs",
		"x.blobs, x.contents = blobs, blobs\n\t_ = hold.Release()\n\thold = nil",
		"./lifecycle", "TestAnExportHoldsNobodyUp",
	},
	{
		"export: a damaged content costs its checkpoints only", "lifecycle/carry/chains.go",
		"x.bad[h] = err",
		"_ = err",
		"./lifecycle", "TestADamagedContentCostsItsCheckpoints",
	},
	{
		"export: all checkpoints that need a damaged content", "lifecycle/carry/chains.go",
		"delete(n.seen, o.hash)",
		"_ = o",
		"./lifecycle", "TestADamagedContentCostsItsCheckpoints",
	},
	{
		"export: it ends with its context", "lifecycle/carry/export.go",
		"if r.ctx.Err() != nil {",
		"if false {",
		"./lifecycle", "TestAnExportEndsWithItsContext",
	},
	{
		"export: the file is durable before it is visible", "lifecycle/carry/target.go",
		"err := f.Sync(); err != nil {",
		"err := error(nil); err != nil {",
		"./lifecycle/carry", "TestTargetEveryCut",
	},
	{
		"export: its name is durable", "lifecycle/carry/target.go",
		"t.failed(t.dir.SyncDir(\".\"), writer.NotDurable)",
		"nil",
		"./lifecycle/carry", "TestTargetEveryCut",
	},
	{
		"export: no file is overwritten", "lifecycle/carry/target.go",
		"\tcase t.force:\n",
		"\tcase true:\n",
		"./lifecycle/carry", "TestTargetTakesNothingsPlace",
	},
	{
		"export: nothing is left of what failed", "lifecycle/carry/target.go",
		"\tt.f = nil\n\t_ = t.dir.Remove(t.temp)\n",
		"\tt.f = nil\n",
		"./lifecycle/carry", "TestTargetEveryFault",
	},
}
