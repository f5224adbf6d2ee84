package convert

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/lopen-dev/lopen/plan/markdown"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

// isJSON says whether a list is JSON: no Markdown list begins so.
func isJSON(src []byte) bool {
	src = bytes.TrimLeft(bytes.TrimPrefix(src, bom), " \t\r\n")
	if len(src) > 0 && src[0] == '[' {
		src = bytes.TrimLeft(src[1:], " \t\r\n")
		return len(src) > 0 && (src[0] == '{' || src[0] == ']' && len(bytes.TrimSpace(src)) == 1)
	}
	return len(src) > 0 && src[0] == '{'
}

// An entry is an object of a JSON list: a story or an issue.
type entry struct {
	line    int
	members []member
}

type member struct {
	line       int
	name, text string // text is its JSON
}

// A decoder reads a JSON list. Its errors name the line.
type decoder struct {
	src  []byte
	r    *strictjson.Reader
	at   int // up to where lines were counted
	line int
}

func (d *decoder) lineOf(offset int) int {
	d.line += bytes.Count(d.src[d.at:max(d.at, offset)], []byte{'\n'})
	d.at = max(d.at, offset)
	return d.line
}

func (d *decoder) object() (e entry) {
	e.line = d.lineOf(d.r.Offset())
	d.r.Object(func(name string) {
		m := member{line: d.lineOf(d.r.Offset()), name: name}
		m.text = d.r.Raw()
		e.members = append(e.members, m)
	})
	return e
}

// readJSON reads a prd.json, or issues as gh prints them.
func readJSON(src []byte) (*list, error) {
	src = bytes.TrimPrefix(src, bom)
	d := decoder{src: src, r: strictjson.NewReader(src), line: 1}
	var head entry // what stands around the entries
	var entries []entry
	stories := false
	array := func() {
		d.r.Array(func() {
			if entries = append(entries, d.object()); len(entries) > maxBoxes {
				d.r.Stop()
			}
		})
	}
	if bytes.TrimLeft(src, " \t\r\n")[0] == '[' {
		array()
	} else {
		head.line = d.lineOf(d.r.Offset())
		d.r.Object(func(name string) {
			if stories = stories || name == "userStories"; name == "userStories" {
				array()
				return
			}
			m := member{line: d.lineOf(d.r.Offset()), name: name}
			m.text = d.r.Raw()
			head.members = append(head.members, m)
		})
	}
	d.r.End()
	if len(entries) > maxBoxes {
		return nil, tooMany(entries[maxBoxes].line)
	}
	if err := d.r.Err(); err != nil {
		return nil, fmt.Errorf("line %d: %w", d.lineOf(d.r.Offset()), err)
	}
	switch {
	case stories:
		return readStories(head, entries)
	case len(entries) == 0 && head.has("number", "title", "body"):
		return readIssues([]entry{head})
	case len(head.members) > 0:
		return readTaskMaster(head)
	case len(entries) > 0 && entries[0].has("number") && entries[0].has("title", "body"):
		return readIssues(entries)
	}
	return readStories(head, entries)
}

// has says whether an entry has one of the members.
func (e entry) has(names ...string) bool {
	return slices.ContainsFunc(e.members, func(m member) bool { return slices.Contains(names, m.name) })
}

// take returns the member with a name, and takes it out.
func (e *entry) take(name string) (m member, ok bool) {
	i := slices.IndexFunc(e.members, func(m member) bool { return m.name == name })
	if i < 0 || e.members[i].text == "null" {
		return m, false
	}
	m = e.members[i]
	e.members = slices.Delete(e.members, i, i+1)
	return m, true
}

// into decodes a member into a value. want names what it must be.
func (m member) into(v any, want string) error {
	if err := strictjson.Unmarshal([]byte(m.text), v); err != nil {
		return fmt.Errorf("line %d: %s is %s, want %s", m.line, m.name, clip(m.text), want)
	}
	return nil
}

