package redact

import "bytes"

// maxGap bounds the blanks between a name, its sign and its value.
const maxGap = 32

// maxQuoted bounds how far the end of a quoted value is looked for.
const maxQuoted = 4096

// matchAssignment is called at ":" and "=": it looks at the name before and the
// value behind, as in NAME=value, "name": "value", name := `value`, name => 'v'
// and Authorization: Basic value.
func matchAssignment(b []byte, i int) (span, int) {
	name := nameBefore(b, i)
	kind := nameKind(name)
	if kind == "" && i+1 < len(b) && b[i+1] == '\'' {
		return matchFernet(b, i)
	}
	if kind == "" || b[i] == ':' && (inPath(b, i) || isResult(name) && reportsResult(b, i)) {
		return span{}, i + 1
	}
	at := i + 1
	if b[i] == ':' {
		if from, to, value, ok := blockScalar(b, at); ok {
			if _, _, ok = secretIn(kind, value, true); !ok || to == 0 {
				return span{}, at
			}
			return span{start: from, end: to, rank: rankContext, kind: kind}, to
		}
		if at = properties(b, at); isTag(b, at) {
			return span{}, at
		}
	}
	from, to, quoted := valueAfter(b, at, kind)
	return hideValue(b, i, from, to, kind, quoted)
}

// hideValue hides what is secret in the value b[from:to] behind the sign b[i].
func hideValue(b []byte, i, from, to int, kind string, quoted bool) (span, int) {
	value := b[from:min(to, from+maxQuoted)]
	plain := bare(value)
	at, end, ok := secretIn(kind, plain, quoted)
	if !ok || to > from && to < len(b) && b[to] == '{' && b[to-1] == '$' { // the begin of a variable
		return span{}, i + 1
	}
	if len(plain) < len(value) {
		at = 0
	} else if end < len(plain) {
		to = from + end
	}
	return span{start: from + at, end: to, rank: rankContext, kind: kind}, to
}

// nameBefore returns the name that ends before b[i], past blanks, closing quotes, which
// are escaped when JSON stands within JSON, and the rest of a sign such as "?=". A type
// is no name, and value="..." has the name of what stands before it.
func nameBefore(b []byte, i int) []byte {
	end := skipBack(b, i, blank, maxGap)
	if i < len(b) && b[i] == '=' {
		end = skipBack(b, skipBack(b, end, operator, maxGap), blank, maxGap)
	}
	name := nameAt(b, &end)
	switch string(name) {
	case "string", "String", "str":
		end = skipBack(b, end, beforeType, maxGap)
		name = nameAt(b, &end)
	case "value", "Value":
		end = skipBack(b, lineStart(b, end), beforeValue, maxGap)
		name = nameAt(b, &end)
	}
	return name
}

// nameAt returns the name that ends at b[*end] and sets end to where it begins.
func nameAt(b []byte, end *int) []byte {
	to := skipBack(b, *end, closing, maxGap)
	*end = skipBack(b, to, dotted, maxName)
	return b[*end:to]
}

// skipBack returns where the run of chars that ends at b[i] begins, looking at most n bytes
// far.
func skipBack(b []byte, i int, chars *class, n int) int {
	for stop := max(0, i-n); i > stop && chars[b[i-1]]; {
		i--
	}
	return i
}

// valueAfter returns the value that begins behind the sign which ends at b[i].
func valueAfter(b []byte, i int, kind string) (from, to int, quoted bool) {
	for n := 0; n < 3 && i < len(b) && (b[i] == '=' || b[i] == '>' || b[i] == ':'); n++ {
		i++
	}
	i = run(b, i, gap, maxGap)
	open := run(b, i, quotePrefix, 2)
	if open == len(b) || b[open] != '"' && b[open] != '\'' {
		open = i
	}
	if from, to, ok := quotedAt(b, &open); ok {
		return from, to, true
	}
	i = open
	from = i
	switch kind {
	case "authorization":
		i += scheme(b[i:])
	case "cookie":
		return from, runUntil(b[:min(len(b), i+maxQuoted)], i, lineEnd), false
	}
	return from, runUntil(b, i, valueEnd), false
}

// quotedAt returns what stands between the quotes that open at b[*i]. Where they do not
// close, i is set to what is left of the value.
func quotedAt(b []byte, i *int) (from, to int, ok bool) {
	open := *i
	for open < len(b) && open-*i < 8 && b[open] == '\\' {
		open++
	}
	if open < len(b) && (b[open] == '"' || b[open] == '\'' || b[open] == '`') {
		// An escaped quote ends at the same escaped quote.
		quote, from := b[*i:open+1], open+1
		if open+2 < len(b) && b[open+1] == b[open] && b[open+2] == b[open] && open == *i { // three of them
			from = open + 3
		}
		text := b[from:min(len(b), from+maxQuoted)]
		if n := bytes.Index(text, quote); n >= 0 && bytes.IndexByte(text[:n], '\n') < 0 {
			return from, from + n, true
		}
		*i = from
	}
	return 0, 0, false
}

