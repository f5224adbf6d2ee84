package main

var ofTerminal = []mutant{
	{
		"terminal: what is not drawn is shown as text", "cmd/lopen/internal/plain/text.go",
		"return unicode.IsGraphic(r) || unicode.Is(unicode.Co, r)\n",
		"return true\n",
		"./cmd/lopen/internal/plain", "TestText",
	},
	{
		"terminal: C1 and ESC as bytes are shown as text", "cmd/lopen/internal/plain/stream.go",
		"\tv.s.device.out = appendRune(v.s.device.out, r, p[:n], v.json)\n",
		"\tv.s.device.out = append(v.s.device.out, p[:n]...)\n\t_ = r\n",
		"./cmd/lopen", "TestNothingSteersTheTerminal",
	},
	{
		"terminal: the colour that hides does not pass", "cmd/lopen/internal/plain/color.go",
		"7, 9: // 8 hides",
		"7, 8, 9: // 8 hides",
		"./cmd/lopen/internal/plain", "TestOutputOnATerminal",
	},
	{
		"terminal: a colour ends with its line", "cmd/lopen/internal/plain/stream.go",
		"\td.draw(style{})\n\td.out = append(d.out, '\\n')\n",
		"\td.out = append(d.out, '\\n')\n",
		"./cmd/lopen/internal/plain", "TestOutputOnATerminal",
	},
	{
		"terminal: a colour stays with its writer", "cmd/lopen/internal/plain/stream.go",
		"\td.draw(v.want)\n",
		"\tif v.colored {\n\t\td.draw(v.want)\n\t}\n",
		"./cmd/lopen/internal/plain", "TestColourStaysWithItsWriter",
	},
	{
		"terminal: a carriage return overwrites nothing", "cmd/lopen/internal/plain/stream.go",
		"\tif v.s.device.inLine {\n",
		"\tif false {\n",
		"./cmd/lopen/internal/plain", "TestOutputOnATerminal",
	},
	{
		"terminal: content is text there", "cmd/lopen/internal/plain/stream.go",
		"\tif s.terminal {\n\t\treturn &s.text\n\t}\n",
		"",
		"./cmd/lopen/internal/plain", "TestByteForByteIntoAPipe",
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
		"approval: a command shows each byte", "cmd/lopen/internal/trust/trust.go",
		"case !showsAll(w):",
		"case false:",
		"./cmd/lopen", "TestScripts/forged",
	},
	{
		"approval: a gap of spaces is seen", "cmd/lopen/internal/trust/trust.go",
		" && !strings.Contains(s, gap)",
		"",
		"./cmd/lopen/internal/trust", "TestQuoteShowsWhatRuns",
	},
}
