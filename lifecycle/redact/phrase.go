package redact

import "bytes"

// A phrase is what stands right before a password in a language or on a command line, where no sign stands between: one
// of some texts, separated by bars.
type phrase struct {
	kind, texts string
	value       form
	near        string // what must stand on the line before, in small letters; one of some
}

// A form is how the value behind a phrase is written, and what makes it a secret.
type form int

const (
	quotedWord  form = iota // between quotation marks, any word but those of documentation
	quotedLike              // between quotation marks, and as a password is
	anyLike                 // also without them
	nextLike                // the word behind the next one, as a password is
	fernetShape             // between quotation marks, 32 bytes in base64
	signWord                // as quotedWord, behind the next =
	colonLike               // as anyLike, behind the next colon
)

// users are the statements of SQL about users.
const users = "create user|alter user|create role|alter role|create login|alter login|grant |set password|change master"

var phrases = []phrase{
	{"password", "PASSWORD |PASSWORD\n|PASSWORD\r\n", quotedWord, ""},
	{"password", "PASSWORD(|PASSWORD (", quotedWord, ""},
	{"password", "password |password\n", quotedWord, users},
	{"password", "password ", quotedLike, ""},
	{"password", "password(", quotedWord, users},
	{"password", "IDENTIFIED BY |IDENTIFIED BY\n|IDENTIFIED BY\r\n", quotedWord, ""},
	{"password", "IDENTIFIED BY ", anyLike, ""},
	{"password", "identified by ", quotedWord, users},
	{"password", "identified by ", anyLike, users},
	{"password", "BY '|BY \"|by '|by \"", quotedWord, "identified with|identified via"},
	{"password", "ConvertTo-SecureString |-SecureString -String ", quotedLike, ""},
	{"password", "/user:|/USER:", nextLike, "net use|net.exe use"},
	{"password", "SET PASSWORD FOR |set password for ", signWord, ""},
	{"password", "> AUTH ", anyLike, ""},
	{"password", "password for ", colonLike, ""},
	{"fernet-key", "Fernet(", fernetShape, ""},
}

func phraseRules() (rules []rule) {
	for i := range phrases {
		for _, text := range split(phrases[i].texts) {
			rules = append(rules, rule{trigger: text, match: func(b []byte, at int) (span, int) { return phrases[i].match(b, at, len(text)) }})
		}
	}
	return rules
}

func (p *phrase) match(b []byte, i, n int) (span, int) {
	if i > 0 && alnum[b[i]] && dash[b[i-1]] && !beginsLine(b, i) {
		return span{}, i + 1
	}
	at := p.valueAt(b, i+n)
	if at < 0 {
		return span{}, i + 1
	}
	from, to, quoted := dollarQuoted(b, at)
	if !quoted {
		from, to, quoted = valueAfter(b, at, p.kind)
	}
	if quoted {
		to = doubledEnd(b, from, to)
	}
	value := bare(b[from:min(to, from+maxQuoted)])
	if !p.value.secret(value, quoted) || !near(b, i, p.near) {
		return span{}, i + 1
	}
	return span{start: from, end: to, rank: rankContext, kind: p.kind}, to
}

// doubledEnd returns where the string from b[from] on ends whose quotation mark stands at b[to]: one that is written
// twice is within it.
func doubledEnd(b []byte, from, to int) int {
	for to+2 < len(b) && b[to] == b[to+1] && b[from-2] != b[to] && b[to] != '$' && to-from < maxQuoted {
		next := bytes.IndexByte(b[to+2:min(len(b), to+maxQuoted)], b[to])
		if next < 0 {
			break
		}
		to += 2 + next
	}
	return to
}

// valueAt returns where the value of a phrase begins that ends before b[end], -1 for nowhere.
func (p *phrase) valueAt(b []byte, end int) int {
	at := run(b, end, blank, maxGap)
	switch b[end-1] {
	case '"', '\'':
		return end - 1
	case '\n':
		return lineOf(b, end-1).below(b).word
	}
	switch p.value {
	case nextLike:
		user := runUntil(b[:min(len(b), at+maxName)], at, valueEnd)
		if at = run(b, user, blank, maxGap); at == user {
			return -1
		}
	case signWord, colonLike:
		line := b[at:min(len(b), at+maxCommand)]
		line = line[:runUntil(line, 0, statementEnd)]
		sign := bytes.IndexByte(line, '=')
		if p.value == colonLike {
			sign = bytes.Index(line, []byte(": ")) + 1
		}
		if sign <= 0 {
			return -1
		}
		at = run(b, at+sign+1, blank, maxGap)
	}
	return at
}

func (f form) secret(value []byte, quoted bool) bool {
	const minWord = 3
	if f != anyLike && f != nextLike && f != colonLike && !quoted || len(value) < minWord || value[0] == '"' || value[0] == '\'' {
		return false // the last is a text of a program that goes on: "password '" + password
	}
	switch f {
	case quotedWord, signWord:
		return !isExample(value)
	case fernetShape:
		return isFernetKey(value)
	}
	return !placeholder(value) && likePassword(value, quoted)
}

// near reports whether one of some texts stands before b[i], on its line or the one that it continues.
func near(b []byte, i int, texts string) bool {
	if texts == "" {
		return true
	}
	var buf [maxCommand]byte
	line := buf[:copy(buf[:], b[max(0, i-maxCommand):i])]
	for k, c := range line {
		if isUpper(c) {
			line[k] = c + 'a' - 'A'
		}
	}
	line = line[bytes.LastIndexByte(line, ';')+1:]
	for _, text := range split(texts) {
		if bytes.Contains(line, []byte(text)) {
			return true
		}
	}
	return false
}
