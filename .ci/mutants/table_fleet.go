package main

// ofFleet are the mechanisms by which a fleet has a beginning of one holder's log, and no other.
var ofFleet = []mutant{
	{
		"fleet: a batch is guarded by the term", "lifecycle/fleet/schema/0001_begin.sql",
		"incarnation = of AND term = my_term AND", "incarnation = of AND",
		"./lifecycle/fleet", "TestBatchOfAnOlderTerm",
	},
	{
		"fleet: a batch is guarded by the holder", "lifecycle/fleet/schema/0001_begin.sql",
		"AND term = my_term AND holder = lopen_data.holder_of(mine)\n		AND head_seq", "AND term = my_term\n		AND head_seq",
		"./lifecycle/fleet", "TestGuards",
	},
	{
		"fleet: a batch is guarded by the last record", "lifecycle/fleet/schema/0001_begin.sql",
		"		AND head_seq = was_seq AND head_sum = was_sum RETURNING", "		RETURNING",
		"./lifecycle/fleet", "TestGuards",
	},
	{
		"fleet: what is there is compared before the lease is taken", "lifecycle/fleet/ship.go",
		"	if err != nil {\n		return err\n	}\n	return s.another(ctx, r)\n", "	return err\n",
		"./lifecycle/fleet", "TestGuards",
	},
	{
		"fleet: the session of one that is fenced pauses", "lifecycle/fleet/session.go",
		"		s.Fence(err)\n", "",
		"./lifecycle/fleet", "TestStoppedRunnerIsFenced",
	},
	{
		"fleet: a lease that is not over is nobody else's", "lifecycle/fleet/schema/0001_begin.sql",
		"WHERE session = which AND (holder IS NULL OR", "WHERE session = which AND (true OR holder IS NULL OR",
		"./lifecycle/fleet", "TestTwoPullAtOnce",
	},
	{
		"fleet: a cancelled wait for the standby is no acknowledgement", "lifecycle/fleet/fleet.go",
		"			return errUnconfirmed\n", "			return nil\n",
		"./lifecycle/fleet", "TestCancelledWaitForTheStandby",
	},
	{
		"fleet: records that are gone are not acknowledged", "lifecycle/fleet/ship.go",
		"	case errors.Is(err, ErrNotFound) && s.note.Seq > 0:\n		return fmt.Errorf(\"session %s: %w\", id, ErrGone)\n", "",
		"./lifecycle/fleet", "TestRestoredFromABackup",
	},
	{
		"fleet: the log keeps what was not shipped", "lifecycle/fleet/session.go",
		"err = folder.MoveCursor(dir, cursorName, x.ship.note.Seq)", "err = folder.MoveCursor(dir, cursorName, 1<<40)",
		"./lifecycle/fleet", "TestBacklogIsNotCompacted",
	},
	{
		"fleet: Ship returns once the cursor is there", "lifecycle/fleet/session.go",
		"err = folder.MoveCursor(dir, cursorName, x.ship.note.Seq)", "err = nil",
		"./lifecycle/fleet", "TestBacklogIsNotCompacted",
	},
	{
		"fleet: four batches are in memory", "lifecycle/fleet/fleet.go",
		"slots: make(chan struct{}, connections)", "slots: make(chan struct{}, 1000)",
		"./lifecycle/fleet", "TestFourBatchesInMemory",
	},
	{
		"fleet: between two batches others have their turn", "lifecycle/fleet/ship.go",
		"	if err = s.batch(ctx, here); err != nil {", "	for err == nil && s.row.head < here.Seq {\n		err = s.batch(ctx, here)\n	}\n	if err != nil {",
		"./lifecycle/fleet", "TestBacklogsTakeTurns",
	},
	{
		"fleet: no connection keeps a statement", "lifecycle/fleet/fleet.go",
		"	cfg.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec\n	cfg.ConnConfig.StatementCacheCapacity, cfg.ConnConfig.DescriptionCacheCapacity = 0, descriptions\n", "",
		"./lifecycle/fleet", "TestThroughAPooler",
	},
	{
		"fleet: what comes adds up", "lifecycle/fleet/fetch.go",
		"|| !bytes.Equal(r.sum, x.row.sum))", "&& !bytes.Equal(r.sum, x.row.sum))",
		"./lifecycle/fleet", "TestForeignDatabase",
	},
	{
		"fleet: only files of a session come", "lifecycle/fleet/fetch.go",
		"!sent.MatchString(x.name) || ", "",
		"./lifecycle/fleet", "TestForeignDatabase",
	},
	{
		"fleet: what diverged is kept as a fork", "lifecycle/fleet/pull.go",
		"		if p.Was == Diverged {\n", "		if false {\n",
		"./lifecycle/fleet", "TestPullBySituation",
	},
	{
		"fleet: tables of a newer version are left alone", "lifecycle/fleet/schema.go",
		"	case s.LeastClient > SchemaVersion:", "	case false:",
		"./lifecycle/fleet", "TestSchemaOfAnotherVersion",
	},
	{
		"fleet: a module is one machine's", "lifecycle/fleet/schema/0001_begin.sql",
		"AND (holder IS NULL OR NOT lopen", "AND (true OR holder IS NULL OR NOT lopen",
		"./lifecycle/fleet", "TestClaimsOfManyProcesses",
	},
	{
		"fleet: nothing of a person's is replaced", "lifecycle/fleet/files.go",
		"		return checkpoint.Unsaved, nil\n", "		return \"\", nil\n",
		"./cmd/lopen", "TestScripts/fleet-person",
	},
	{
		"fleet: another commit is another tree", "cmd/lopen/session_pull.go",
		"	if files.Moved() && !made {", "	if false {",
		"./cmd/lopen", "TestScripts/fleet-person",
	},
	{
		"fleet: the box waits for it", "cmd/lopen/internal/loop/outcome.go",
		"	if err := r.replicate(ctx); err != nil {\n		return err\n	}\n", "",
		"./cmd/lopen", "TestScripts/fleet-away",
	},
	{
		"fleet: a fork is not resumed unasked", "cmd/lopen/run_fleet.go",
		"	if of := r.fleet.Parted(store, own.ID); of != \"\" {", "	if of := \"\"; of != \"\" {",
		"./cmd/lopen", "TestScripts/fleet-continue",
	},
	{
		"session: a fenced one writes nothing more", "lifecycle/place.go",
		"	if cause, fenced := p.fences.Load(p.id); fenced {", "	if cause, fenced := p.fences.Load(p.id); fenced && false {",
		"./lifecycle/fleet", "TestStoppedRunnerIsFenced",
	},
	{
		"log: what was given up is not followed", "writer/journal/tail.go",
		"len(names) > 0 && names[len(names)-1] == t.at {", "len(names) > 0 {",
		"./writer/journal", "TestTailPassesWhatWasGivenUp",
	},
	{
		"log: only what follows is composed", "writer/journal/compose.go",
		"it.Seq >= c.begin && it.Seq != max(c.last.Seq+1, c.begin)", "false",
		"./writer/journal", "TestComposeRefuses",
	},
	{
		"checkpoints: what another place has is not looked into", "lifecycle/checkpoint/missing.go",
		"			if there[n.hash] {\n				continue\n			}\n", "			if there[n.hash] {\n				_ = n\n			}\n",
		"./lifecycle/checkpoint", "TestMissingLooksOnlyIntoWhatIsMissing",
	},
}
