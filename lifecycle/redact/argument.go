package redact

import (
	"bytes"
	"slices"
	"strings"
)

// maxCommand bounds how far back the command's name is looked for.
const maxCommand = 400

// matchArgument is called at "--": --password value, --token value, --user name:value.
func matchArgument(b []byte, i int) (span, int) {
	from := run(b, i, classDash, -1)
	if from-i != 2 || i > 0 && alnum[b[i-1]] {
		return span{}, from
	}
	to := run(b, from, dash, maxName)
	if to == from || to == len(b) || !blank[b[to]] && b[to] != '=' {
		return span{}, to
	}
	switch string(b[from:to]) {
	case "user", "proxy-user":
		return matchUser(b, i, to+1)
	}
	kind := nameKind(b[from:to])
	if kind == "" || b[to] == '=' {
		return span{}, to // with "=" it is an assignment
	}
	value, end, quoted := valueAfter(b, to, kind)
	return hideValue(b, to, value, end, kind, quoted)
}

// argumentKind returns the kind of value that stands behind the flag text, "" for none.
func argumentKind(text []byte) string {
	name, ok := bytes.CutPrefix(text, []byte("--"))
	if !ok || run(name, 0, dash, maxName) != len(name) {
		return ""
	}
	return nameKind(name)
}

// matchShortArgument is called at " -": curl -u name:value, curl -su name:value,
// curl -b name=value, -password value, and those of logins.
func matchShortArgument(b []byte, i int) (span, int) {
	from := i + len(" -")
	to := run(b, from, letters, 16)
	if to == from {
		return span{}, to
	}
	if word := run(b, from, dash, maxName); word < len(b) && blank[b[word]] && word-from > 1 {
		if kind := dashedKind(b[from:word]); kind != "" { // -password value, as Java and Go have it
			value, end, quoted := valueAfter(b, word, kind)
			return hideValue(b, word, value, end, kind, quoted)
		}
	}
	if strings.IndexByte(loginLetters, b[from]) >= 0 {
		if s, next := matchLogin(b, i); s.end > 0 {
			return s, next
		}
	}
	if to-from == 16 {
		return span{}, to
	}
	if b[from] == 'u' && from+1 < len(b) && blank[b[from+1]] {
		return matchUser(b, i, from+1)
	}
	if !behindCurl(b, i) {
		return span{}, from
	}
	letter, at := shortFlag(b[from-1:], true)
	at += from - 1
	switch letter {
	case 'u', 'U':
		return matchUser(b, i, at)
	case 'b':
		from, to, quoted := valueAfter(b, at, "password")
		return hideValue(b, i, from, to, "cookie", quoted)
	}
	return span{}, from
}

// dashedKind returns the kind of value that stands behind the flag of one dash with that name.
func dashedKind(name []byte) string {
	if string(name) == "pw" { // of plink and pscp
		return "password"
	}
	return nameKind(name)
}

// behindCurl reports whether curl stands on the line, or the one that it continues,
// before b[i].
func behindCurl(b []byte, i int) bool {
	return bytes.Contains(b[max(0, i-maxCommand):i], []byte("curl"))
}

// matchUser looks at name:value, which begins at b[at] or behind blanks.
func matchUser(b []byte, i, at int) (span, int) {
	from, to, quoted := valueAfter(b, at, "password")
	colon := bytes.IndexByte(b[from:to], ':')
	if !quoted && to < len(b) && (b[to] == '\'' || b[to] == '"') && colon == to-from-1 {
		open := to
		if start, end, ok := quotedAt(b, &open); ok { // name:'value'
			return userSecret(b, i, from, start, end)
		}
	}
	if colon < 0 {
		return span{}, i + 1
	}
	return userSecret(b, i, from, from+colon+1, to)
}

// userSecret decides about the password b[pass:to] of the user from b[from] on.
func userSecret(b []byte, i, from, pass, to int) (span, int) {
	secret := bare(b[pass:to])
	if len(secret) == 0 {
		pass, to = from, pass-1 // a key in the user's place
		if secret = bare(b[pass:to]); !likePassword(secret, false) {
			return span{}, i + 1
		}
	}
	if !isUserPassword(bare(b[from:max(from, pass-1)]), secret, behindCurl(b, i)) {
		return span{}, i + 1
	}
	return span{start: pass, end: to, rank: rankContext, kind: "password"}, to
}

