package main

var ofOutput = []mutant{
	{
		"output: credentials are hidden", "lifecycle/output/stream.go",
		"\t\tout, _ := s.w.redact.Bytes(text)\n\t\treturn out\n",
		"\t\treturn bytes.Clone(text)\n",
		"./lifecycle/output", "TestCredentialsAcrossWrites",
	},
	{
		"output: only whole lines are written", "lifecycle/output/stream.go",
		"n := bytes.LastIndexByte(s.held, '\\n') + 1",
		"n := len(s.held)",
		"./lifecycle/output", "TestCredentialsAcrossWrites",
	},
	{
		"output: a credential in pieces is not kept", "lifecycle/output/stream.go",
		"!bytes.HasPrefix(line, s.without)",
		"true",
		"./lifecycle/output", "TestEventsAreLeftOut",
	},
	{
		"output: what is no private key is not waited for", "lifecycle/output/stream.go",
		"open >= 0 && len(s.held)-open < maxOpen {",
		"open >= 0 {",
		"./lifecycle/output", "TestALineWithoutEnd",
	},
	{
		"output: an event stays JSON", "lifecycle/output/stream.go",
		"if line[0] != '{' && line[0] != '[' {",
		"if true {",
		"./lifecycle/output", "TestEventsStayJSON",
	},
	{
		"output: a line without an end is bounded", "lifecycle/output/stream.go",
		" || len(s.held) >= s.most {\n\t\ts.put",
		" {\n\t\ts.put",
		"./lifecycle/output", "TestALineWithoutEnd",
	},
	{
		"output: of much the middle is left out", "lifecycle/output/capped.go",
		"if len(c.parts) == 2 {",
		"if false {",
		"./lifecycle/output", "TestBeginAndEndOfMuch",
	},
	{
		"output: a name that is taken is left alone", "lifecycle/output/writer.go",
		"os.O_CREATE|os.O_EXCL|os.O_WRONLY",
		"os.O_CREATE|os.O_TRUNC|os.O_WRONLY",
		"./lifecycle/output", "TestTakenNames",
	},
	{
		"output: what succeeded goes first", "lifecycle/output/list.go",
		"if k.Outcome == record.Done {\n\t\treturn 0\n",
		"if k.Outcome == record.Done {\n\t\treturn 1\n",
		"./lifecycle/output", "TestTheOldestGo",
	},
	{
		"output: the newest stays", "lifecycle/output/list.go",
		"if k.Name == stays {",
		"if false {",
		"./lifecycle/output", "TestTheOldestGo",
	},
	{
		"output: a foreign file is read in part", "lifecycle/output/reader.go",
		"p = p[:min(int64(len(p)), max(r.end-r.at, 0))]",
		"p = p[:min(int64(len(p)), max(r.end-r.at, 64<<20))]",
		"./lifecycle/output", "TestAForeignFileIsReadInPart",
	},
	{
		"output: a compressed file is durable before the original goes", "lifecycle/output/compress.go",
		"writer.ReplaceFile(dir, to,",
		"writer.ReplaceUnsynced(dir, to,",
		"./lifecycle/output", "TestPowerCutWhileOutputIsCompressed",
	},
	{
		"output: what was pruned does not come back", "lifecycle/output/compress.go",
		"\t\treturn remove(dir, to)\n",
		"\t\treturn nil\n",
		"./lifecycle/output", "TestPrunedWhileItIsCompressed",
	},
	{
		"output: closing a session waits until outputs are compressed", "lifecycle/session.go",
		"\ts.store.awaitOutputs(ctx)\n",
		"",
		"./lifecycle", "TestCloseWaitsForOutputs",
	},
	{
		"output: closing a store waits until outputs are compressed", "lifecycle/store.go",
		"\ts.awaitOutputs(ctx)\n",
		"",
		"./lifecycle", "TestCloseWaitsForOutputs",
	},
	{
		"output: what gets no smaller stays as it is", "lifecycle/output/compress.go",
		"err != nil || packed >= int64(len(data)) {",
		"err != nil || packed < 0 {",
		"./lifecycle/output", "TestCompressedOutput",
	},
	{
		"output: a compressed file has no more than an output", "lifecycle/output/reader.go",
		"if err == nil && info.Size() > headBytes {",
		"if err == nil && info.Size() < 0 {",
		"./lifecycle/output", "TestForeignCompressedOutput",
	},
	{
		"output: the first failure ends it", "lifecycle/output/writer.go",
		"\tif w.err != nil {\n\t\treturn\n\t}\n\tf, err := newCapped",
		"\tf, err := newCapped",
		"./lifecycle/output", "TestAFailureEndsTheOutput",
	},
	{
		"output: the last of the disk is the state's", "lifecycle/output/writer.go",
		"err == nil && free < reserve",
		"err == nil && free < 1",
		"./cmd/lopen", "TestOutputLeavesRoomForTheState",
	},
	{
		"output: the raw output of what failed stays", "cmd/lopen/internal/loop/output.go",
		"then != record.Done || r.cfg.Transcript",
		"then == record.Done && r.cfg.Transcript",
		"./cmd/lopen", "TestScripts/output",
	},
}
