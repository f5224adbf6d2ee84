package redact

import "bytes"

// Open returns where the line begins from which on a text, of whole lines, may go on with a credential: a private key
// that has not ended, a table with a column of secrets, a name whose value stands on the next lines. It returns -1 where
// it does not.
func Open(text []byte) int {
	if at := openKey(text); at >= 0 {
		return at
	}
	at := -1
	for _, open := range []func([]byte) int{openBlock, openTable, openStatement, openName} {
		if n := open(text); n >= 0 && (at < 0 || n < at) {
			at = n
		}
	}
	return at
}

// openKey is where the line begins with which the last private key begins that has not ended, -1 for none.
func openKey(text []byte) int {
	at := -1
	for i := range armors {
		a := &armors[i]
		n := bytes.LastIndex(text, []byte(a.open))
		if n > at && bytes.Contains(text[n:min(len(text), n+64)], []byte(pemLabel)) && !bytes.Contains(text[n:], []byte(a.close)) {
			at = n
		}
	}
	if n := bytes.LastIndex(text, []byte(puttyOpen)); n > at && !bytes.Contains(text[n:], []byte(puttyClose)) {
		at = n
	}
	if at < 0 {
		return -1
	}
	return bytes.LastIndexByte(text[:at], '\n') + 1
}

// lastLines calls fn with the lines of a text, the last one first, until it returns false or so many bytes were
// looked at. Lines end with a newline that is not escaped.
func lastLines(text []byte, most int, fn func(l line) bool) {
	for end := len(text); end > max(0, len(text)-most); {
		l := line{at: bytes.LastIndexByte(text[:end-1], '\n') + 1}
		end = l.at
		l.findEnd(text, false)
		l.findText(text, l.end)
		if !fn(l) {
			return
		}
	}
}

// openBlock is where a block scalar of YAML with a secret's name begins whose lines may go on.
func openBlock(text []byte) (open int) {
	open = -1
	least := maxQuoted // indentation of the lines below
	lastLines(text, maxQuoted, func(l line) bool {
		if l.word == l.end {
			return true
		}
		in, line := l.indent(), text[l.text:l.end]
		if sign := bytes.LastIndexByte(line, ':'); in < least && sign >= 0 && nameKind(nameBefore(line, sign)) != "" {
			if _, _, _, ok := blockScalar(line, sign+1); ok {
				open = l.at
			}
		}
		least = min(least, in)
		return least > 0
	})
	return open
}

// openTable is where the header of a table with a column of secrets begins that may go on.
func openTable(text []byte) (open int) {
	open = -1
	var below []byte
	rows, cells := 0, 0 // below, and how many values each of them has, 0 where they differ
	lastLines(text, maxTable, func(l line) bool {
		if l.word == l.end {
			return false
		}
		line := text[l.word:l.end]
		if below == nil || isRule(below) {
			if nextBar(line, 0) < len(line) && len(secretCells(line)) > 0 {
				open = l.at
			}
		}
		if len(secretColumns(line, 0)) > 0 {
			open = l.at
		}
		if kinds, n := secretValues(line); len(kinds) > 0 && (rows == 0 || n == cells) {
			open = l.at
		}
		if n := countValues(line); rows == 0 {
			cells = n
		} else if n != cells {
			cells = 0
		}
		rows++
		below = line
		return true
	})
	return open
}

// openStatement is where the last statement of SQL begins that puts something into a column of secrets and has not ended.
func openStatement(text []byte) int {
	at := max(bytes.LastIndex(text, []byte("INSERT INTO ")), bytes.LastIndex(text, []byte("insert into ")))
	if at < 0 || bytes.IndexByte(text[at:], ';') >= 0 {
		return -1
	}
	if _, kinds := insertColumns(text, at); len(kinds) == 0 {
		return -1
	}
	return bytes.LastIndexByte(text[:at], '\n') + 1
}

// openName is where the last lines begin that are the first half of a pair: an element of XML that has been opened, the name of
// a variable above its value, words of a netrc.
func openName(text []byte) (open int) {
	open = -1
	lastLines(text, maxCommand, func(l line) bool {
		line := bytes.TrimSpace(text[l.word:l.end])
		word, _, _ := bytes.Cut(line, []byte(" "))
		switch string(word) {
		case "machine", "default", "login":
			open = l.at
			return true
		}
		if open >= 0 || len(line) == 0 {
			return len(line) == 0 && open < 0
		}
		if low := bytes.ToLower(line); bytes.HasSuffix(line, []byte("PASSWORD")) || bytes.HasSuffix(low, []byte("identified by")) || bytes.HasSuffix(low, []byte(" password")) && near(text, l.end, users) {
			open = l.at
			return false
		}
		line = bytes.TrimRight(line, ",>")
		end := len(line)
		if name := nameAt(line, &end); nameKind(name) != "" && len(line) > 0 && (line[0] == '<' || bytes.Contains(line, []byte("name"))) {
			open = l.at
		}
		return false
	})
	return open
}
