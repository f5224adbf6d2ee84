package redact

import "bytes"

// Tables, as psql, mysql, kubectl and people print them: a column of names beside one of values, or a column whose
// header names a secret.

// Bounds of a table and of a line that may be its header, in bytes.
const (
	maxTable  = 64 << 10
	maxHeader = 1 << 10
)

// nameEnds are the letters that the name of a secret ends with, and what tells a table's cell from prose: two blanks, a
// tab, a bar.
const nameEnds = "dDnNyYtTeElLsS0123456789"

var cellEnds = []string{"  ", " |", " │", "\t", "|"}

func tableRules() (rules []rule) {
	for _, c := range nameEnds {
		for _, end := range cellEnds {
			rules = append(rules, rule{trigger: string(c) + end, match: matchRow, apart: min(groupShort+len(end)-1, groupLong)})
		}
	}
	for _, end := range cellEnds {
		rules = append(rules, rule{trigger: "`" + end, match: matchRow, apart: min(groupShort+len(end)-1, groupLong)})
	}
	for c := 'A'; c <= 'Z'; c++ {
		rules = append(rules, rule{trigger: string(c) + "  ", many: (*scanner).columnsByPlace, apart: groupLong})
	}
	for _, line := range []string{"-+-", "|--", "|:-", "| -", "| :", "┼", "╪", "╋", "╬", "┿"} {
		rules = append(rules, rule{trigger: line, many: (*scanner).columnsByBar})
	}
	return rules
}

// matchRow is called at the last letter of a word that may be the first cell of a row: NAME   value.
func matchRow(b []byte, i int) (span, int) {
	next := i + 1
	if b[i] == '`' {
		next = i
	}
	start := afterEscape(b, skipBack(b, next, dotted, maxName))
	name := b[start:next]
	kind := nameKind(name)
	if kind == "" || kind == "cookie" || isResult(name) || !beginsLine(b, start) {
		return span{}, i + 1
	}
	from := run(b, next, cellGap, 2*maxName)
	from, to := cell(b, from)
	if l := lineOf(b, i); l.escaped {
		to = max(from, min(to, l.end))
	}
	if to < len(b) && b[to] == '(' || noValue(b[from:to]) {
		return span{}, i + 1 // a column of a database: password varchar(20)
	}
	return hideValue(b, i, from, to, kind, false)
}

// cell returns the text of the cell that begins at b[from], without what it is quoted with.
func cell(b []byte, from int) (int, int) {
	to := from
	for to < len(b) && to-from < maxQuoted && !cellEnd[b[to]] && !(blank[b[to]] && (to+1 == len(b) || cellGap[b[to+1]] || b[to+1] == '\n' || b[to+1] == '\r')) && !(b[to] == 0xe2 && bar(b, to)) {
		to++
	}
	return from, to
}

// bar reports whether a line of a box stands at b[i]: │, ┃ or ║.
func bar(b []byte, i int) bool {
	return i+2 < len(b) && b[i] == 0xe2 && (b[i+1] == 0x94 && (b[i+2] == 0x82 || b[i+2] == 0x83) || b[i+1] == 0x95 && b[i+2] == 0x91)
}

// noValue reports whether the cell beside a name has no value, but a type, a place or another name.
func noValue(cell []byte) bool {
	value := bare(cell)
	return technical(value) || isCode(value) || nameKind(value) != "" || bytes.Contains(value, []byte("://")) || len(value) > 0 && value[0] == '/'
}

// technical reports whether value is the name of a type or an algorithm with its size: varchar2, sha256, utf8.
func technical(value []byte) bool {
	letters := 0
	for letters < len(value) && (isLetter(value[letters]) || value[letters] == '-' || value[letters] == '_') {
		letters++
	}
	rest := value[letters:]
	return letters > 0 && len(rest) > 0 && run(rest, 0, digits, -1) == len(rest) && technicals[string(bytes.ToLower(value[:letters]))]
}

var technicals = func() map[string]bool {
	all := map[string]bool{}
	for _, s := range []string{"varchar", "nvarchar", "char", "nchar", "int", "uint", "float", "string", "bytes", "binary", "sha", "sha-", "sha_", "sha2-", "md", "base", "utf", "utf-", "oauth", "oauthv", "oauth_", "hmac-sha", "hs", "rs", "es", "ps", "aes", "aes-", "pbkdf", "argon", "ntlmv", "ipv", "socks", "pkcs", "x", "text", "column", "field", "value", "password", "secret", "token", "user", "version", "v"} {
		all[s] = true
	}
	return all
}()

