package redact

import "bytes"

// csvNames are the names of columns with secrets, as the header of a list that commas separate has them, in small
// letters; bars separate them. Behind a comma they are triggers, so the first column has none.
const csvNames = "password|passwd|passphrase|secret|client_secret|token|access_token|api_token|api_key|apikey|secret_key|secret access key|private_key"

func csvRules() (rules []rule) {
	for _, name := range split(csvNames) {
		for _, text := range []string{name, string(bytes.ToUpper([]byte(name))), string(bytes.ToUpper([]byte(name[:1]))) + name[1:]} {
			rules = append(rules, rule{trigger: "," + text, many: (*scanner).columnsByComma, apart: groupEscape})
		}
	}
	return append(rules, rule{trigger: `","`, many: (*scanner).columnsByComma, apart: groupEscape})
}

// columnsByComma is called within what may be the header of a list that commas separate: name,password,role. It hides
// what stands below the names of secrets, in rows that have as many cells.
func (s *scanner) columnsByComma(i int) int {
	b := s.b
	name := run(b, i, csvBefore, -1)
	if nameKind(b[name:run(b, name, csvName, maxName)]) == "" {
		return i + 1
	}
	l := lineOf(b, i)
	if l.end-l.at > maxHeader {
		return i + 1
	}
	kinds, cells := secretValues(b[l.word:l.end])
	end := min(len(b), l.next+maxTable)
	for l = l.below(b); len(kinds) > 0 && l.at < end; l = l.below(b) {
		row := b[l.word:l.end]
		if countValues(row) != cells {
			break
		}
		eachValue(row, func(n, from, to int) {
			if value := row[from:to]; kinds[n] != "" && !technical(value) {
				s.found(l.word+from, l.word+to, kinds[n])
			}
		})
	}
	if len(kinds) == 0 {
		return i + 1
	}
	return max(i+1, l.at-1)
}

// secretValues are the kinds of the values below a header that commas separate, by their numbers, and how many values a
// row has. It has no blanks behind the commas, as lists in prose and in programs have.
func secretValues(header []byte) (kinds map[int]string, cells int) {
	if run(header, 0, csvHeader, -1) < len(header) {
		return nil, 0
	}
	kinds = map[int]string{}
	eachValue(header, func(n, from, to int) {
		if kind := nameKind(header[from:to]); kind != "" && kind != "cookie" {
			kinds[n] = kind
		}
		if from == to || blank[header[from]] {
			cells = -maxHeader
		}
		cells++
	})
	if cells < 2 {
		return nil, 0
	}
	return kinds, cells
}

func countValues(row []byte) (n int) {
	eachValue(row, func(int, int, int) { n++ })
	return n
}

// eachValue calls fn with the values of a row, numbered, without the quotation marks around them.
func eachValue(row []byte, fn func(n, from, to int)) {
	for n, at := 0, 0; at <= len(row); n++ {
		from, to := at, len(row)
		if at < len(row) && row[at] == '"' {
			from++
			if k := bytes.IndexByte(row[from:], '"'); k >= 0 {
				fn(n, from, from+k)
				at = from + k + 2
				continue
			}
		}
		if k := bytes.IndexByte(row[from:], ','); k >= 0 {
			to = from + k
		}
		fn(n, from, to)
		at = to + 1
	}
}
