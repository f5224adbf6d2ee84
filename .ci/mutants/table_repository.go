package main

var ofRepository = []mutant{
	{
		"git: the repository's configuration is not read", "cmd/lopen/internal/git/command.go",
		`"GIT_DIR="+dir,`,
		`"GIT_DIR="+at(r.dir)+dir[:0],`,
		"./cmd/lopen/internal/git", "TestNothingOfARepositoryRuns",
	},
	{
		"git: a .git file is believed where a work tree points back", "cmd/lopen/internal/git/repository.go",
		"return common, err == nil && os.SameFile(info, mark)",
		"_ = info\n\treturn common, err == nil",
		"./cmd/lopen/internal/git", "TestNoRepositoryIsFoundElsewhere",
	},
	{
		"git: a .git file is believed where a submodule points back", "cmd/lopen/internal/git/repository.go",
		"case !r.submoduleOf(ctx):",
		"case false:",
		"./cmd/lopen/internal/git", "TestNoRepositoryIsFoundElsewhere",
	},
	{
		"git: it ends with lopen", "cmd/lopen/internal/git/ends_linux.go",
		"Pdeathsig: syscall.SIGKILL",
		"",
		"./cmd/lopen/internal/git", "TestGitEndsWithUs",
	},
	{
		"git: what waits once is not asked again", "cmd/lopen/internal/loop/git.go",
		"if r.warned[waits] {",
		"if false {",
		"./cmd/lopen", "TestScripts/git-waits",
	},
	{
		"git: a reference leads nowhere else", "cmd/lopen/internal/git/refs.go",
		`if !strings.HasPrefix(s, "refs/") || !fs.ValidPath(s) {`,
		"if false {",
		"./cmd/lopen/internal/git", "TestReferencesStayInside",
	},
	{
		"git: the end of a shallow clone is no root", "cmd/lopen/internal/git/identity.go",
		`if commit != "" && !r.shallow() {`,
		`if commit != "" {`,
		"./cmd/lopen/internal/git", "TestIdentityOfLittle",
	},
	{
		"git: another user's repository is not looked at", "cmd/lopen/internal/git/repository.go",
		"if owner.Foreign(want) && !owner.Same(want, above) {",
		"if false {",
		"./cmd/lopen/internal/git", "TestForeignRepository",
	},
	{
		"git: what it allocates at once is bounded", "cmd/lopen/internal/git/command.go",
		`"GIT_ALLOC_LIMIT=128m", `,
		"",
		"./cmd/lopen/internal/git", "TestSmallRepositoryTakesLittleMemory",
	},
	{
		"project: the search ends at the first .git", "cmd/lopen/project.go",
		"if holds(dir, git.Mark) {",
		"if false {",
		"./cmd/lopen", "TestScripts/planted",
	},
	{
		"project: another user's is refused", "cmd/lopen/project.go",
		"if err != nil || !owner.Foreign(info) {",
		"if true || err != nil || !owner.Foreign(info) {",
		"./cmd/lopen", "TestScripts/foreign",
	},
	{
		"project: requirements_dir stays within", "cmd/lopen/internal/settings/keys.go",
		"case k.rule == inside && (!filepath.IsLocal(filepath.FromSlash(s)) ||",
		"case k.rule == inside && (filepath.IsAbs(s) ||",
		"./cmd/lopen", "TestScripts/leads-out",
	},
}
