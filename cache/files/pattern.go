package files

import (
	"strings"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"
)

// A pattern is one line of an ignore file. The syntax is gitignore(5)'s; doublestar
// does the matching, after [translate] has made one of its patterns of git's.
//
// Of the libraries that know ignore files, those that were compared with git on
// random patterns differed from it, crashed on an open bracket, or came with twenty
// packages of something else.
type pattern struct {
	negated bool
	dirOnly bool
	// anchored: it is compared with the path below the rules' folder, not with the
	// name alone.
	anchored bool
	kind     patternKind
	before   string // of an anchored glob: what stands before the first wildcard
	text     string
}

type patternKind uint8

const (
	literal patternKind = iota
	suffix              // a star, then a literal
	glob
)

// parseIgnore reads an ignore file, the UTF-8 mark that some editors put in front
// removed.
func parseIgnore(data string) (all []pattern) {
	for line := range strings.Lines(strings.TrimPrefix(data, "\ufeff")) {
		line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
		if p, ok := parsePattern(line); ok {
			all = append(all, p)
		}
	}
	return all
}

// parsePattern reads one line, false when nothing can match it.
func parsePattern(line string) (p pattern, ok bool) {
	if strings.HasPrefix(line, "#") {
		return p, false
	}
	line = trimSpaces(line)
	line, p.negated = strings.CutPrefix(line, "!")
	line, p.dirOnly = strings.CutSuffix(line, "/")
	p.anchored = strings.Contains(line, "/")
	line = strings.TrimPrefix(line, "/")
	if line == "" {
		return p, false
	}
	const special = `*?[\`
	rest, star := strings.CutPrefix(line, "*")
	switch {
	case !strings.ContainsAny(line, special):
		p.kind, p.text = literal, line
	case star && !p.anchored && !strings.ContainsAny(rest, special):
		p.kind, p.text = suffix, rest
	default:
		p.kind = glob
		if p.anchored { // git compares it apart, so that stars behind it stand at the begin: a**/b is ab, too
			i := strings.IndexAny(line, special)
			p.before, line = line[:i], line[i:]
		}
		p.text, ok = translate(line)
		return p, ok
	}
	return p, true
}

// trimSpaces takes the spaces at the end away, but for one behind a backslash.
func trimSpaces(line string) string {
	end := 0
	for i := 0; i < len(line); i++ {
		switch line[i] {
		case '\\':
			i++
			end = min(i+1, len(line))
		case ' ':
		default:
			end = i + 1
		}
	}
	return line[:end]
}

// match says whether the pattern is one of a path, whose last part is name.
func (p *pattern) match(path, name string, isDir bool) bool {
	if p.dirOnly && !isDir {
		return false
	}
	if !p.anchored {
		path = name
	}
	switch p.kind {
	case literal:
		return path == p.text
	case suffix:
		return strings.HasSuffix(path, p.text)
	}
	path, ok := strings.CutPrefix(path, p.before)
	if path == "" { // for git, folders that are left away leave no slash
		return ok && strings.Trim(strings.ReplaceAll(p.text, "**/", ""), "*") == ""
	}
	return ok && doublestar.MatchUnvalidated(p.text, asRunes(path))
}

// asRunes makes a character of each byte: git compares bytes, so that two '?' stand
// for one é, and names need not be UTF-8.
func asRunes(s string) string {
	for i := 0; i < len(s); i++ {
		if s[i] >= utf8.RuneSelf {
			runes := make([]rune, len(s))
			for i := range runes {
				runes[i] = rune(s[i])
			}
			return string(runes)
		}
	}
	return s
}

// translate makes a doublestar pattern of one of git's, false when it matches
// nothing. The differences: braces are literal, a run of stars counts as "**" when
// it is alone between slashes and as "*" otherwise, "a/**" is not a itself, and
// classes are spelt out.
func translate(p string) (string, bool) {
	var b strings.Builder
	for i := 0; i < len(p); i++ {
		switch c := p[i]; c {
		case '\\':
			if i++; i == len(p) {
				return "", false
			}
			escape(&b, p[i])
		case '*':
			text, end := stars(p, i)
			b.WriteString(text)
			i = end - 1
		case '[':
			set, n, ok := class(p[i:])
			if !ok || !spell(&b, set) {
				return "", false
			}
			i += n - 1
		case '?', '/':
			b.WriteByte(c)
		default:
			escape(&b, c)
		}
	}
	return b.String(), true
}

// stars returns what the run of stars at p[i] is for doublestar, and where it ends.
func stars(p string, i int) (text string, end int) {
	for end = i; end < len(p) && p[end] == '*'; {
		end++
	}
	alone := end-i > 1 && (i == 0 || p[i-1] == '/') && (end == len(p) || p[end] == '/')
	switch {
	case alone && end == len(p) && i > 0:
		return "**/*", end
	case alone:
		return "**", end
	}
	return "*", end
}

// escape writes a byte that stands for itself.
func escape(b *strings.Builder, c byte) {
	if strings.IndexByte(`*?[]{}\!^-,`, c) >= 0 {
		b.WriteByte('\\')
	}
	b.WriteRune(rune(c))
}
