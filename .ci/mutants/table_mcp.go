package main

// ofMCP are the mechanisms that keep a server of tools within its bounds, and credentials in.
var ofMCP = []mutant{
	{
		"mcp: a line without an end is not kept", "cmd/lopen/internal/mcp/conn.go",
		"long = long || len(data)+len(part) > maxMessage; long",
		"long = long || len(data)+len(part) > maxMessage; false",
		"./cmd/lopen/internal/mcp", "TestLongLine",
	},
	{
		"mcp: requests that wait are bounded", "cmd/lopen/internal/mcp/conn.go",
		"	if !c.wait(ctx) {\n		return nil, io.EOF\n	}\n	c.mu.Lock()",
		"	c.mu.Lock()",
		"./cmd/lopen/internal/mcp", "TestPendingIsBounded",
	},
	{
		"mcp: garbage does not end the server", "cmd/lopen/internal/mcp/conn.go",
		"return nil, c.refuse(nil, jsonrpc.CodeParseError, err)",
		"return nil, err",
		"./cmd/lopen/internal/mcp", "TestHostileLines",
	},
	{
		"mcp: the end waits for the answers", "cmd/lopen/internal/mcp/conn.go",
		"				c.drain(ctx)\n",
		"",
		"./cmd/lopen/internal/mcp", "TestEndAnswersFirst",
	},
	{
		"mcp: all tools say that they only read", "cmd/lopen/internal/mcp/serve.go",
		"ReadOnlyHint: true, ",
		"",
		"./cmd/lopen/internal/mcp", "TestTools",
	},
	{
		"mcp: an answer is bounded", "cmd/lopen/internal/mcp/tools.go",
		"if len(text) <= most {",
		"if len(text) <= most*100 {",
		"./cmd/lopen/internal/mcp", "TestTools",
	},
	{
		"mcp: credentials in files are hidden before they are compared", "cmd/lopen/mcp_changes.go",
		"text, _ = hide.String(text); return text",
		"return text",
		"./cmd/lopen", "TestMCPTools",
	},
	{
		"mcp: what is hidden is hidden in the whole file", "lifecycle/checkpoint/patch.go",
		"	if a, b = show(a), show(b); differ && a == b {",
		"	if show(a) == show(b) && differ {",
		"./cmd/lopen", "TestMCPTools",
	},
	{
		"mcp: a large diff is cut", "cmd/lopen/mcp_changes.go",
		"if size+more > room {",
		"if false {",
		"./cmd/lopen", "TestMCPIsBounded",
	},
	{
		"mcp: a diff is measured as it is in the data", "cmd/lopen/mcp_changes.go",
		"more := sizeAsJSON(patch)",
		"more := len(patch)",
		"./cmd/lopen", "TestMCPIsBounded",
	},
	{
		"mcp: names of files fit into an answer", "cmd/lopen/mcp_changes.go",
		"i == limit || size > maxFiles {",
		"i == limit {",
		"./cmd/lopen", "TestMCPIsBounded",
	},
	{
		"mcp: a record of the log, and an attempt, fit into an answer", "cmd/lopen/mcp_log.go",
		"if size = len(data); err != nil || size <= most {",
		"if size = len(data); true {",
		"./cmd/lopen", "TestMCPIsBounded",
	},
	{
		"mcp: the hits of a search fit into an answer", "cmd/lopen/mcp_search.go",
		"if size += len(data); size > mcp.MaxText {",
		"if size += len(data); false {",
		"./cmd/lopen", "TestMCPSearchSaysWhatIsLeftOut",
	},
	{
		"mcp: records that are missing are a gap of the log", "writer/journal/gaps.go",
		"			all = append(all, Gap{next, seq - 1})\n",
		"			continue\n",
		"./writer/journal", "TestLineThatIsGone",
	},
	{
		"mcp: damage among what was not dropped is a gap of the log", "writer/journal/gaps.go",
		"f.Kind == Damaged && f.Seq > 0 && f.Seq < l.begin",
		"false",
		"./writer/journal", "TestEveryByteOfAPackedSegment",
	},
	{
		"mcp: a lost end of the log is a gap", "writer/journal/gaps.go",
		"		all = append(all, Gap{First: next})\n",
		"",
		"./writer/journal", "TestNewestSegmentIsLost",
	},
	{
		"mcp: a record that is damaged is not just missing", "cmd/lopen/session_log_one.go",
		"if g.Has(seq) {",
		"if false {",
		"./cmd/lopen", "TestScripts/damage",
	},
	{
		"mcp: damage of the log is named", "cmd/lopen/mcp.go",
		"range gaps {",
		"range gaps[:0] {",
		"./cmd/lopen", "TestMCPNamesDamage",
	},
	{
		"mcp: warnings are in the data as well", "cmd/lopen/mcp.go",
		"	data.warn(lines)\n",
		"",
		"./cmd/lopen", "TestMCPNamesDamage",
	},
	{
		"mcp: warnings are bounded", "cmd/lopen/mcp.go",
		"size > maxWarnings {",
		"false {",
		"./cmd/lopen", "TestWarningsAreBounded",
	},
	{
		"mcp: the tools of a hit are bounded", "cmd/lopen/mcp_search.go",
		"plain.Clip(hits[i].Tool, 500)",
		"plain.Clip(hits[i].Tool, 1<<20)",
		"./cmd/lopen", "TestMCPSearchSaysWhatIsLeftOut",
	},
	{
		"mcp: a record that is asked for fits into an answer", "cmd/lopen/mcp_record.go",
		"|| len(all) <= maxRecord {",
		"|| true {",
		"./cmd/lopen", "TestMCPOneRecord",
	},
}
