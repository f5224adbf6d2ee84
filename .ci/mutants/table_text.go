package main

// ofText are of texts that leave, and of credentials in them.
var ofText = []mutant{
	{
		"hint: a text in a command is quoted", ".ci/house/hints.go",
		"prose.MatchString(text[at:]) || s.safe(e)",
		"prose.MatchString(text[at:]) || true",
		"./.ci/house", "TestOpenHints",
	},
	{
		"hint: an old shell runs nothing of a word", "writer/plain/shell.go",
		"case Printable(r) && r != '\\'' &&",
		"case Printable(r) &&",
		"./writer/plain", "TestQuoteForAnOldShell",
	},
}
