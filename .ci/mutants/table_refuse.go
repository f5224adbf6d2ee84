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
		"if mount != k.inside {",
		"if mount != k.inside && mount == 0 {",
		"./lifecycle/checkpoint", "TestRefusedPaths",
	},
	{
		"refuse: another's file in a sticky folder is found before anything changes", "lifecycle/checkpoint/refused_linux.go",
		"foreign(at) && !overrides()",
		"foreign(at) && overrides()",
		"./lifecycle/checkpoint", "TestRefusedPaths",
	},
	{
		"refuse: a plan that tolerates nothing ends there", "lifecycle/checkpoint/refused.go",
		"if a.plan.Permitted || len(a.denied) == 0 {",
		"if len(a.denied) >= 0 {",
		"./lifecycle/checkpoint", "TestRefusedPaths",
	},
	{
		"refuse: a dry run says what would be refused", "lifecycle/checkpoint/open.go",
		"err := a.ask()\n\tif err == nil {",
		"var err error\n\tif err == nil {",
		"./cmd/lopen", "TestRewindOfAnImmutableFile",
	},
	{
		"refuse: a set back does the rest", "lifecycle/rewind/plan.go",
		"return r.Force || p.Permitted || r.Task != \"\"",
		"return r.Force || p.Permitted",
		"./cmd/lopen", "TestNightWithAMountedFile",
	},
	{
		"refuse: an error in the middle takes the rewind back", "lifecycle/rewind/back.go",
		"return !errors.Is(err, checkpoint.ErrUnchanged) || again && checkpoint.Refused(err)",
		"return again && checkpoint.Refused(err)",
		"./lifecycle", "TestRewindMeetsAnError",
	},
	{
		"refuse: the decision to take a rewind back is recorded", "lifecycle/rewind/back.go",
		"if err := s.Back(ctx, &back); err != nil {",
		"if err := ctx.Err(); err != nil {",
		"./lifecycle", "TestTakingBackIsCutOff",
	},
	{
		"refuse: the next holder goes on backwards", "lifecycle/rewind/run.go",
		"if r.Back {",
		"if r.Back && !again {",
		"./lifecycle", "TestTakingBackIsCutOff",
	},
	{
		"refuse: what a person changed is not taken back", "lifecycle/checkpoint/back.go",
		"c.Old, c.New = c.New, c.Old",
		"c.Old, c.New = nil, c.Old",
		"./lifecycle/checkpoint", "TestBackLeavesWhatChangedMeanwhile",
	},
	{
		"refuse: temporary files of both ways go", "lifecycle/checkpoint/names.go",
		"if a.plan.takes != \"\" {",
		"if a.plan.takes == \"\" {",
		"./lifecycle/checkpoint", "TestBackFromAnywhere",
	},
	{
		"refuse: EBUSY and EXDEV are a refusal", "lifecycle/checkpoint/refused.go",
		"syscall.EROFS, syscall.EBUSY, syscall.EXDEV,",
		"syscall.EROFS,",
		"./lifecycle/checkpoint", "TestErrorAtAnyCall",
	},
	{
		"refuse: giving up needs no checkpoints", "lifecycle/rewind/back.go",
		"up.Stand, up.Unknown = p.stand(ctx, r); len",
		"up.Stand, up.Unknown = p.stand(ctx, r); up.Unknown != nil {\n\t\t\treturn up, up.Unknown\n\t\t} else if len",
		"./lifecycle", "TestRewindIsGivenUp",
	},
	{
		"refuse: undo takes back what was given up", "lifecycle/rewind/back.go",
		"len(up.Changed) > 0 && r.Task == \"\" {",
		"len(up.Changed) < 0 && r.Task == \"\" {",
		"./lifecycle", "TestRewindIsGivenUp",
	},
	{
		"refuse: boxes that cannot be changed take the rewind back", "lifecycle/rewind/run.go",
		"st, err = p.follow(target)\n\t\tif p.takesBack(r, err, again) {",
		"st, err = p.follow(target)\n\t\tif false {",
		"./cmd/lopen", "TestRewindThatIsNotFinished",
	},
	{
		"refuse: a rewind that is given again is finished and nothing more", "cmd/lopen/checkpoint_rewind.go",
		"case was != nil && was.To.ID == r.to && r.paths == nil:",
		"case false:",
		"./cmd/lopen", "TestRewindIsGivenAgain",
	},
}
