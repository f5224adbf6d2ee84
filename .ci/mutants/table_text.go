package main

// ofText are of texts that leave, and of credentials in them.
var ofText = []mutant{
	{
		"hint: a text in a command is quoted", ".ci/house/hints.go",
		"prose.MatchString(text[at:]) || s.safe(e)",
		"prose.MatchString(text[at:]) || true",
		"./.ci/house", "TestOpenHints",
	},
	{
		"hint: an old shell runs nothing of a word", "writer/plain/shell.go",
		"case Printable(r) && r != '\\'' &&",
		"case Printable(r) &&",
		"./writer/plain", "TestQuoteForAnOldShell",
	},
	{
		"text: what a hook tells the person is dead", "cmd/lopen/hook.go",
		"plain.Told(\"lopen: \" + r.Warn)",
		"plain.Text(\"lopen: \" + r.Warn)",
		"./cmd/lopen", "TestNothingAliveLeaves/hooks",
	},
	{
		"text: what a hook tells the agent is visible", "cmd/lopen/hook.go",
		"\"block\", plain.Told(r.Block)",
		"\"block\", r.Block",
		"./cmd/lopen", "TestNothingAliveLeaves/hooks",
	},
	{
		"text: an answer of a tool is dead", "cmd/lopen/internal/mcp/serve.go",
		"Text: plain.Told(clip(answer.Text, MaxText))",
		"Text: clip(answer.Text, MaxText)",
		"./cmd/lopen", "TestNothingAliveLeaves/tools",
	},
	{
		"text: an error of a tool is dead", "cmd/lopen/internal/mcp/serve.go",
		"errors.New(plain.Told(clip(strings.TrimSpace(err.Error()), maxError)))",
		"errors.New(clip(strings.TrimSpace(err.Error()), maxError))",
		"./cmd/lopen", "TestNothingAliveLeaves/tools",
	},
	{
		"text: the data of a tool is visible", "cmd/lopen/internal/mcp/serve.go",
		"return plain.Values(text), err",
		"_ = plain.Values\n\treturn text, err",
		"./cmd/lopen", "TestNothingAliveLeaves/tools",
	},
	{
		"text: an event is dead", "cmd/lopen/internal/loop/event.go",
		"lines[i] = plain.Markdown(lines[i])",
		"lines[i] = plain.Line(lines[i])",
		"./cmd/lopen/internal/loop", "TestEventsTellNothingAlive",
	},
	{
		"text: a report is dead", "cmd/lopen/internal/report/markdown.go",
		"\ttext := plain.Markdown(s)\n",
		"\ttext := plain.Line(s)\n",
		"./cmd/lopen/internal/report", "TestNothingIsAliveInAReport",
	},
	{
		"text: a report has no headings of others", "cmd/lopen/internal/report/markdown.go",
		"if len(words) > 0 && begins()",
		"if len(words) < 0 && begins()",
		"./cmd/lopen/internal/report", "TestNothingIsAliveInAReport",
	},
	{
		"text: a name in the Markdown of a session is dead", "cmd/lopen/session_show_format.go",
		"plain.Markdown(t.Name)",
		"plain.Line(t.Name)",
		"./cmd/lopen", "TestNothingAliveLeaves/report",
	},
	{
		"text: a link by its definition is alive", "writer/plain/markdown.go",
		"\\\\][(:[]|",
		"\\\\][(]|",
		"./writer/plain", "TestMarkdownIsDead",
	},
	{
		"text: a name is alive where it tells somebody", "writer/plain/markdown.go",
		"@\\\\w|",
		"",
		"./writer/plain", "TestMarkdownIsDead",
	},
	{
		"text: no line of a text ends its fence", "writer/plain/markdown.go",
		"max(most+1, 3)",
		"3",
		"./writer/plain", "TestToldIsDead",
	},
	{
		"text: what JSON escapes is visible as well", "writer/plain/json.go",
		"r != utf8.RuneError && Visible(r) {",
		"r != utf8.RuneError {",
		"./writer/plain", "TestValues",
	},
}
