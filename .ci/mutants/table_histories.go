package main

// ofHistories are of the histories of agents.
var ofHistories = []mutant{
	{
		"histories: what an import that was killed has appended is not taken again", "cmd/lopen/internal/histories/import.go",
		"if messages <= im.note.Messages && events <= im.note.Events {",
		"if messages >= 0 && events >= 0 {",
		"./cmd/lopen/internal/histories", "TestCutAnywhere",
	},
	{
		"histories: the ends of a pass are noted before its first message", "lifecycle/agents/reader.go",
		"\tif r.at.Begun {\n\t\treturn r, nil\n\t}\n",
		"",
		"./lifecycle/agents", "TestAPassThatIsInterruptedYieldsTheSame",
	},
	{
		"histories: what is known of a rewritten file is not taken again", "cmd/lopen/internal/histories/import.go",
		"\t\tim.note.Messages, im.note.Events = 0, 0\n",
		"",
		"./cmd/lopen/internal/histories", "TestRewrittenFile",
	},
	{
		"histories: what comes back to a file that was cut is known", "lifecycle/agents/reader.go",
		"\tr.at.anew()\n",
		"",
		"./cmd/lopen/internal/histories", "TestWhatComesBackIsKnown",
	},
	{
		"histories: a file with other bytes than before is noticed", "lifecycle/agents/source.go",
		" && s.print(p.Offset) == p.Print {",
		" {",
		"./lifecycle/agents", "TestRewritten",
	},
	{
		"histories: one agent's session has one session", "lifecycle/create.go",
		"\t\tif err := f.free(); err != nil {\n",
		"\t\tif err := f.free(); err != nil && false {\n",
		"./cmd/lopen/internal/histories", "TestTwoAtOnce",
	},
	{
		"histories: of sessions made together each is durable before it is in place", "lifecycle/commit/committer.go",
		"\tif c.staged != nil {\n\t\terrs",
		"\tif false {\n\t\terrs",
		"./lifecycle", "TestPowerCutInABatch",
	},
	{
		"histories: a session that cannot be synced is not put in place", "lifecycle/commit/unsynced.go",
		"\terr := u.syncFiles()\n",
		"\tvar err error\n\t_ = u.syncFiles()\n",
		"./lifecycle", "TestBatchOnABadDisk",
	},
	{
		"histories: who made a session of the history meanwhile is seen", "lifecycle/carry.go",
		"\t\tif modules[id.Module] {\n",
		"\t\tif false {\n",
		"./cmd/lopen/internal/histories", "TestAllAtOnce",
	},
	{
		"histories: a long line is not held", "lifecycle/agents/lines.go",
		"if n.long || len(l.held)+len(piece) > maxLine {",
		"if n.long {",
		"./lifecycle/agents", "TestMemoryIsBounded",
	},
	{
		"histories: a request counts once", "lifecycle/agents/claude.go",
		"\treturn more(sum, had)\n",
		"\treturn more(sum, session.Usage{})\n",
		"./lifecycle/agents", "TestUsageCountsOncePerRequest",
	},
	{
		"histories: an answer that is being written is left", "lifecycle/agents/opencode.go",
		"if last && m.written(parts) && time.Since(time.UnixMilli(updated)) < abandoned {",
		"if false && last && m.written(parts) {",
		"./lifecycle/agents", "TestOpencodeWritesOn",
	},
	{
		"histories: no text passes for another message", "cmd/lopen/internal/conversation/conversation.go",
		"\tif !reaches(s) {\n",
		"\tif true {\n",
		"./cmd/lopen/internal/conversation", "TestNoTextPassesForAMessage",
	},
	{
		"histories: requests that a fork has copied do not count", "lifecycle/agents/claude.go",
		" || l.AskedBy != \"\" && l.AskedBy != l.SessionID {",
		" {",
		"./lifecycle/agents", "TestUsageOfAClaudeFork",
	},
	{
		"histories: what a fork of Codex has copied does not count", "lifecycle/agents/codex.go",
		"\t\tif r.at.Copied {\n",
		"\t\tif false {\n",
		"./lifecycle/agents", "TestAForkOfCodexWithCopies",
	},
	{
		"histories: a prompt that waited is a message", "lifecycle/agents/claude.go",
		"\tl.queued()\n",
		"",
		"./lifecycle/agents", "TestPromptsThatWaited",
	},
	{
		"histories: nothing is added to a fork", "lifecycle/session/header.go",
		" && (h.Lineage == nil || h.Lineage.Kind != LineageForked)",
		"",
		"./cmd/lopen", "TestScripts/histories-again",
	},
	{
		"histories: what was pruned stays pruned", "cmd/lopen/session_import_from.go",
		"in < 0 && !old ||",
		"!old ||",
		"./cmd/lopen", "TestScripts/histories-again",
	},
	{
		"histories: of two files of a session the larger one is read", "lifecycle/agents/find.go",
		"case plain && at.size <= other.size:",
		"case plain:",
		"./lifecycle/agents", "TestTwoFilesOfASession",
	},
	{
		"histories: messages before those that were read are noticed", "lifecycle/agents/opencode.go",
		"if before > p.Lines {",
		"if false {",
		"./lifecycle/agents", "TestOpencodesClockGoesBackwards",
	},
	{
		"histories: a position has no credentials", "cmd/lopen/internal/histories/import.go",
		"\tim.note.Position.Redact(im.sess.Redact)\n",
		"",
		"./cmd/lopen/internal/histories", "TestSecretsAreHidden",
	},
	{
		"histories: a position is small", "lifecycle/agents/reader.go",
		"\t\t\tr.end()\n",
		"\t\t\tr.at.Begun = false\n",
		"./lifecycle/agents", "TestPositionsAreSmall",
	},
	{
		"histories: only its own session in the trash keeps a history out", "cmd/lopen/session_import_from.go",
		"t.ID.Module == module && store.TrashStandsFor(t.ID, h.ID)",
		"t.ID.Module == module",
		"./cmd/lopen", "TestScripts/histories-again",
	},
	{
		"histories: what follows a bad line is no branch", "lifecycle/agents/feed.go",
		"\titems = append(items, bad(err.Error()))\n\tf.lost(p)\n",
		"\titems = append(items, bad(err.Error()))\n",
		"./lifecycle/agents", "TestNoBranchAfterABadLine",
	},
}
