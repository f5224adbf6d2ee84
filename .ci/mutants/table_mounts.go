package main

// Of what is mounted in a project.
var ofMounts = []mutant{
	{
		"mounts: a removal enters no folder of another mount", "writer/mount/remove.go",
		"if mounted {\n\t\t_ = sub.Close()",
		"if mounted && false {\n\t\t_ = sub.Close()",
		"./writer/mount", "TestRemoveCrossesNoMount",
	},
	{
		"mounts: a file that is a mount point is named", "writer/mount/enter.go",
		"return err == nil && at != above, err",
		"return err == nil && at != above && false, err",
		"./writer/mount", "TestRemoveCrossesNoMount",
	},
	{
		"mounts: the ID of the mount counts, not the device", "writer/mount/of_linux.go",
		"case err == nil && st.Mask&unix.STATX_MNT_ID != 0:",
		"case err == nil && st.Mask&unix.STATX_MNT_ID == 0:",
		"./writer/mount", "TestRemoveCrossesNoMount",
	},
	{
		"mounts: git removes no work tree with a mount", "cmd/lopen/internal/repo/worktree.go",
		"\tif at != \"\" {\n",
		"\tif at != \"\" && false {\n",
		"./cmd/lopen", "TestMountedVolume",
	},
	{
		"mounts: a session with a mount is not deleted", "lifecycle/trash.go",
		"if at, err := mount.Find(s.root(), name); at != \"\" || err != nil {",
		"if at, err := mount.Find(s.root(), name); err != nil {",
		"./cmd/lopen", "TestMountedVolume",
	},
	{
		"mounts: a look without checkpoints records nothing of a task's mounts", "cache/files/mounts.go",
		"return quiet && !(mounted &&",
		"return !(mounted &&",
		"./cmd/lopen", "TestMountedVolume",
	},
	{
		"mounts: what a task mounts is not recorded", "lifecycle/checkpoint/mounts.go",
		"case m.task:\n\t\treturn false",
		"case m.task:\n\t\treturn true",
		"./lifecycle/checkpoint", "TestMountedSince",
	},
	{
		"mounts: what a task left mounted stays unrecorded", "lifecycle/checkpoint/mounts.go",
		"it.kind == kindUnknown && it.text == string(files.Mounted) {",
		"it.kind == kindUnknown && it.text != string(files.Mounted) {",
		"./lifecycle/checkpoint", "TestMountsOfTheProject",
	},
	{
		"mounts: the mount points of an entry are bounded", "lifecycle/checkpoint/mounts.go",
		"len(m.taken) >= maxMounts ||",
		"false ||",
		"./lifecycle/checkpoint", "TestMountsInAnEntry",
	},
	{
		"mounts: a plan leaves what was mounted since the target", "lifecycle/checkpoint/mounts.go",
		"\t\t\tsince[path] = true\n\t\t}\n\t}\n\tfor",
		"\t\t\tcrossed[path] = true\n\t\t}\n\t}\n\tfor",
		"./lifecycle/checkpoint", "TestMountsOfTheProject",
	},
	{
		"mounts: a plan leaves what was unmounted since the target", "lifecycle/checkpoint/mounts.go",
		"if !apart && !crossed[path] {",
		"if apart && !crossed[path] {",
		"./lifecycle/checkpoint", "TestMountsOfTheProject",
	},
	{
		"mounts: an apply enters no folder of a new mount", "lifecycle/checkpoint/mounts.go",
		"if err == nil && mounted && c.crosses != nil && !c.crosses[path] {",
		"if err == nil && mounted && c.crosses != nil && c.crosses[path] {",
		"./lifecycle/checkpoint", "TestMountedMeanwhile",
	},
	{
		"mounts: an apply looks for a mount on the name that it changes", "lifecycle/checkpoint/mounts.go",
		"\tif is {\n\t\terr = errMounted",
		"\tif is && false {\n\t\terr = errMounted",
		"./lifecycle/checkpoint", "TestMountedMeanwhile",
	},
	{
		"mounts: a mode is changed on no mount that came after the look", "lifecycle/checkpoint/apply.go",
		"if err := a.descent.crossed(dir, c.Path); err != nil {\n\t\t\treturn 0, errors.Join(err, f.Close())",
		"if err := a.descent.crossed(dir, c.Path); false {\n\t\t\treturn 0, errors.Join(err, f.Close())",
		"./lifecycle/checkpoint", "TestMountedInTheMiddle",
	},
	{
		"mounts: a folder that was made is opened on no mount", "lifecycle/checkpoint/apply.go",
		"if err == nil {\n\t\t\terr = a.descent.crossed(dir, c.Path)",
		"if false {\n\t\t\terr = a.descent.crossed(dir, c.Path)",
		"./lifecycle/checkpoint", "TestMountedInTheMiddle",
	},
	{
		"mounts: what the kernel refuses because of a mount is retained", "lifecycle/checkpoint/mounts.go",
		"if !Refused(err) {\n\t\treturn false",
		"if true {\n\t\treturn false",
		"./lifecycle/checkpoint", "TestMountedInTheMiddle",
	},
	{
		"mounts: a copy takes no mount along", "writer/move.go",
		"if at, err := mount.Find(dir, from); at != \"\" || err != nil {",
		"if at, err := mount.Find(dir, from); err != nil {",
		"./writer/crashfs", "TestMoveFolderWithAMount",
	},
}
