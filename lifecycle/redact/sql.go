package redact

import "bytes"

// maxStatement bounds how much of a statement of SQL is looked at.
const maxStatement = 64 << 10

// insertInto is called at "INSERT INTO " and hides what is put into columns whose names are those of secrets: INSERT
// INTO users (name, password) VALUES ('bob', 'x').
func (s *scanner) insertInto(i int) int {
	b := s.b[:min(len(s.b), i+maxStatement)]
	at, kinds := insertColumns(b, i)
	if len(kinds) == 0 || len(b)-at < len("VALUES") || !bytes.EqualFold(b[at:at+len("VALUES")], []byte("VALUES")) {
		return at
	}
	for at = spaceEnd(b, at+len("VALUES")); at < len(b) && b[at] == '('; {
		at = eachItem(b, at+1, func(n, from, to int) {
			if kinds[n] == "" {
				return
			}
			if from, to, quoted := valueAfter(b[:to], from, kinds[n]); quoted && !technical(b[from:to]) {
				s.found(from, to, kinds[n])
			}
		})
		if at = spaceEnd(b, at); at < len(b) && b[at] == ',' {
			at = spaceEnd(b, at+1)
		}
	}
	return at
}

// insertColumns returns the kinds of the columns that the statement at b[i] names, by their numbers, and where what
// stands behind them begins.
func insertColumns(b []byte, i int) (at int, kinds map[int]string) {
	at = runUntil(b[:min(len(b), i+maxAuthority)], i+len("INSERT INTO "), tableEnd)
	if at == len(b) || b[at] != '(' {
		return at, nil
	}
	kinds = map[int]string{}
	at = eachItem(b[:min(len(b), at+maxHeader)], at+1, func(n, from, to int) {
		name := bytes.Trim(b[from:to], "`\"[] ")
		if kind := nameKind(name); kind != "" && kind != "cookie" && run(name, 0, dash, -1) == len(name) {
			kinds[n] = kind
		}
	})
	return spaceEnd(b, at), kinds
}

// eachItem calls fn with the items, numbered, of a list that ends with a bracket, without the space around them. It
// returns where the list ends.
func eachItem(b []byte, at int, fn func(n, from, to int)) int {
	for n := 0; at < len(b); n++ {
		from := spaceEnd(b, at)
		at = itemEnd(b, from)
		fn(n, from, max(from, skipBack(b, at, space, at-from)))
		if at < len(b) && b[at] == ')' {
			return at + 1
		}
		at++
	}
	return len(b)
}

// itemEnd returns where the item of a list ends that begins at b[at]: at a comma or the bracket that closes the list,
// but not within a string or within brackets.
func itemEnd(b []byte, at int) int {
	depth := 0
	for ; at < len(b); at++ {
		switch c := b[at]; {
		case c == '\'' || c == '"' || c == '`':
			for at++; at < len(b) && b[at] != c; at++ {
				if b[at] == '\\' {
					at++
				}
			}
		case c == '(':
			depth++
		case c == ')' && depth > 0:
			depth--
		case c == ')', c == ',' && depth == 0:
			return at
		}
	}
	return len(b)
}

// dollarQuoted returns what stands between the signs that open at b[i]: $$text$$, $tag$text$tag$.
func dollarQuoted(b []byte, i int) (from, to int, ok bool) {
	if i >= len(b) || b[i] != '$' {
		return 0, 0, false
	}
	from = run(b, i+1, word, maxName) + 1
	if from > len(b) || b[from-1] != '$' {
		return 0, 0, false
	}
	n := bytes.Index(b[from:min(len(b), from+maxQuoted)], b[i:from])
	return from, from + n, n > 0
}
