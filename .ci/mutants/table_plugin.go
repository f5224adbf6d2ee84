package main

// ofPlugin are the mechanisms by which the files of a plugin come and go.
var ofPlugin = []mutant{
	{
		"plugin: the manifest is written before the files", "cmd/lopen/internal/plugin/install.go",
		"if len(files) > 0 {",
		"if len(files) > 99 {",
		"./cmd/lopen/internal/plugin", "TestEveryCut",
	},
	{
		"plugin: until all is written, both contents are ours", "cmd/lopen/internal/plugin/install.go",
		"if st.old != nil {\n\t\tfor name, sums",
		"if false {\n\t\tfor name, sums",
		"./cmd/lopen/internal/plugin", "TestEveryCut",
	},
	{
		"plugin: the manifest is removed after the files", "cmd/lopen/internal/plugin/install.go",
		"\tfound = st.old != nil\n",
		"\tif found = st.old != nil; found {\n\t\t_ = remove(dir, path.Join(at, Manifest))\n\t}\n",
		"./cmd/lopen/internal/plugin", "TestEveryCut",
	},
	{
		"plugin: what was changed is not written over, nor removed", "cmd/lopen/internal/plugin/set.go",
		"return is == hash(f.Data) || st.old != nil && slices.Contains(st.old.Files[f.Name], is)",
		"return st.old != nil || is == hash(f.Data)",
		"./cmd/lopen/internal/plugin", "TestOthersFilesStay",
	},
	{
		"plugin: a folder of somebody else's is refused", "cmd/lopen/internal/plugin/set.go",
		"if st.old == nil {",
		"if false {",
		"./cmd/lopen/internal/plugin", "TestOthersFilesStay",
	},
	{
		"plugin: no symlink is followed", "cmd/lopen/internal/plugin/set.go",
		"case info.IsDir():",
		"case info.IsDir(), info.Mode()&fs.ModeSymlink != 0:",
		"./cmd/lopen/internal/plugin", "TestNoSymlinkIsFollowed",
	},
	{
		"plugin: only folders above ours are removed", "cmd/lopen/internal/plugin/install.go",
		"!filepath.IsLocal(rel) || rel == \".\" || !filepath.IsLocal(d)",
		"rel == \".\"",
		"./cmd/lopen/internal/plugin", "TestOthersFilesStay",
	},
	{
		"plugin: exit code 2 does not reach the agent", "cmd/lopen/internal/plugin/agents.go",
		"hook codex || exit 1' ",
		"hook codex' ",
		"./cmd/lopen/internal/plugin", "TestCommandsAreQuoted",
	},
	{
		"hook: an interrupt ends a turn", "cmd/lopen/hook.go",
		"turns.Interrupt, ",
		"",
		"./cmd/lopen", "TestRecordedHooks/codex/interrupted",
	},
}
