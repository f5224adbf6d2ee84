package main

var ofActors = []mutant{
	{
		"actor: Sync fails while paused", "actors/actor.go",
		"\t\tif !b.retry {\n\t\t\treturn p\n\t\t}\n",
		"\t\tif !b.retry {\n\t\t\treturn nil\n\t\t}\n",
		"./actors", "TestPauseKeepsEverythingAndResumes",
	},
	{
		"actor: Recover comes before the next commit", "actors/actor.go",
		"\t\tif err := a.guard(a.commit.Recover); err != nil {\n\t\t\treturn a.pause(err, p.Durable)\n\t\t}\n",
		"\t\t_ = p.Durable\n",
		"./actors", "TestPauseKeepsEverythingAndResumes",
	},
	{
		"actor: a State that only Update made is committed", "actors/actor.go",
		"if a.pending.Saves() > 0 || !a.allDurable() {\n\t\tif err",
		"if a.pending.Saves() > 0 {\n\t\tif err",
		"./actors", "TestUpdateFromManyGoroutines",
	},
	{
		"actor: a pause is raised", "actors/actor.go",
		"\t\tcase a.critical <- p:\n\t\t\treturn p\n",
		"\t\tcase a.critical <- nil:\n\t\t\treturn p\n",
		"./actors", "TestPauseKeepsEverythingAndResumes",
	},
	{
		"append: the backlog is bounded", "actors/append.go",
		"if a.held+n > a.bound {",
		"if false {",
		"./actors", "TestFullBacklogTakesNothing",
	},
	{
		"removed folder: noticed by who waits for the disk", "actors/actor.go",
		"} else if b.reply != nil && b.commits == a.commits.Load() {",
		"} else if false {",
		"./lifecycle", "TestFault32NoticedWithoutASave",
	},
}
