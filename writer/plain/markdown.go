package plain

import "strings"

// alive is what in Markdown, or on the pages and in the chats that take it, may be more than what is written
// there: HTML, a link or an image, an entity, an address, somebody or something that is told of being named,
// or a backtick, which may be the end of what stands around it.
var alive = Pattern("(?i)<[a-z/!?]|\\][(:[]|\\] *$|\\[\\[|&[a-z#]|@\\w|//\\S|www\\.|(#|gh-)[0-9]|`")

// Markdown returns a text as it stands on one line of Markdown: as it is, or as a span of code where anything in it
// is alive. The text itself is never changed: it may have a command in it.
func Markdown(s string) string {
	if s = Line(s); alive().MatchString(s) {
		return Code(s)
	}
	return s
}

// Code returns a line as a span of code of Markdown, "" for "".
func Code(line string) string {
	if line == "" {
		return ""
	}
	marks := strings.Repeat("`", longest(line)+1)
	if line[0] == '`' || line[len(line)-1] == '`' {
		line = " " + line + " "
	}
	return marks + line + marks
}

// maxFence is the longest fence.
const maxFence = 16

// Fence quotes a text between two lines of backticks that no line of the text can end:
// they are more than any of its runs. A run that would need more than 16 is shortened.
func Fence(language, text string) string {
	var b strings.Builder
	run, most := 0, 0
	for i := range len(text) {
		if run++; text[i] != '`' {
			run = 0
		}
		if run < maxFence {
			most = max(most, run)
			b.WriteByte(text[i])
		}
	}
	marks := strings.Repeat("`", max(most+1, 3))
	return marks + language + "\n" + strings.TrimRight(b.String(), "\n") + "\n" + marks
}

// longest returns the length of the longest run of backticks.
func longest(s string) (most int) {
	run := 0
	for i := range len(s) {
		if run++; s[i] != '`' {
			run = 0
		}
		most = max(most, run)
	}
	return most
}

// Told returns a text of several lines for a program that shows it to somebody, as Markdown or as it is:
// what is not visible is an escape sequence, and a text in which anything is alive is a block of code.
func Told(text string) string {
	text = Text(text)
	if !alive().MatchString(text) {
		return text
	}
	return Fence("", text)
}
