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
)

// users are the statements of SQL about users.
const users = "create user|alter user|create role|alter role|create login|alter login|grant |set password|change master"

var phrases = []phrase{
	{"password", "PASSWORD ", quotedWord, ""},
	{"password", "PASSWORD(|PASSWORD (", quotedWord, ""},
	{"password", "password ", quotedWord, users},
	{"password", "password ", quotedLike, ""},
	{"password", "password(", quotedWord, users},
	{"password", "IDENTIFIED BY ", quotedWord, ""},
	{"password", "IDENTIFIED BY ", anyLike, ""},
	{"password", "identified by ", quotedWord, users},
	{"password", "identified by ", anyLike, users},
	{"password", "BY '|BY \"|by '|by \"", quotedWord, "identified with|identified via"},
	{"password", "ConvertTo-SecureString |-SecureString -String ", quotedLike, ""},
	{"password", "/user:|/USER:", nextLike, "net use|net.exe use"},
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
	if i > 0 && alnum[b[i]] && dash[b[i-1]] {
		return span{}, i + 1
	}
	at := run(b, i+n, blank, maxGap)
	if quote := b[i+n-1]; quote == '"' || quote == '\'' {
		at = i + n - 1
	}
	if p.value == nextLike {
		user := runUntil(b[:min(len(b), at+maxName)], at, valueEnd)
		if at = run(b, user, blank, maxGap); at == user {
			return span{}, i + 1
		}
	}
	from, to, quoted := valueAfter(b, at, p.kind)
	for quoted && to+2 < len(b) && b[to] == b[to+1] && to-from < maxQuoted { // one within, written twice
		next := bytes.IndexByte(b[to+2:min(len(b), to+maxQuoted)], b[to])
		if next < 0 {
			break
		}
		to += 2 + next
	}
	value := bare(b[from:min(to, from+maxQuoted)])
	if !p.value.secret(value, quoted) || !near(b, i, p.near) {
		return span{}, i + 1
	}
	return span{start: from, end: to, rank: rankContext, kind: p.kind}, to
}

func (f form) secret(value []byte, quoted bool) bool {
	const minWord = 3
	if f != anyLike && f != nextLike && !quoted || len(value) < minWord || value[0] == '"' || value[0] == '\'' {
		return false // the last is a text of a program that goes on: "password '" + password
	}
	switch f {
	case quotedWord:
		return !isExample(value)
	case fernetShape:
		return len(value) == 44 && value[43] == '=' && run(value, 0, base64, -1) == 44 && mixed(value)
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
