package main

// ofLost are of what is not in .lopen/moved any more.
var ofLost = []mutant{
	{
		"lost: what a rewind moved away is told from what was never stored", "lifecycle/checkpoint/moved.go",
		"return m.Hash == f.Hash }) {",
		"return false }) {",
		"./lifecycle/checkpoint", "TestMovedIsSwept",
	},
	{
		"lost: what is gone is told from what is not as it was", "lifecycle/checkpoint/lostmoves.go",
		"gone[i].There = slices",
		"_ = slices",
		"./lifecycle/checkpoint", "TestLostMoves",
	},
	{
		"lost: what is not as it was is named", "lifecycle/checkpoint/lostmoves.go",
		"return err == nil && l.Hash == m.Hash",
		"return err == nil && l.Files >= 0",
		"./lifecycle/checkpoint", "TestLostMoves",
	},
	{
		"lost: what went with its entry is not missed", "lifecycle/checkpoint/lostmoves.go",
		"!ok || entries[at].Removed != \"\" ||",
		"!ok ||",
		"./lifecycle/checkpoint", "TestLostMoves",
	},
	{
		"lost: what came back is not missed", "lifecycle/checkpoint/lostmoves.go",
		"it.kind == kindHidden && it.hash == m.Hash",
		"false",
		"./lifecycle/checkpoint", "TestLostMoves",
	},
	{
		"lost: what may have come back is not missed", "lifecycle/checkpoint/lostmoves.go",
		"rewind = e.Reason == AfterRewind",
		"rewind = false",
		"./lifecycle/checkpoint", "TestLostMoves",
	},
	{
		"lost: a rewind that goes on may bring it back", "lifecycle/checkpoint/lostmoves.go",
		"e.Reason == BeforeRewind && i == len(entries)-1",
		"i > len(entries)",
		"./lifecycle/checkpoint", "TestLostMoves",
	},
	{
		"lost: what could not be moved is not missed", "lifecycle/checkpoint/lostmoves.go",
		"it != nil || ferr != nil {",
		"it != nil && false || ferr != nil {",
		"./lifecycle/checkpoint", "TestLostMoves",
	},
	{
		"lost: what another project moved was never here", "lifecycle/checkpoint/lostmoves.go",
		" || after.Number <= c.brought {",
		" {",
		"./lifecycle/checkpoint", "TestLostMovesOfAnImport",
	},
	{
		"lost: doctor says what", "lifecycle/repair/doctor.go",
		"c.Found += r.lostMoves()",
		"_ = r.lostMoves()",
		"./cmd/lopen", "TestScripts/moved-lost",
	},
	{
		"lost: verify looks for it", "lifecycle/repair.go",
		"r.CheckMoved(chain, s.root())",
		"_ = chain",
		"./cmd/lopen", "TestScripts/moved-lost",
	},
	{
		"lost: an undo that finds it damaged says so", "lifecycle/checkpoint/moved.go",
		"\treturn Lost, nil\n",
		"\treturn Unstored, nil\n",
		"./lifecycle/checkpoint", "TestHiddenChangedMeanwhile",
	},
}
