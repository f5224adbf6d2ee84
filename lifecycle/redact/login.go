package redact

import (
	"bytes"
	"strings"
)

// A login is a command that takes a password behind a flag of one letter.
type login struct {
	commands string // parts of its name, separated by bars
	letters  string // of the flags
	glued    bool   // in the word of the flag
	spaced   bool   // in the next word
	word     bool   // any word is one
	between  byte   // what stands between a user and the password; 0 where the password is alone
}

var logins = []login{
	{"sshpass", "p", true, true, true, 0},
	{"mysql|mariadb", "p", true, false, false, 0},
	{"login", "p", false, true, false, 0}, // docker login, oc login, registry login
	{"mongo|rabbitmqadmin|influx", "p", false, true, false, 0},
	{"redis-cli|valkey-cli", "a", false, true, false, 0},
	{"ldap", "w", false, true, false, 0},
	{"sqlcmd|ipmitool|mosquitto", "P", false, true, false, 0}, //nolint:misspell // it is called so
	{"smbclient|rpcclient|smbget", "U", false, true, false, '%'},
}

// loginLetters are those of all.
const loginLetters = "pawPU"

// behind reports whether one of the commands stands in a text.
func (l *login) behind(text []byte) bool {
	for name := range strings.SplitSeq(l.commands, "|") {
		if bytes.Contains(text, []byte(name)) {
			return true
		}
	}
	return false
}

// takes reports whether the flag of a letter has a password, in the same word or in the next one.
func (l *login) takes(letter byte, glued bool) bool {
	return strings.IndexByte(l.letters, letter) >= 0 && (glued && l.glued || !glued && l.spaced)
}

// matchLogin looks at the " -" at b[i] and the letter behind it: sshpass -p VALUE, mysql -pVALUE.
func matchLogin(b []byte, i int) (span, int) {
	const minWord = 3
	at := i + len(" -p")
	line := b[max(0, i-maxCommand):i]
	line = line[bytes.LastIndexByte(line, '\n')+1:]
	for k := range logins {
		l := &logins[k]
		if !l.takes(b[at-1], at < len(b) && !blank[b[at]]) || !l.behind(line) {
			continue
		}
		from, to, quoted := valueAfter(b, at, "password")
		if l.between != 0 {
			from += bytes.IndexByte(b[from:to], l.between) + 1
		}
		value := bare(b[from:min(to, from+maxQuoted)])
		if l.word && len(value) >= minWord && value[0] != '-' && !isExample(value) {
			return span{start: from, end: to, rank: rankContext, kind: "password"}, to
		}
		return hideValue(b, i, from, to, "password", quoted)
	}
	return span{}, at
}
