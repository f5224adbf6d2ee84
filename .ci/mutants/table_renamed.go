package main

// ofRenamed are mutants of what somebody renames while a rewind is applied.
var ofRenamed = []mutant{
	{
		"renamed: what changed before all was revealed is looked at again", "lifecycle/checkpoint/look.go",
		"if err != nil || last || len(all.Unstable) == len(snapshot.Unstable) {",
		"if true {",
		"./lifecycle/checkpoint", "TestMovedBetweenSeenAndHidden",
	},
	{
		"renamed: what is seen is compared once more when the hidden was taken", "cache/files/hidden.go",
		"for _, l := range moved {",
		"for _, l := range moved[:0] {",
		"./lifecycle/checkpoint", "TestMovedBetweenSeenAndHidden",
	},
	{
		"renamed: what was moved on while it was to be replaced is not made elsewhere either", "lifecycle/checkpoint/pairs.go",
		"if !a.stays[from.Path] {\n\t\treturn pending, nil",
		"if true {\n\t\treturn pending, nil",
		"./lifecycle/checkpoint", "TestRenamedInTheMiddle",
	},
	{
		"renamed: what was moved on is not made where it was", "lifecycle/checkpoint/pairs.go",
		"if !a.over[to] && a.over[from] {",
		"if false {",
		"./lifecycle/checkpoint", "TestRenamedBeforeApply",
	},
	{
		"renamed: a file that is to be replaced and is gone is not made anew", "lifecycle/checkpoint/state.go",
		"case c.Old != nil && isDir(c.Old) == isDir(c.New):",
		"case false:",
		"./lifecycle/checkpoint", "TestRenamedBeforeApply",
	},
	{
		"renamed: a folder that would stay empty is not made", "lifecycle/checkpoint/pairs.go",
		"return a.keepHollow(hollow)",
		"return a.keepHollow(nil)",
		"./lifecycle/checkpoint", "TestRenamedBeforeApply",
	},
	{
		"renamed: a mode of a file that is gone is no error", "lifecycle/checkpoint/apply.go",
		"if err != nil || st == altered || c.Kind != KindMode || isDir(c.New) {",
		"if err != nil || c.Kind != KindMode || isDir(c.New) {",
		"./lifecycle/checkpoint", "TestRenamedBeforeApply",
	},
	{
		"renamed: what a task moved is moved back", "lifecycle/checkpoint/apply.go",
		"\t\tif from := a.pairs[c]; from != nil {",
		"\t\tif from := a.pairs[c]; false {",
		"./lifecycle/checkpoint", "TestMovedBackByRename",
	},
	{
		"renamed: a file with other names is written anew", "lifecycle/checkpoint/pairs.go",
		"return info != nil && !writer.Shared(info)",
		"return info != nil",
		"./lifecycle/checkpoint", "TestMovedBackByRename",
	},
	{
		"renamed: what is made replaces nothing", "lifecycle/checkpoint/apply.go",
		"\tif st == vacant {\n\t\terr = writer.RenameTo",
		"\tif false {\n\t\terr = writer.RenameTo",
		"./lifecycle/checkpoint", "TestPutThereInTheMoment",
	},
	{
		"renamed: looks once more after the content was read", "lifecycle/checkpoint/pairs.go",
		"\twas := a.saw[c]\n",
		"\twas := a.saw[c]\n\tif was != nil {\n\t\treturn true, nil\n\t}\n",
		"./lifecycle/checkpoint", "TestSavedWhileItIsRead",
	},
	{
		"renamed: nothing is changed in a folder that was renamed", "lifecycle/checkpoint/descent.go",
		"if err == nil && writer.SameFile(info, c.infos[n]) {",
		"if err == nil && writer.SameFile(info, c.infos[n]) || c != nil {",
		"./lifecycle/checkpoint", "TestRenamedInTheMiddle",
	},
	{
		"renamed: a path that goes in the moment is kept", "lifecycle/checkpoint/apply.go",
		"case err != nil && !(a.begun && unreachable(err)):",
		"case err != nil:",
		"./lifecycle/checkpoint", "TestRenamedInTheMiddle",
	},
	{
		"renamed: a mode that goes before the first change is kept", "lifecycle/checkpoint/folders.go",
		"if unreachable(err) { // somebody renamed it",
		"if false {",
		"./lifecycle/checkpoint", "TestRenamedInTheMiddle",
	},
	{
		"renamed: a file that goes to and fro is not removed", "lifecycle/checkpoint/pairs.go",
		"if err == nil && (!writer.SameFile(info, a.saw[c]) || writer.Shared(info)) {",
		"if err == nil && info != nil {",
		"./lifecycle/checkpoint", "TestMovedToAndFro",
	},
	{
		"renamed: the last path of a content is not removed", "lifecycle/checkpoint/pairs.go",
		"\tif to == nil {\n\t\treturn true, nil",
		"\tif a != nil {\n\t\treturn true, nil",
		"./lifecycle/checkpoint", "TestMovedAndNotMade",
	},
	{
		"renamed: the border of a file system is no end", "lifecycle/checkpoint/pairs.go",
		"case errors.Is(err, syscall.EXDEV), errors.Is",
		"case errors.Is(err, syscall.EXDEV) && false, errors.Is",
		"./lifecycle/checkpoint", "TestMovedAcrossABorder",
	},
	{
		"renamed: the mode of another file stays", "lifecycle/checkpoint/apply.go",
		"if !writer.SameFile(info, a.saw[c]) { // somebody",
		"if info == nil { // somebody",
		"./lifecycle/checkpoint", "TestModeOfAnotherFile",
	},
	{
		"renamed: what goes before all else is in no pair", "lifecycle/checkpoint/pairs.go",
		"|| underOne(turns, c.Path):",
		"|| false:",
		"./lifecycle/checkpoint", "TestMovedOutOfATurn",
	},
	{
		"renamed: a name of another case is in no pair", "lifecycle/checkpoint/pairs.go",
		"case !underOne(spelled, strings.ToLower(c.Path)):",
		"default:",
		"./lifecycle/checkpoint", "TestRenameOfCase",
	},
	{
		"renamed: what is moved back is durable before the other path is gone", "lifecycle/checkpoint/pairs.go",
		"if from.New == nil && !a.stays[to.Path] {",
		"if from.New == nil && !a.stays[to.Path] && false {",
		"./lifecycle/checkpoint", "TestPowerCutInAMove",
	},
	{
		"renamed: a new folder is durable before a file is moved into it", "lifecycle/checkpoint/pairs.go",
		"err := a.reach(parent(to.Path)); err != nil && !unreachable(err)",
		"err := error(nil); err != nil && !unreachable(err)",
		"./lifecycle/checkpoint", "TestPowerCutInAMove",
	},
	{
		"renamed: nothing is moved away out of a folder that was renamed", "lifecycle/checkpoint/moved.go",
		"\ta.descent.forget(c.Path)\n\tif dir, err = a.descent.again(",
		"\ta.descent.forget(c.Path)\n\tif dir, err = a.descent.to(",
		"./lifecycle/checkpoint", "TestHiddenInARenamedFolder",
	},
	{
		"renamed: what comes in the place of another file is not made twice", "lifecycle/checkpoint/pairs.go",
		"return append(makes, replaced...), append(takes, replaced...)",
		"return makes, append(takes, replaced...)",
		"./lifecycle/checkpoint", "TestRenamedBeforeApply",
	},
}
