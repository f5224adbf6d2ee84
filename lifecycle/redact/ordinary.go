package redact

import "bytes"

// What tools print that looks like a name and its secret and is none: results of tests, folders, versions, times.

// isResult reports whether name is what automake, DejaGnu, jest and others print before the name of a test that passed.
func isResult(name []byte) bool { return string(name) == "PASS" }

// reportsResult reports whether the colon b[i] stands behind the result of a test. It does at the beginning of a line,
// behind a time and behind "---". Elsewhere the value must be what tests are called, as PASS is a variable's name too.
func reportsResult(b []byte, i int) bool {
	from, to, quoted := valueAfter(b, i+1, "")
	if quoted {
		return false
	}
	start := skipBack(b, skipBack(b, i, blank, maxGap), letters, maxName)
	l := lineOf(b, start)
	switch before := b[l.text:start]; {
	case l.text == start, bytes.HasSuffix(before, []byte("--- ")):
		return true
	case run(before, 0, timeChar, -1) == len(before) && bytes.ContainsAny(before, "0123456789"):
		return true
	}
	value := b[from:to]
	called := len(value) > 4 && bytes.EqualFold(value[:4], []byte("test")) || run(value, 0, alnum, -1) < len(value)
	return called && run(value, 0, testName, -1) == len(value)
}

// inPath reports whether the colon b[i] is the first one of a path in a language or of a test: token::refresh.
func inPath(b []byte, i int) bool {
	return i+2 < len(b) && b[i+1] == ':' && (isLetter(b[i+2]) || b[i+2] == '_')
}

// isPath reports whether value is a path that begins with a tilde, dots or a drive, or an absolute one whose first word
// is no random one.
func isPath(value []byte) bool {
	at := run(value, 0, pathBegin, 3)
	if len(value) > 2 && isLetter(value[0]) && value[1] == ':' {
		at = run(value, 2, slash, 2)
	}
	if at == 0 || !slash[value[at-1]] || run(value, at, pathChar, -1) < len(value) {
		return false
	}
	to := run(value, at, dash, -1)
	u, _, _ := cases(value[min(at+1, to):to])
	return !slash[value[0]] || to > at && !u && !isDigit(value[at])
}

// units are those of times and sizes.
var units = []string{"", "%", "ns", "us", "µs", "ms", "s", "m", "h", "B", "kB", "KB", "MB", "GB", "KiB", "MiB", "GiB", "ns/op", "B/op"}

// isMeasure reports whether value is a version or a range of them, a time, a size, or an address in memory: ^1.2.3, 12.34ms, 0xc000123456.
func isMeasure(value []byte) bool {
	const maxAddress = 16
	if hexes, ok := bytes.CutPrefix(value, []byte("0x")); ok {
		return len(hexes) <= maxAddress && run(hexes, 0, hex, -1) == len(hexes)
	}
	at := run(value, 0, versionBegin, 3)
	end := run(value, at, digits, -1)
	dots := 0
	for end > at && end+1 < len(value) && value[end] == '.' && isDigit(value[end+1]) {
		end = run(value, end+1, digits, -1)
		dots++
	}
	switch {
	case end == at:
		return false
	case dots > 1: // a version
		return run(value, end, versionEnd, -1) == len(value)
	case dots == 1:
	case end-at > 4 || at > 0:
		return false // a number that is no time may be a password
	}
	for _, unit := range units {
		if string(value[end:]) == unit {
			return true
		}
	}
	return false
}
