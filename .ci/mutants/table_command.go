package main

var ofCommand = []mutant{
	{
		"temporary folder: that of another user is left alone", "cmd/lopen/internal/scratch/scratch.go",
		"!info.IsDir() || !owner.Mine(info)",
		"!info.IsDir() || !owner.Mine(info) && false",
		"./cmd/lopen/internal/scratch", "TestWhatIsNotOursIsLeftAlone",
	},
	{
		"temporary folder: that of who lives is left alone", "cmd/lopen/internal/scratch/scratch.go",
		"\tif locked, err := Lock(hold); err != nil || !locked {\n\t\treturn\n\t}\n",
		"",
		"./cmd/lopen/internal/scratch", "TestTheFolderOfWhoLivesIsLeftAlone",
	},
	{
		"temporary folder: the next run sweeps", "cmd/lopen/internal/scratch/scratch.go",
		"\twithin(in.sweep)\n",
		"",
		"./cmd/lopen/internal/scratch", "TestWhatAKilledRunLeftIsRemoved",
	},
	{
		"temporary folder: one that was replaced is not used", "cmd/lopen/internal/scratch/scratch.go",
		"return err == nil && os.SameFile(have, info)",
		"return have != info || err == nil",
		"./cmd/lopen/internal/scratch", "TestAFolderThatWasReplacedIsNotUsed",
	},
	{
		"temporary folder: only a regular file is read", "writer/documents/documents.go",
		"case !info.Mode().IsRegular():",
		"case false:",
		"./cmd/lopen/internal/scratch", "TestOnlyARegularFileIsRead",
	},
	{
		"temporary folder: the command inherits the lock", "cmd/lopen/internal/loop/attempt.go",
		"if lock := r.dir.Lock(); lock != nil {",
		"if lock := r.dir.Lock(); false {",
		"./cmd/lopen", "TestScripts/leftover",
	},
	{
		"limit: a far retryAt is not added to", "cmd/lopen/internal/loop/wait.go",
		"d > r.cfg.Wait-r.waited",
		"r.waited+d > r.cfg.Wait",
		"./cmd/lopen/internal/loop", "TestWaitIsForAllWaitsTogether",
	},
	{
		"on_event: one that came with the project is approved first", "cmd/lopen/run_trust.go",
		`shell(v.OnEvent, r.own(v, "on_event"))`,
		`shell(v.OnEvent, true)`,
		"./cmd/lopen", "TestScripts/on-event",
	},
	{
		"on_event: an event has no credentials", "cmd/lopen/internal/loop/event.go",
		"plain.Clip(r.sess.Redact(text), most)",
		"plain.Clip(text, most)",
		"./cmd/lopen/internal/loop", "TestEventsComeInOrder",
	},
	{
		"on_event: one that hangs is ended", "cmd/lopen/internal/loop/event.go",
		"err = fmt.Errorf(\"ended after %s\", limit)",
		"",
		"./cmd/lopen/internal/loop", "TestAHangingOnEventIsEnded",
	},
	{
		"on_event: of what waits the oldest is dropped", "cmd/lopen/internal/loop/event.go",
		"\t\t\te.dropped(old)\n",
		"\t\t\te.dropped(m)\n\t\t\tm = old\n",
		"./cmd/lopen/internal/loop", "TestEventsThatWaitAreBounded",
	},
	{
		"report: what the circuit breaker took back is no failure", "cmd/lopen/internal/report/reader.go",
		"\t\t\ts.u.judgement = s.before\n",
		"",
		"./cmd/lopen/internal/report", "TestWhatTheCircuitBreakerTookBack",
	},
	{
		"metrics: times are bounded", "cmd/lopen/internal/loop/metrics.go",
		"if m.RetryAt != nil && m.RetryAt.After(late) {",
		"if false {",
		"./cmd/lopen/internal/loop", "TestReadMetrics",
	},
	{
		what: "loop: a command has no terminal of its own", file: "cmd/lopen/internal/child/child_unix.go",
		from: "Setsid: true", to: "Setpgid: true",
		pkg: "./cmd/lopen", test: "TestScripts/forged",
	},
	{
		what: "loop: a session has a command without its credentials", file: "cmd/lopen/internal/loop/runner.go",
		from: "command: cfg.Session.RedactArgs(a.Argv())", to: "command: a.Argv()",
		pkg: "./cmd/lopen", test: "TestScripts/trust-kept",
	},
	{
		what: "loop: a session has a check without its credentials", file: "cmd/lopen/internal/loop/runner.go",
		from: "cfg.Session.Redact(cfg.Check)\n", to: "cfg.Check\n",
		pkg: "./cmd/lopen", test: "TestScripts/trust-kept",
	},
	{
		what: "loop: .child has a command without its credentials", file: "cmd/lopen/internal/loop/attempt.go",
		from: "strings.Join(r.sess.RedactArgs(c.Argv), \" \")", to: "strings.Join(c.Argv, \" \")",
		pkg: "./cmd/lopen", test: "TestScripts/trust-kept",
	},
	{
		what: "trust: approvals are the repository's", file: "cmd/lopen/internal/trust/trust.go",
		from: `if p.Repository != "" {
		key =`, to: `if false {
		key =`,
		pkg: "./cmd/lopen", test: "TestScripts/trust-moved",
	},
	{
		what: "trust: a saved session does not silence LOPEN_CHECK", file: "cmd/lopen/run_before.go",
		from: `if old.Check != "" { // else`, to: `if true { // else`,
		pkg: "./cmd/lopen", test: "TestScripts/trust",
	},
	{
		what: "prompt: its parts are bounded", file: "cmd/lopen/internal/prompt/bounds.go",
		from: "if r.fits(len(text)) {", to: "if true {",
		pkg: "./cmd/lopen/internal/prompt", test: "TestPromptIsBounded",
	},
	{
		what: "diff: a task's patch begins before its first attempt", file: "lifecycle/rewind/patch.go",
		from: "\t\t\tfirst = e\n", to: "\t\t\t_ = first\n",
		pkg: "./lifecycle", test: "TestPatchOfATask",
	},
	{
		what: "convert: prose never becomes a task of a new plan", file: "plan/convert/write.go",
		from: "prose); sameTasks(bare, whole) {", to: "prose); true {",
		pkg: "./plan/convert", test: "TestPlan",
	},
	{
		what: "convert: details with an open code block are fenced in", file: "plan/convert/write.go",
		from: "fenced[i].Details = fence(d)", to: "_ = fence(d)",
		pkg: "./plan/convert", test: "TestPlan",
	},
	{
		what: "convert: a box that is no task is named", file: "plan/convert/list.go",
		from: "!tasks[f.line] {", to: "!tasks[f.line] && text != \"\" {",
		pkg: "./plan/convert", test: "TestCorpus",
	},
	{
		what: "convert: no task waits for itself in a circle", file: "plan/convert/cycles.go",
		from: "!behind(i, t) ||", to: "true ||",
		pkg: "./plan/convert", test: "TestCorpus",
	},
	{
		what: "plan create: what is not explained is not written", file: "cmd/lopen/plan_create.go",
		from: "made.Tasks+len(made.Left) != made.Boxes {", to: "false {",
		pkg: "./cmd/lopen", test: "TestUnexplainedBoxes",
	},
	{
		what: "run --task: nothing runs that is not selected", file: "cmd/lopen/internal/loop/agenda.go",
		from: "!a.open(i) || !a.in.has(a.tasks[i].ID)", to: "!a.open(i)",
		pkg: "./cmd/lopen/internal/loop", test: "TestAgendaIsChoose",
	},
	{
		what: "run --again: a run that cannot begin unticks nothing", file: "cmd/lopen/run_select.go",
		from: "if err := configure(old); err != nil {", to: "if err := configure(old); err != nil && false {",
		pkg: "./cmd/lopen", test: "TestScripts/select",
	},
	{
		what: "run --again: what is done is pending before the run begins", file: "cmd/lopen/run_select.go",
		from: "is.State != session.TaskPending || is.Attempts > 0", to: "is.State == session.TaskSkipped",
		pkg: "./cmd/lopen", test: "TestScripts/select",
	},
	{
		"decisions: what a killed run's command changed is set back before the attempt is over", "cmd/lopen/plan_settle.go",
		"func(id string) bool { return isInProgress(st, id) }",
		"func(string) bool { return false }",
		"./cmd/lopen", "TestScripts/decide-cut",
	},
	{
		"decisions: the same before a new session", "cmd/lopen/run_session.go",
		"if old.Status != session.StatusInterrupted {",
		"if true {",
		"./cmd/lopen", "TestScripts/decide-cut",
	},
	{
		"decisions: a session that is left does not take back what the new one did", "cmd/lopen/run_session.go",
		"errors.Join(leaveCut(sess), ",
		"errors.Join(",
		"./cmd/lopen", "TestScripts/decide-cut",
	},
	{
		"decisions: a command that outlives its run keeps the attempt open", "cmd/lopen/plan_settle.go",
		"case orphan != nil && is.State",
		"case orphan != nil && false && is.State",
		"./cmd/lopen", "TestScripts/decide-cut",
	},
	{
		"decisions: a note that was left does not count against later edits", "cmd/lopen/run.go",
		"if err := r.settleFirst(ctx, store); err != nil {",
		"if err := error(nil); err != nil {",
		"./cmd/lopen", "TestScripts/decide-cut",
	},
	{
		"killed: no task inherits how another one's command ended", "cmd/lopen/internal/loop/killed.go",
		"return errors.Join(hold.Forget(), hold.Release())",
		"return errors.Join(hold.Release())",
		"./cmd/lopen/internal/loop", "TestNoTaskInheritsAnEnd",
	},
	{
		"decisions: the note comes before the plan", "lifecycle/decisions/decisions.go",
		"	if len(with) > len(all) {\n		err = write(dir, with)\n	}",
		"	if len(with) > len(all) {\n		defer func() { err = errors.Join(err, write(dir, with)) }()\n	}",
		"./lifecycle/decisions", "TestPowerCutWhileDeciding",
	},
	{
		"decisions: a command that fails withdraws its note", "lifecycle/decisions/decisions.go",
		"return len(all) > 0 && d.Seq <= all[len(all)-1].Seq });",
		"return true });",
		"./lifecycle/decisions", "TestACommandThatFailsDecidesNothing",
	},
	{
		"decisions: edits of the plan hold its lock", "lifecycle/decisions/decisions.go",
		"writer.LockWait(context.Background(), dir, lockFile, owner)",
		"writer.LockWait(context.Background(), dir, fmt.Sprint(lockFile, time.Now().UnixNano()), owner)",
		"./lifecycle/decisions", "TestEditsAtOnce",
	},
	{
		"decisions: the time is that of the lock", "lifecycle/decisions/decisions.go",
		"	unlock, err := lock(dir, owner)\n	if err != nil {\n		return nil, nil, err\n	}\n	defer unlock()\n	if before,",
		"	at := now()\n	now = func() time.Time { return at }\n	unlock, err := lock(dir, owner)\n	if err != nil {\n		return nil, nil, err\n	}\n	defer unlock()\n	if before,",
		"./lifecycle/decisions", "TestTheTimeOfADecision",
	},
	{
		"decisions: what came meanwhile is not forgotten", "lifecycle/decisions/decisions.go",
		"return !Among(taken, d) || ",
		"return ",
		"./lifecycle/decisions", "TestForget",
	},
	{
		"decisions: one that was taken says nothing more", "lifecycle/tasks/decide.go",
		" || same && t.Box == box {",
		" {",
		"./lifecycle/tasks", "TestDecided",
	},
	{
		"run: what a person decided about the task in progress stands", "cmd/lopen/internal/loop/attempt.go",
		"case ok && t.State == session.TaskInProgress:",
		"case ok && t.State != \"\":",
		"./cmd/lopen", "TestWhatBecomesOfEachEdit",
	},
	{
		"run: a mark of a skipped task is set back", "lifecycle/tasks/decide.go",
		"case when == Between:",
		"case true:",
		"./cmd/lopen", "TestWhatBecomesOfEachEdit",
	},
	{
		"inside: a command that hides its variables is found", "lifecycle/session.go",
		"range process.Above(childFile) {",
		"range process.Above(\"no such lock\") {",
		"./cmd/lopen", "TestScripts/inside",
	},
}
