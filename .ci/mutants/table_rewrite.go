package main

var ofRewrite = []mutant{
	{
		"journal: a rewrite leaves later records out", "writer/journal/rewrite.go",
		"p.Records[:len(p.Records)-len(p.Above(w.Upto))]",
		"p.Records",
		"./writer/journal", "TestRewrittenJournals",
	},
	{
		"journal: a damaged journal is not rewritten", "writer/journal/rewrite.go",
		"f.Kind == Damaged && f.Seq > 0",
		"f.Kind == Torn && f.Seq > 0",
		"./writer/journal", "TestNoRewriteOfADamagedJournal",
	},
	{
		"journal: a rewrite notices that it has not all records", "writer/journal/rewrite.go",
		"w.last.Seq < w.Upto && !w.Entries",
		"false",
		"./writer/journal", "TestNoRewriteOfADamagedJournal",
	},
	{
		"journal: a rewrite begins again when records are dropped meanwhile", "writer/journal/rewrite.go",
		"h.Reduced && n > 0 && !w.list[n-1].Reduced",
		"h.Reduced && n < 0 && !w.list[n-1].Reduced",
		"./writer/journal", "TestDropDuringARewrite",
	},
	{
		"journal: a rewrite keeps what was appended together", "writer/journal/rewrite.go",
		"encodeRecord(w.buf[:0], r.Position, int64(r.synced), r.state",
		"encodeRecord(w.buf[:0], r.Position, 0, r.state",
		"./writer/journal", "TestRewrittenJournals",
	},
	{
		"journal: a rewrite writes no record that is too long", "writer/journal/rewrite.go",
		"len(body) > MaxBody",
		"false",
		"./writer/journal", "TestRewriteRefusesALongRecord",
	},
	{
		"journal: the segments of a rewrite are in its list", "writer/journal/rewrite.go",
		"err = writeList(to, w.list)",
		"err = to.SyncDir(\".\")",
		"./writer/journal", "TestRewrittenJournals",
	},
	{
		"carry: a rewrite of a session that changes begins again", "lifecycle/carry/rewrite.go",
		"!errors.Is(err, fs.ErrNotExist) || try == folder.Tries",
		"err == nil || try > 0",
		"./lifecycle", "TestRewriteBeginsAgain",
	},
	{
		"carry: a rewrite that begins again removes what it wrote", "lifecycle/carry/rewrite.go",
		"if err := w.to.RemoveAll(name); err != nil {",
		"if err := error(nil); err != nil {",
		"./lifecycle", "TestRewriteBeginsAgain",
	},
	{
		"carry: what was written anew is loaded", "lifecycle/carry/rewrite.go",
		"return w.check(ld)",
		"return nil",
		"./lifecycle", "TestRewriteThatCannotBeLoaded",
	},
	{
		"carry: a message that was left out has no content", "lifecycle/carry/appended.go",
		"	m.Content = session.Text(leftOut)\n",
		"",
		"./lifecycle", "TestWithoutMessages",
	},
	{
		"carry: an event that was left out has no content", "lifecycle/carry/appended.go",
		"	if !t.NoMessages {\n\t\tnow, _, err := t.Redact.JSON(object)",
		"	if true {\n\t\tnow, _, err := t.Redact.JSON(object)",
		"./lifecycle", "TestWithoutMessages",
	},
	{
		"carry: a member that is not known is redacted", "lifecycle/carry/texts.go",
		"return object[1 : len(object)-1]",
		"return append(member, object[:0]...)",
		"./lifecycle", "TestNoCredentialIsLeft",
	},
	{
		"carry: the ID of a task is redacted", "lifecycle/carry/texts.go",
		"		t.apply((*texts).taskIDs)",
		"		t.out = append(t.out, t.r.Value()...)",
		"./lifecycle", "TestNoCredentialIsLeft",
	},
	{
		"carry: the words of a command are redacted as such", "lifecycle/carry/texts.go",
		"	argv, n := t.Redact.Args(argv)",
		"	_, n := t.Redact.String(value)",
		"./lifecycle", "TestNoCredentialIsLeft",
	},
	{
		"carry: the paths of a rewind are redacted", "lifecycle/carry/texts.go",
		"all[i], _ = t.Redact.Bytes(all[i])",
		"_, _ = t.Redact.Bytes(all[i])",
		"./lifecycle", "TestNoCredentialIsLeft",
	},
	{
		"carry: a redacted text fits into its field", "lifecycle/carry/texts.go",
		"return quoted(strings.ToValidUTF8(text[:most], \"\"))",
		"return now",
		"./lifecycle", "TestRedactedTextsFit",
	},
	{
		"carry: another folder's name that begins alike is none of the project's", "lifecycle/carry/texts.go",
		"		if whole {",
		"		if whole || true {",
		"./lifecycle", "TestPathsOfTheProject",
	},
	{
		"output: a copy hides credentials in what it says of an attempt", "lifecycle/output/copy.go",
		"out = append(out, hidden...)",
		"out = append(append(out, line...), hidden[:0]...)",
		"./lifecycle/output", "TestCopyOfOutput",
	},
}
