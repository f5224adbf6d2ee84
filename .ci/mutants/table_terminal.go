package main

var ofTerminal = []mutant{
	{
		"terminal: what is not drawn is shown as text", "writer/plain/text.go",
		"return unicode.IsGraphic(r) || unicode.Is(unicode.Co, r)\n",
		"return true\n",
		"./cmd/lopen/internal/terminal", "TestText",
	},
	{
		"terminal: C1 and ESC as bytes are shown as text", "cmd/lopen/internal/terminal/stream.go",
		"\tv.s.device.out = plain.AppendRune(v.s.device.out, r, p[:n], v.json)\n",
		"\tv.s.device.out = append(v.s.device.out, p[:n]...)\n\t_, _ = r, plain.Line\n",
		"./cmd/lopen", "TestNothingSteersTheTerminal",
	},
	{
		"terminal: the colour that hides does not pass", "cmd/lopen/internal/terminal/color.go",
		"7, 9: // 8 hides",
		"7, 8, 9: // 8 hides",
		"./cmd/lopen/internal/terminal", "TestOutputOnATerminal",
	},
	{
		"terminal: a colour ends with its line", "cmd/lopen/internal/terminal/stream.go",
		"\td.draw(style{})\n\td.out = append(d.out, '\\n')\n",
		"\td.out = append(d.out, '\\n')\n",
		"./cmd/lopen/internal/terminal", "TestOutputOnATerminal",
	},
	{
		"terminal: a colour stays with its writer", "cmd/lopen/internal/terminal/stream.go",
		"\td.draw(v.want)\n",
		"\tif v.colored {\n\t\td.draw(v.want)\n\t}\n",
		"./cmd/lopen/internal/terminal", "TestColourStaysWithItsWriter",
	},
	{
		"terminal: a carriage return overwrites nothing", "cmd/lopen/internal/terminal/stream.go",
		"\tif v.s.device.inLine {\n",
		"\tif false {\n",
		"./cmd/lopen/internal/terminal", "TestOutputOnATerminal",
	},
	{
		"terminal: content is text there", "cmd/lopen/internal/terminal/stream.go",
		"\tif s.terminal {\n\t\treturn &s.text\n\t}\n",
		"",
		"./cmd/lopen/internal/terminal", "TestByteForByteIntoAPipe",
	},
	{
		"terminal: JSON is escaped", "cmd/lopen/json.go",
		"fmt.Fprintf(a.stdout.JSON(), \"%s\\n\", data)\n\treturn err",
		"fmt.Fprintf(a.stdout.Content(), \"%s\\n\", data)\n\treturn err",
		"./cmd/lopen", "TestNothingSteersTheTerminal",
	},
	{
		"terminal: a name is one line", "cmd/lopen/session_show.go",
		"plain.Line(meta.Name)",
		"plain.Line(\"\") + meta.Name",
		"./cmd/lopen", "TestNothingSteersTheTerminal",
	},
	{
		"approval: a command shows each byte", "writer/plain/shell.go",
		"case !showsAll(w):",
		"case false:",
		"./cmd/lopen", "TestScripts/forged",
	},
	{
		"approval: a gap of spaces is seen", "writer/plain/shell.go",
		" && !strings.Contains(s, gap)",
		"",
		"./writer/plain", "TestQuoteShowsWhatRuns",
	},
}
