package main

// The project's own repository, written to with --commit.
var ofCommit = []mutant{
	{
		"repo: git ends with lopen", "cmd/lopen/internal/child/keeper_unix.go",
		"if d.Ends > 0 && gone(fdControl) {",
		"if false {",
		"./cmd/lopen/internal/repo", "TestGitEndsWithUs",
	},
	{
		"repo: git takes its locks away when lopen is gone", "cmd/lopen/internal/child/keeper_unix.go",
		"\t\t_ = syscall.Kill(-pgid, syscall.SIGTERM) //",
		"\t\t//",
		"./cmd/lopen/internal/repo", "TestGitEndsWithUs",
	},
	{
		"repo: git ends with lopen, whatever it ignores", "cmd/lopen/internal/child/keeper_unix.go",
		"n > 0 || ends > 0 {",
		"n > 0 {",
		"./cmd/lopen/internal/repo", "TestGitThatIgnoresASignalEndsWithUs",
	},
	{
		"repo: no other repository is used", "cmd/lopen/internal/repo/command.go",
		`return strings.HasPrefix(name, "GIT_") && !slices.Contains(persons, name)`,
		"return false",
		"./cmd/lopen/internal/repo", "TestAnotherRepositoryIsNotUsed",
	},
	{
		"repo: git has a time limit", "cmd/lopen/internal/repo/command.go",
		"Timeout: cmp.Or(c.Limit, Patience),",
		"Timeout: cmp.Or(20*time.Second, c.Limit),",
		"./cmd/lopen/internal/repo", "TestAHookThatHangs",
	},
	{
		"repo: nobody is asked", "cmd/lopen/internal/repo/command.go",
		`"GIT_EDITOR=true",`,
		"",
		"./cmd/lopen/internal/repo", "TestGitHasNoTerminal",
	},
	{
		"repo: a change within a second is committed", "cmd/lopen/internal/repo/commit.go",
		"os.Chtimes(to, time.Time{}, info.ModTime())",
		"os.Chtimes(to, time.Time{}, info.ModTime().Add(time.Hour))",
		"./cmd/lopen/internal/repo", "TestAChangeWithinASecondIsCommitted",
	},
	{
		"repo: what is staged stays staged", "cmd/lopen/internal/repo/commit.go",
		"if ok && !(below && slices.Contains(asked, rel)) {",
		"if ok && !(below && slices.Contains(asked, rel)) && false {",
		"./cmd/lopen/internal/repo", "TestWhatIsStagedStaysStaged",
	},
	{
		"repo: what is committed is not staged as it was on the way", "cmd/lopen/internal/repo/commit.go",
		"if ok && !(below && slices.Contains(asked, rel)) {",
		"if ok && !(false && below && slices.Contains(asked, rel)) {",
		"./cmd/lopen/internal/repo", "TestWhatTheAgentStagedIsNotStaged",
	},
	{
		"repo: a commit whose git was killed is one", "cmd/lopen/internal/repo/commit.go",
		"(ctx.Err() != nil || !p.has(ctx, c))",
		"(true || !p.has(ctx, c))",
		"./cmd/lopen/internal/repo", "TestAHookAfterTheCommitHangs",
	},
	{
		"commit: what an agent stashed of the person's stays held", "cmd/lopen/internal/loop/commit.go",
		"if key := r.pathKey(path); was[key] {",
		"if key := r.pathKey(path); false && was[key] {",
		"./cmd/lopen", "TestScripts/commit-agent",
	},
	{
		"commit: what a failed task staged is set back", "cmd/lopen/internal/loop/setback.go",
		"\tr.unstage(ctx, paths)\n",
		"",
		"./cmd/lopen", "TestScripts/commit-agent",
	},
	{
		"commit: what hooks mended is tried again", "cmd/lopen/internal/loop/commit.go",
		"if err != nil && r.hooksMended(ctx, unit, paths) {",
		"if err != nil && r.hooksMended(ctx, unit, paths) && false {",
		"./cmd/lopen", "TestScripts/commit-agent",
	},
	{
		"repo: a commit undoes nothing that HEAD moved to", "cmd/lopen/internal/repo/commit.go",
		"if e.parents == p.head.Commit {",
		"if true || e.parents == p.head.Commit {",
		"./cmd/lopen/internal/repo", "TestHeadMovesMeanwhile",
	},
	{
		"repo: what is not checked out is not deleted", "cmd/lopen/internal/repo/commit.go",
		`"--replace", "--ignore-skip-worktree-entries",`,
		`"--replace",`,
		"./cmd/lopen/internal/repo", "TestContentsAreConverted",
	},
	{
		"repo: no commit in the middle of a merge", "cmd/lopen/internal/repo/commit.go",
		`if what := r.Unfinished(); what != "" {`,
		`if what := r.Unfinished(); false {`,
		"./cmd/lopen/internal/repo", "TestUnfinished",
	},
	{
		"commit: what differed before is held", "cmd/lopen/internal/loop/commit.go",
		"case c.held[r.pathKey(path)]:",
		"case false:",
		"./cmd/lopen", "TestScripts/commit-each",
	},
	{
		"commit: one that was made is found", "cmd/lopen/internal/loop/commit.go",
		`if hash != "" {
		r.cfg.UI.Say("committed by`,
		`if false {
		r.cfg.UI.Say("committed by`,
		"./cmd/lopen", "TestScripts/commit-killed",
	},
	{
		"commit: one that is missing is made", "cmd/lopen/internal/loop/outcome.go",
		"h.Commits = r.commits.state(unit)",
		`h.Commits = r.commits.state("")`,
		"./cmd/lopen", "TestScripts/commit-killed",
	},
	{
		"commit: a session alone does not switch it on", "cmd/lopen/run_commit.go",
		"err = g.admit(ctx, &command, typed)",
		"err = g.admit(ctx, &command, typed || true)",
		"./cmd/lopen", "TestScripts/commit-refused",
	},
	{
		"commit: a hook that changes files has the check run again", "cmd/lopen/internal/loop/commit_hooks.go",
		"if len(left) == 0 && !made.Rewritten {",
		"if true {",
		"./cmd/lopen", "TestScripts/commit-hooks",
	},
}
