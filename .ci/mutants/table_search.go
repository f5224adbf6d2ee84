package main

// ofSearch are mutants of what is found with an index and without, and of what the index is spared.
var ofSearch = []mutant{
	{
		"search: a page of the index that was damaged is noticed", "cache/sqlite/sqlite.go",
		`, c.EnableChecksums("main"))`,
		")",
		"./cache/sqlite", "TestEveryFlippedPageIsNoticed",
	},
	{
		"search: what another program's schema names does not run", "cache/sqlite/sqlite.go",
		"sqlite3.DBCONFIG_ENABLE_VIEW:    false",
		"sqlite3.DBCONFIG_ENABLE_VIEW:    true",
		"./cache/sqlite", "TestCopyIsReadAndNotTrusted",
	},
	{
		"search: a link in the place of a database is not followed", "cache/sqlite/sqlite.go",
		"err == nil && !info.Mode().IsRegular()",
		"err == nil && info.IsDir()",
		"./cache/sqlite", "TestOnlyRegularFilesAreOpened",
	},
	{
		"search: an index leaves the last room of a disk", "cache/sqlite/room.go",
		"r.left < 0",
		"r.left < -1<<40",
		"./cache/sqlite", "TestIndexLeavesRoom",
	},
	{
		"search: an index that found no room gives back what it took", "cache/search/find.go",
		"ix.giveBack()",
		"_ = ix.giveBack",
		"./cache/search", "TestNoRoom",
	},
	{
		"search: an index is not made again in as little room", "cache/search/room.go",
		"free < before+before/8",
		"free < before/8",
		"./cache/search", "TestNoRoom",
	},
	{
		"search: a pipe in the place of a journal is not waited for", "cache/sqlite/sqlite.go",
		`"-journal", "-wal"`,
		`"-wal"`,
		"./cache/sqlite", "TestOnlyRegularFilesAreOpened",
	},
	{
		"search: a call that does not return holds no search that is interrupted", "cmd/lopen/pipe.go",
		"time.AfterFunc(moment, cancel)",
		"_ = time.Now",
		"./cmd/lopen", "TestAwaitEnd",
	},
	{
		"search: a damaged index is made anew", "cache/search/find.go",
		"rerr := ix.renew()",
		"rerr := error(nil)",
		"./cache/search", "TestDamagedAnywhere",
	},
	{
		"search: what lies between the entries of a module is not of it", "cache/search/find.go",
		"if of == nil {",
		"if false {",
		"./cache/search", "TestMoreThanAreRanked",
	},
	{
		"search: an index that was made at once is looked up at once", "cache/search/update.go",
		"return byAge(b, a)",
		"return byAge(a, b)",
		"./cache/search", "TestMoreThanAreRanked",
	},
	{
		"search: an index of another version is dropped", "cache/search/index.go",
		"err == nil && have != version",
		"err == nil && have == 0",
		"./cache/search", "TestAnotherVersionIsDropped",
	},
	{
		"search: another process's commit between two is noticed", "cache/search/update.go",
		"before != 0 && before != w.others",
		"before != 0 && w.others == 0",
		"./cache/search", "TestAnotherWritesBetween",
	},
	{
		"search: a source that is as long and has other texts is read again", "cache/search/update.go",
		"k.version != s.Version || k.mark != s.Mark",
		"k.mark != s.Mark",
		"./cache/search", "TestIndexAndScanAgree",
	},
	{
		"search: a source that goes on in another way is read again", "cache/search/update.go",
		"if errors.Is(err, ErrChanged) && !anew {",
		"if errors.Is(err, ErrChanged) && !anew && k.mark == 0 {",
		"./cache/search", "TestRewrittenSource",
	},
	{
		"search: a source that could not be read is read again", "cache/search/update.go",
		`version += " unread"`,
		`version += ""`,
		"./cache/search", "TestUnreadableSource",
	},
	{
		"search: the texts of a source that is gone are deleted", "cache/search/update.go",
		"w.gone = append(w.gone, have[key].id)",
		"_ = have[key].id",
		"./cache/search", "TestRewrittenSource",
	},
	{
		"search: an index most of which is gone is made anew", "cache/search/update.go",
		"gone > maxGone && gone > all/2",
		"gone > all",
		"./cache/search", "TestMostIsGone",
	},
	{
		"search: a long name is cut alike in the index and in a query", "cache/search/words.go",
		"must = append(must, quoted(tag(f.kind, f.text), false))",
		"must = append(must, quoted(tag(f.kind, f.text)[:maxWord], false))",
		"./cache/search", "TestQueries",
	},
	{
		"search: a longer word than one that must not occur may occur", "cache/search/words.go",
		"len(w) < maxWord || t.prefix && len(w) == maxWord",
		"len(w) <= maxWord",
		"./cache/search", "TestQueries",
	},
	{
		"search: a phrase is more than its words", "cache/search/match.go",
		"state = (state<<1 | m.first) & m.bits()",
		"state = (state<<1 | m.first | 1<<63 - 1) & m.bits()",
		"./cache/search", "TestQueries",
	},
	{
		"search: a log that goes on in another way after a power cut is read again", "cmd/lopen/internal/find/log.go",
		"r.Seq == above && printOf(&r) == t.Print",
		"r.Seq >= above",
		"./cmd/lopen/internal/find", "TestALogThatWasCut",
	},
	{
		"search: a message of opencode that changed or is gone has its session read again", "cmd/lopen/internal/find/agents.go",
		"n == known && digest() != t.Print",
		"n == known && t.Print == \"\"",
		"./cmd/lopen/internal/find", "TestOpencodeChangesMessages",
	},
	{
		"search: a session of opencode is read once more when its last answer counts as complete", "cmd/lopen/internal/find/agents.go",
		"s.Mark++",
		"_ = s.Mark",
		"./cmd/lopen/internal/find", "TestOpencodeSettles",
	},
}
