package redact

import (
	"bytes"
	"path"
	"slices"
	"strings"
)

// Args returns the words of a command with their credentials hidden, and how many
// pieces it hid. Each word is judged alone, as the value of the flag before it or
// within it, and as a part of the one line that the words are when they are typed.
// Behind a flag that names a secret a word of four bytes or more is hidden whole, unless
// it is a variable, another flag or, for keys and credentials, a path. It does not change
// argv, and returns argv itself when there was nothing to hide.
func (r *Redactor) Args(argv []string) ([]string, int) {
	if r == nil {
		return argv, 0
	}
	count := 0
	for range maxRounds { // until there is no more, so that redacting twice changes nothing
		out, n := r.args(argv)
		if n == 0 {
			break
		}
		argv, count = out, count+n
	}
	return argv, count
}

func (r *Redactor) args(argv []string) ([]string, int) {
	spans := r.find([]byte(strings.Join(argv, " ")))
	out, count, begin := slices.Clone(argv), 0, 0
	var flag argument // what argv[i-1] says about argv[i]
	var before command
	for i, text := range argv {
		word := []byte(text)
		found := r.find(word)
		end := begin + len(word)
		for len(spans) > 0 && spans[0].end <= begin {
			spans = spans[1:]
		}
		for _, s := range spans {
			if s.start >= end {
				break
			}
			s.start, s.end = max(s.start, begin)-begin, min(s.end, end)-begin
			found = append(found, s)
		}
		begin = end + 1
		next := argument{}
		if s, ok := flag.secret(word, 0); ok {
			found = append(found, s)
		} else {
			var at int
			if next, at = before.argument(word); at > 0 {
				if s, ok := next.secret(word, at); ok {
					found = append(found, s)
				}
				next = argument{}
			}
			before.add(text)
		}
		flag = next
		if len(found) == 0 {
			continue
		}
		found = unite(found)
		out[i] = string(hide(word, found))
		count += len(found)
	}
	if count == 0 {
		return argv, 0
	}
	return out, count
}

// A command is what is known of it from the words so far.
type command struct {
	curl   bool
	logins []*login // that a word so far is one of
}

func (c *command) add(word string) {
	name := path.Base(word)
	c.curl = c.curl || strings.Contains(name, "curl")
	for i := range logins {
		if logins[i].behind([]byte(name)) {
			c.logins = append(c.logins, &logins[i])
		}
	}
}

// An argument is what a flag takes: the kind of its value, "" for none that matters.
type argument struct {
	kind    string
	between byte // what stands between a user and the value, 0 where the value is alone
	curl    bool
}

// argument returns what the flag word takes, and where in word that begins: 0 is the next
// word.
func (c *command) argument(word []byte) (argument, int) {
	if len(word) < 2 || word[0] != '-' {
		return argument{}, 0
	}
	name := bytes.TrimLeft(word[:min(len(word), maxName)], "-")
	at := 0
	if n := bytes.IndexByte(name, '='); n >= 0 {
		at = bytes.IndexByte(word, '=') + 1
		name = name[:n]
	}
	switch string(name) {
	case "user", "proxy-user":
		return argument{kind: "password", between: ':', curl: c.curl}, at
	}
	if kind := flagKind(name); len(name) > 1 && run(name, 0, dash, -1) == len(name) && kind != "" {
		return argument{kind: kind}, at
	}
	if word[1] == '-' {
		return argument{}, 0
	}
	return c.shortArgument(word)
}

// shortArgument is argument for a flag of one letter.
func (c *command) shortArgument(word []byte) (argument, int) {
	letter, at := shortFlag(word, c.curl)
	a := argument{curl: c.curl}
	switch {
	case letter == 'u', letter == 'U' && c.curl:
		a.kind, a.between = "password", ':'
	case letter == 'b' && c.curl:
		a.kind = "cookie"
	case letter == 'H' && at < len(word):
		if n := bytes.IndexByte(word[at:], ':'); n > 0 {
			a.kind, at = nameKind(word[at:at+n]), at+n+1
		}
	default:
		for _, l := range c.logins {
			if l.takes(letter, at < len(word)) {
				a.kind, a.between = "password", l.between
			}
		}
	}
	if at == len(word) {
		at = 0
	}
	return a, at
}

// switches are what the name of a flag begins with that takes no value.
var switches = []string{"no-", "ask-", "prompt-", "with-", "use-", "show-", "hide-", "without-", "skip-"}

// flagKind is nameKind for the name of a flag, which may be a switch.
func flagKind(name []byte) string {
	if slices.ContainsFunc(switches, func(s string) bool { return bytes.HasPrefix(name, []byte(s)) }) {
		return ""
	}
	return nameKind(name)
}

// curlSwitches are the letters of curl's flags that take no value, and so may stand
// before another letter.
const curlSwitches = "#0123467aBfGgIiJjklLMNnOpqRsSvZ"

// shortFlag returns the letter of the flag of one letter that word begins with, behind
// others that take no value, and where what it takes begins.
func shortFlag(word []byte, curl bool) (letter byte, at int) {
	at = 1
	for curl && at < len(word)-1 && strings.IndexByte(curlSwitches, word[at]) >= 0 {
		at++
	}
	return word[at], at + 1
}

// secret returns what is to be hidden in the value word[at:].
func (a argument) secret(word []byte, at int) (span, bool) {
	const minLen = 4
	s := span{start: at, end: len(word), rank: rankContext, kind: a.kind}
	text := bare(newView(word[at:], nil, true).text)
	if a.kind == "" || len(text) == 0 {
		return s, false
	}
	clean := len(text) == len(word)-at // the positions in text are those in word
	switch {
	case a.between != 0:
		n := bytes.IndexByte(text, a.between)
		if n < 0 || !isUserPassword(text[:n], text[n+1:], a.curl) {
			return s, false
		}
		if n := bytes.IndexByte(word[at:], a.between); n >= 0 {
			s.start += n + 1
		}
	case a.kind == "cookie", a.kind == "authorization":
		from, _, ok := secretIn(a.kind, text, true)
		if !ok {
			return s, false
		}
		if clean {
			s.start += from
		}
	case len(text) < minLen || placeholder(text) || otherThanSecret(a.kind, text):
		return s, false
	}
	return s, true
}

// otherThanSecret reports whether text behind a flag is another flag, or a file.
func otherThanSecret(kind string, text []byte) bool {
	if randomToken(text) {
		return false
	}
	if text[0] == '-' {
		return run(text, 0, dash, -1) == len(text) || bytes.IndexByte(text, '=') > 0
	}
	isPath := bytes.HasPrefix(text, []byte("/")) || bytes.HasPrefix(text, []byte("~/")) || bytes.HasPrefix(text, []byte("./")) || bytes.HasPrefix(text, []byte("../"))
	return kind == "secret" && (isPath || identifiers(text))
}