// columnsByBar is called within the line below a table's header: ---+--- or |---|---|. It hides what stands in the
// columns whose headers name a secret.
func (s *scanner) columnsByBar(i int) int {
	b := s.b
	l := lineOf(b, i)
	header, ok := l.above(b)
	if !ok || l.end-l.at > maxHeader || !isRule(b[l.word:l.end]) {
		return max(i+1, l.end)
	}
	kinds := secretCells(b[header.word:header.end])
	end := min(len(b), l.next+maxTable)
	for l = l.below(b); len(kinds) > 0 && l.at < end; l = l.below(b) {
		row := b[l.word:l.end]
		if nextBar(row, 0) == len(row) {
			break
		}
		eachCell(row, func(n, from, to int) {
			if kind := kinds[n]; kind != "" && !noValue(row[from:to]) {
				s.found(l.word+from, l.word+to, kind)
			}
		})
	}
	return max(i+1, l.at)
}

// isRule reports whether a line is one between a table's header and its rows.
func isRule(line []byte) bool {
	return len(line) > 2 && run(line, 0, ruleLine, -1) == len(line) && (bytes.IndexByte(line, '-') >= 0 || line[0] == 0xe2)
}

// secretCells are the kinds of the cells of a header with bars that name a secret, by their numbers.
func secretCells(header []byte) map[int]string {
	kinds := map[int]string{}
	eachCell(header, func(n, from, to int) {
		if kind := nameKind(header[from:to]); kind != "" && kind != "cookie" {
			kinds[n] = kind
		}
	})
	return kinds
}

// found hides what is secret in a cell.
func (s *scanner) found(from, to int, kind string) {
	if found, _ := hideValue(s.b, from, from, to, kind, false); found.end > 0 {
		s.spans = append(s.spans, found)
	}
}

// eachCell calls fn with the cells of a row with bars, numbered, without the blanks around them.
func eachCell(row []byte, fn func(n, from, to int)) {
	at := run(row, 0, blank, -1)
	if at < len(row) && nextBar(row, at) == at {
		at += barLen(row, at)
	}
	for n := 0; at <= len(row); n++ {
		end := nextBar(row, at)
		from := run(row[:end], at, cellGap, -1)
		fn(n, from, max(from, skipBack(row, end, cellGap, end-from)))
		at = end + barLen(row, end)
	}
}

// nextBar returns where the next bar stands from row[at] on, the row's end for nowhere.
func nextBar(row []byte, at int) int {
	for at < len(row) && row[at] != '|' && !bar(row, at) {
		at++
	}
	return at
}

// barLen is the length of the bar at row[at].
func barLen(row []byte, at int) int {
	if bar(row, at) {
		return len("│")
	}
	return 1
}

// A column is where the values below a word of a header stand.
type column struct {
	from int
	kind string
}

// secretColumns are the columns of a header in capitals, NAME   TOKEN   AGE, that name a secret. The first one begins
// at header[at].
func secretColumns(header []byte, at int) (all []column) {
	cells := 0
	for ; at < len(header); cells++ {
		end := at
		for end < len(header) && !(blank[header[end]] && (end+1 == len(header) || blank[header[end+1]])) && header[end] != '\r' {
			end++
		}
		if run(header, at, headerWord, end-at) < end {
			return nil
		}
		if kind := nameKind(header[at:end]); kind != "" && kind != "cookie" {
			all = append(all, column{at, kind})
		}
		at = max(end+1, run(header, end, gap, -1))
	}
	if cells < 2 {
		return nil
	}
	return all
}

// columnsByPlace is called at the end of a word in capitals. If its line is a header, it hides what stands below the names
// of secrets.
func (s *scanner) columnsByPlace(i int) int {
	b := s.b
	l := lineOf(b, i)
	if l.end-l.at > maxHeader {
		return max(i+1, l.end)
	}
	columns := secretColumns(b[l.text:l.end], l.indent())
	end := min(len(b), l.next+maxTable)
	for l = l.below(b); len(columns) > 0 && l.at < end && l.word < l.end; l = l.below(b) {
		row := b[l.text:l.end]
		for _, c := range columns {
			if c.from < len(row) && (c.from <= l.indent() || blank[row[c.from-1]]) {
				if from, to := cell(row, c.from); !noValue(row[from:to]) {
					s.found(l.text+from, l.text+to, c.kind)
				}
			}
		}
	}
	return max(i+1, l.at-1)
}