// isUserPassword reports whether secret is the password of user. Behind curl a plain word
// is one, unless documentation writes it there.
func isUserPassword(user, secret []byte, curl bool) bool {
	const minLen = 3
	if placeholder(secret) {
		return false
	}
	return likePassword(secret, false) || curl && len(secret) >= minLen && !isExample(secret) && !bytes.Equal(user, secret)
}

// examples are what documentation writes where a password belongs.
var examples = []string{"pass", "password", "passwd", "pwd", "secret", "test", "token", "changeit", "changeme", "yyy", "xxx", "value", "word"}

func isExample(value []byte) bool {
	return slices.Contains(examples, string(bytes.ToLower(value))) || placeholder(value)
}

// matchNetrc is called at "password ": machine host login name password value.
func matchNetrc(b []byte, i int) (span, int) {
	before := b[max(0, i-maxCommand):i]
	if i == 0 || b[i-1] > ' ' && !markEnd[b[i-1]] || !bytes.Contains(before, []byte("login ")) ||
		!bytes.Contains(before, []byte("machine ")) && !bytes.Contains(before, []byte("default ")) || b[i-1] > ' ' && !beginsLine(b, i) {
		return span{}, i + 1
	}
	at := i + len("password")
	from := run(b, at, gap, maxGap)
	return hideValue(b, at, from, runUntil(b, from, netrcEnd), "password", true)
}

// matchChpasswd is called at "passwd" and looks at what chpasswd is given: echo 'name:value' | chpasswd.
func matchChpasswd(b []byte, i int) (span, int) {
	before, ok := bytes.CutSuffix(b[:i], []byte("ch"))
	if !ok {
		return span{}, i + 1
	}
	to := len(bytes.TrimSuffix(before, []byte("sudo ")))
	if to = skipBack(b, to, blank, maxGap); to == 0 || b[to-1] != '|' {
		return span{}, i + 1
	}
	to = skipBack(b, to-1, blank, maxGap)
	begin := max(0, to-maxCommand)
	line := b[begin:to]
	line = line[bytes.LastIndexByte(line, '\n')+1:]
	from := to - len(line) + bytes.LastIndexByte(line, ' ') + 1
	if n := len(line) - 1; n > 0 && (line[n] == '\'' || line[n] == '"') {
		to--
		from = to - n + bytes.LastIndexByte(line[:n], line[n]) + 1
	}
	colon := bytes.IndexByte(b[from:max(from, to)], ':')
	if colon <= 0 || isExample(bare(b[from+colon+1:to])) {
		return span{}, i + 1
	}
	return span{start: from + colon + 1, end: to, rank: rankContext, kind: "password"}, i + 1
}

// matchDirective is called at the end of the name of a setting that stands beside its value: requirepass value of Redis,
// rootpw value of slapd.
func matchDirective(b []byte, i int) (span, int) {
	to := run(b, i, letters, -1)
	switch string(b[skipBack(b, to, alnum, maxName):to]) {
	case "requirepass", "masterauth", "bindpw", "rootpw":
		from, end, quoted := valueAfter(b, to, "password")
		return hideValue(b, i, from, end, "password", quoted)
	}
	return span{}, to
}

// matchSet is called at "ENV ", "setenv " and "set ": ENV NAME value of a Dockerfile,
// and the shells that need no sign. A name is in capitals: prose sets tokens too.
func matchSet(b []byte, i int) (span, int) {
	if i > 0 && dash[b[i-1]] && !beginsLine(b, i) {
		return span{}, i + 1
	}
	at := run(b, i, letters, -1) + 1
	for n := 0; n < 3 && at < len(b) && b[at] == '-'; n++ { // set -gx NAME value
		at = run(b, run(b, at, dash, maxName), blank, maxGap)
	}
	to := run(b, at, capitals, maxName)
	if to == at || to == len(b) || !blank[b[to]] {
		return span{}, i + 1
	}
	kind := nameKind(b[at:to])
	if kind == "" {
		return span{}, i + 1
	}
	from, end, quoted := valueAfter(b, to, kind)
	return hideValue(b, to, from, end, kind, quoted)
}
