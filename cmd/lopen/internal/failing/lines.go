// Package failing finds the lines of a check's output that say what failed.
package failing

import (
	"strings"

	"github.com/lopen-dev/lopen/writer/plain"
)

const (
	maxContext = 2   // lines after one that names what failed
	maxLine    = 300 // bytes
)

var (
	colors = plain.Pattern("\x1b\\[[0-9;:]*[A-Za-z]")

	// blank is a line without a word, or one of a source with its number.
	blank = plain.Pattern(`^([\s\pP\pS]*|\s*>?\s*\d+ \|.*)$`)

	// noise is what stands below each failure and says nothing of it, progress, and the
	// frames of a stack.
	noise = plain.Pattern(`^(` + strings.Join([]string{
		// go
		`FAIL|FAIL\t.*|ok  \t.*|\?   \t.*|PASS|exit status \d+|=== .*|\s*--- (PASS|SKIP).*|# \S+ \[.*|# \[.*`,
		`goroutine \d+ .*|created by .*|\[signal .*|\S+\(.*\)|\s+(\S*/)?[^\s/]+\.(go|s):\d+( \+0x.*)?`,
		// npm, node, jest
		`> .*|npm (err|error|ERR!|notice|warn).*|TAP version .*|# Subtest: .*|ok \d+ .*|# (tests|suites|pass|fail|cancelled|skipped|todo|duration_ms) .*|\d+\.\.\d+`,
		`\s*(duration_ms|location|failureType|code|name|operator|stack): .*|\s+at .*|\s+\S+ \(\S+:\d+(:\d+)?\)|\s+node:\S+`,
		`\s*[✓✔√] .*|(Time|Snapshots|Test Suites|Tests): .*|Ran all test suites.*`,
		// pytest
		`=+ .* =+|_+ .* _+|platform .*|rootdir: .*|plugins: .*|collect(ed|ing) .*|\S+ [.FEsxX]+ +\[ *\d+%\]`,
		// cargo
		`\s*(Compiling|Finished|Running|Downloading|Downloaded|Updating|Fetching|Checking|Building|Installing|Resolving|Doc-tests) .*`,
		`test result: .*|error: test failed, to rerun.*|error: could not compile.*|note: .*|running \d+ tests?|test .* \.\.\. (ok|ignored)|failures:`,
		`---- .* ----|stack backtrace:|\s+\d+: .*(::|main|start).*|For more information about this error.*`,
		`make(\[\d+\])?: \*\*\* .*`,
		`[\s\pP\pS]*\d{1,3}(\.\d+)?%.*`, // progress bars
	}, "|") + `)$`)

	// names is what says by itself what failed.
	names = plain.Pattern(strings.Join([]string{
		`^\s*--- FAIL: `, `^panic: `, `^\s+\S+_test\.go:\d+: `, `^(vet: )?\S+\.\w+:\d+(:\d+)?: `, // go, compilers
		`^FAILED `, `^E  `, `^ERROR `, // pytest
		`^not ok `, `^\s*(✖|✕|×|●) `, `^\s*(Expected|Received|expected|actual|received):`, // node, jest
		`^error(\[E\d+\])?: `, `^\s*--> `, ` panicked at `, `^assertion .* failed`, `^\s*(left|right): `, `^test .* \.\.\. FAILED`, // cargo
		`\b([A-Z]\w*)?(Error|Exception)(: |\[)`, `(?i)^\s*(fatal|error|failure|failed)\b`, `(?i)\b(error|fatal): `, `undefined: |cannot find|not found$|No such file`,
	}, "|"))
)

// First returns the first lines of an output that say what failed, at most n, as [Last] does.
func First(output string, n int) []string {
	lines := all(output)
	return undent(lines[:min(len(lines), n)])
}

// Last returns the last lines of an output that say what failed, at most n: those that
// name it with what follows them, or, where none does, the last ones that are no noise.
// Colours, and what a carriage return overwrites, are left out, and long lines cut.
func Last(output string, n int) []string {
	lines := all(output)
	return undent(lines[max(len(lines)-n, 0):])
}

func all(output string) []string {
	var useful, rest []string
	context := 0
	for text := range strings.Lines(output) {
		text = strings.TrimRight(text, "\r\n")
		text = text[strings.LastIndexByte(text, '\r')+1:]
		text = strings.TrimRight(colors().ReplaceAllString(text, ""), " \t")
		if blank().MatchString(text) {
			continue
		}
		if noise().MatchString(text) {
			context = 0
			continue
		}
		text = strings.ToValidUTF8(strings.ReplaceAll(text, "\t", "    "), "�")
		if len(text) > maxLine {
			text = plain.Clip(text, maxLine) + "…"
		}
		switch {
		case names().MatchString(text):
			useful, context = append(useful, text), maxContext
		case context > 0:
			useful = append(useful, text)
			context--
		default:
			rest = append(rest, text)
		}
	}
	if len(useful) == 0 {
		useful = rest
	}
	return useful
}

// undent takes away the indentation that all lines have in common.
func undent(lines []string) []string {
	common := -1
	for _, l := range lines {
		if n := len(l) - len(strings.TrimLeft(l, " ")); common < 0 || n < common {
			common = n
		}
	}
	for i := range lines {
		lines[i] = lines[i][common:]
	}
	return lines
}
