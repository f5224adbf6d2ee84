package main

// Of rewinds that the system does not allow.
var ofRefused = []mutant{
	{
		"refuse: attributes are asked for before anything changes", "lifecycle/checkpoint/refused_linux.go",
		"case all&unix.STATX_ATTR_IMMUTABLE != 0:",
		"case all&unix.STATX_ATTR_IMMUTABLE != 0 && path == \"\":",
		"./lifecycle/checkpoint", "TestRefusedPaths",
	},
	{
		"refuse: an append-only folder gets no name that cannot be removed", "lifecycle/checkpoint/refused_linux.go",
		"if r := attributes(in.Attributes, q.in); r != nil && q.names {",
		"if r := attributes(in.Attributes, q.in); r != nil && !q.names {",
		"./lifecycle/checkpoint", "TestRefusedPaths",
	},
	{
		"refuse: a mount point is found before anything changes", "lifecycle/checkpoint/refused_linux.go",
		"if mounted(&in, &at) {",
		"if mounted(&in, &in) {",
		"./lifecycle/checkpoint", "TestRefusedPaths",
	},
	{
		"refuse: another's file in a sticky folder is found before anything changes", "lifecycle/checkpoint/refused_linux.go",
		"foreign(&at) && !overrides()",
		"foreign(&at) && overrides()",
		"./lifecycle/checkpoint", "TestRefusedPaths",
	},
	{
		"refuse: a plan that tolerates nothing ends there", "lifecycle/checkpoint/refused.go",
		"if a.plan.Permitted || len(a.denied) == 0 {",
		"if len(a.denied) >= 0 {",
		"./lifecycle/checkpoint", "TestRefusedPaths",
	},
	{
		"refuse: a set back does the rest", "lifecycle/rewind/plan.go",
		"return r.Force || p.Permitted || r.Task != \"\"",
		"return r.Force || p.Permitted",
		"./cmd/lopen", "TestNightWithAMountedFile",
	},
}