// matchElement is called at ">" and looks at <name>value<, also on lines.
func matchElement(b []byte, i int) (span, int) {
	if i == 0 || !alnum[b[i-1]] {
		return span{}, i + 1
	}
	start := skipBack(b, i, dotted, maxName)
	if start == 0 || b[start-1] != '<' {
		return span{}, i + 1
	}
	kind := nameKind(b[start:i])
	if kind == "" || kind == "cookie" {
		return span{}, i + 1
	}
	from := i + 1
	for n := 0; n < maxGap && from < len(b) && b[from] <= ' ' && b[from] != mark; n++ {
		if b[from] == '\n' {
			from = lineOf(b, from).below(b).word
		} else {
			from++
		}
	}
	text := b[from:min(len(b), from+maxQuoted)]
	end := bytes.IndexByte(text, '<')
	if end < 0 { // the rest comes later
		end = runUntil(text, 0, lineEnd)
	}
	text = text[:max(from, lineStart(b, from+end))-from]
	text = bytes.TrimRight(text, " \t\r\n")
	return hideValue(b, i, from, from+len(text), kind, true)
}

// matchSecond is called at a quote and a comma: set("name", "value").
func matchSecond(b []byte, i int) (span, int) {
	end := i
	name := nameAt(b, &end)
	kind := nameKind(name)
	if kind == "" || kind == "cookie" || end == 0 || b[end-1] != b[i] {
		return span{}, i + 1
	}
	at := run(b, i+2, blank, maxGap)
	from, to, ok := quotedAt(b, &at)
	first := skipBack(b, end-1, blank, maxGap)
	call := first > 0 && b[first-1] == '('
	if value := bare(b[from:to]); !ok || !randomToken(value) && !isUUID(value) && (kind != "password" || !call || technical(value)) {
		return span{}, i + 1
	}
	return hideValue(b, i, from, to, kind, true)
}

// matchCall is called at a bracket and a quotation mark: setPassword("value"), apiKey('value'). What else is done with a
// secret, find it, check it or hash it, is called by its name.
func matchCall(b []byte, i int) (span, int) {
	start := skipBack(b, i, word, maxName)
	name := b[start:i]
	kind := nameKind(name)
	if kind == "" {
		kind = callKind(b, start, name)
	} else if kind == "cookie" || !setter(name) {
		kind = ""
	}
	if kind == "" {
		return span{}, i + 1
	}
	from, to, quoted := valueAfter(b, i+1, kind)
	value := bare(b[from:to])
	if !quoted || technical(value) {
		return span{}, i + 1
	}
	if kind == "discord-token" && !isBotToken(value) {
		return span{}, i + 1
	}
	return hideValue(b, i, from, to, kind, true)
}

// callKind returns the kind of what a function is given whose name says nothing of a secret: bot.run("value"), and
// password = crypt('value', ...) of SQL.
func callKind(b []byte, start int, name []byte) string {
	switch string(name) {
	case "run", "login", "start":
		if start > 0 && b[start-1] == '.' {
			return "discord-token"
		}
	case "crypt", "CRYPT":
		if near(b, start, "password|passwd|insert into") {
			return "password"
		}
	}
	return ""
}

// setter reports whether the function of a name is given a secret: setPassword, withToken, password.
func setter(name []byte) bool {
	for i, c := range name {
		if c == '_' || i > 0 && isUpper(c) && isLower(name[i-1]) {
			switch string(bytes.ToLower(name[:i])) {
			case "set", "with", "api":
				return true
			}
			return false
		}
	}
	return true
}

// matchForm is called at a quotation mark at the end of a line: name="password" of a part of a form, which an empty line
// and its value follow.
func matchForm(b []byte, i int) (span, int) {
	end := i
	kind := nameKind(nameAt(b, &end))
	if kind == "" || kind == "cookie" || end == 0 || b[end-1] != '"' || !bytes.HasSuffix(b[:end-1], []byte("name=")) {
		return span{}, i + 1
	}
	l := lineOf(b, i)
	signed := l.word > l.text
	if l = l.below(b); l.word < l.end {
		return span{}, i + 1
	}
	l = l.below(b)
	from := l.text
	if signed {
		from = l.word
	}
	return hideValue(b, i, from, runUntil(b[:l.end], from, lineEnd), kind, true)
}

// runUntil returns the end of the run, from i on, of bytes that are not in c.
func runUntil(b []byte, i int, c *class) int {
	for i < len(b) && !c[b[i]] {
		i++
	}
	return i
}
