package main

// ofTracked are mutants of what git tracks although a rule ignores it.
var ofTracked = []mutant{
	{
		"tracked: what git's index has is not ignored", "cache/files/ignore.go",
		"return r, !isTracked || r.ownIgnored(path, name, isDir)",
		"return r, isTracked || true",
		"./cache/files", "TestTrackedIsTaken",
	},
	{
		"tracked: .lopenignore wins", "cache/files/ignore.go",
		"!isTracked || r.ownIgnored(path, name, isDir)",
		"!isTracked",
		"./cache/files", "TestTrackedIsTaken",
	},
	{
		"tracked: the rest of a folder that is entered stays ignored", "cache/files/ignore.go",
		"\tr.only = true\n",
		"",
		"./cache/files", "TestTrackedIsTaken",
	},
	{
		"tracked: names that the rules in force have are taken as well", "cache/files/tracked.go",
		"all = append(all, opts.InForce.names)",
		"_ = all",
		"./cache/files", "TestTrackedIsTaken",
	},
}
