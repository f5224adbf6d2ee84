package main

// ofContract are of a store that saves nothing, of partial checkpoints, and of what was quarantined.
var ofContract = []mutant{
	{
		"unsaved: its messages are empty", "lifecycle/conversation.go",
		"if !s.saves() && last == \"\" {",
		"if false {",
		"./lifecycle", "TestUnsavedIsEmpty",
	},
	{
		"unsaved: so is its log", "lifecycle/store.go",
		"if !s.saves() {\n\t\treturn none, nil",
		"if false {\n\t\treturn none, nil",
		"./lifecycle", "TestUnsavedIsEmpty",
	},
	{
		"messages: the given one is the last", "lifecycle/conversation.go",
		"folder.ReadAppended(ld.Dir, at, events)",
		"folder.ReadAppended(ld.Dir, ld.At, events)",
		"./lifecycle", "TestContractInFiles/messages",
	},
}