// clip is a text that an error quotes.
func clip(s string) string {
	if len(s) > 40 {
		s = strings.ToValidUTF8(s[:40], "") + "..."
	}
	return s
}

// text returns a member that is a text, "" where it is not there.
func (e *entry) text(name string) (string, error) {
	m, ok := e.take(name)
	if !ok {
		return "", nil
	}
	var s string
	if err := m.into(&s, "a text"); err != nil {
		return "", err
	}
	if strings.Contains(s, "\x00") {
		return "", fmt.Errorf("line %d: %s has a NUL character: take it out", m.line, name)
	}
	return strings.TrimSpace(lineFeeds.Replace(s)), nil
}

var lineFeeds = strings.NewReplacer("\r\n", "\n", "\r", "\n")

// texts returns a member that is a list of texts, or one.
func (e *entry) texts(names ...string) (all []string, err error) {
	for _, name := range names {
		m, ok := e.take(name)
		if !ok {
			continue
		}
		var list []string
		var one string
		switch {
		case m.into(&list, "") == nil:
		case m.into(&one, "") == nil:
			if list = nil; one != "" {
				list = []string{one}
			}
		default:
			return nil, m.into(&list, "a list of texts")
		}
		for _, s := range list {
			if strings.Contains(s, "\x00") {
				return nil, fmt.Errorf("line %d: %s has a NUL character: take it out", m.line, name)
			}
			all = append(all, strings.TrimSpace(lineFeeds.Replace(s)))
		}
	}
	return all, nil
}

// others says what an entry has besides, a line each.
func (e *entry) others() (lines []string) {
	for _, m := range e.members {
		var text string
		var texts []string
		switch {
		case m.text == "null" || m.text == `""` || m.text == "[]" || m.text == "{}":
			continue
		case m.into(&text, "") == nil:
		case m.into(&texts, "") == nil:
			text = strings.Join(texts, ", ")
		default:
			compact, err := strictjson.AppendCompact(nil, []byte(m.text))
			if err != nil {
				compact = []byte(m.text)
			}
			text = string(compact)
		}
		lines = append(lines, m.name+": "+strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "\x00", ""))
	}
	return lines
}

// bulleted is a list in an item's details.
func bulleted(head string, texts []string) string {
	if len(texts) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString(head)
	for _, s := range texts {
		b.WriteString("\n- " + strings.ReplaceAll(s, "\n", "\n  "))
	}
	return b.String()
}

// paragraphs joins texts that are not empty.
func paragraphs(texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(s string) bool { return s == "" }), "\n\n")
}

// markAhead begins one of lopen's marks. Who writes a title decides about no task.
var markAhead = pattern(`(?i)<!--[ \t]*lopen[ \t]*:`)

// task adds an item that is no line of a file.
func (l *list) task(line int, done bool, label, text, details string) {
	text = markAhead().ReplaceAllString(text, `\$0`)
	l.boxes++
	l.items = append(l.items, markdown.Item{
		Line: line, Start: len(l.items) + 1, Heading: -1, Parent: -1, Checked: done, Text: text, Raw: text, Details: details,
	})
	l.labels = append(l.labels, []string{strings.ToUpper(label)})
	l.waits = append(l.waits, refs(line, text+"\n"+details))
}

// unboxed returns the details of an entry with no box in them, and names those.
func (l *list) unboxed(line int, label, details string) string {
	var b strings.Builder
	at := 0
	for _, f := range scan([]byte(details)) {
		l.boxes++
		l.leave(line, fmt.Sprintf("%s, line %d of its text: a box in it is no task by itself, and stays in its details", label, f.line))
		if f.bullet && f.where != inCode {
			b.WriteString(details[at:f.at] + `\`)
			at = f.at
		}
	}
	b.WriteString(details[at:])
	return b.String()
}

// oneLine is a text without line ends.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
