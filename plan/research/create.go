package research

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/lopen-dev/lopen/plan/markdown"
	"github.com/lopen-dev/lopen/writer"
)

// ErrTopic says that a topic is not one line of text.
var ErrTopic = errors.New("a topic is one line that is not empty")

// structure are the headings that a document has, in order.
var structure = []string{"Summary", "Findings", "Sources", "Relevance"}

// Create writes a new document and puts it into the index. folder is where it
// goes, as a path of the system; d says what its front matter holds, body is its
// text. What body lacks of the standard structure follows it, empty. The error
// is an fs.ErrExist where the topic has a document, which is left alone.
func Create(folder string, d Document, body []byte) (file string, err error) {
	fsys, err := writer.OpenFS(folder)
	if err != nil {
		return "", fmt.Errorf("create research document: %w", err)
	}
	defer func() { err = errors.Join(err, fsys.Close()) }()
	return create(fsys, d, body)
}

func create(fsys writer.FS, d Document, body []byte) (file string, err error) {
	if d.Topic == "" || d.Topic != oneLine(d.Topic) {
		return "", fmt.Errorf("create research document: %w: %q", ErrTopic, d.Topic)
	}
	content, err := Compose(d, body)
	if err != nil {
		return "", err
	}
	file = FileName(d.Topic)
	if err := writer.CreateFile(fsys, file, content, 0o644); err != nil {
		return "", fmt.Errorf("create research document: %w", err)
	}
	return file, reindex(fsys)
}

// Compose returns the content of a new document. The body stays as it is, but
// for a line end at its end; a text that stands before its first heading becomes the
// summary.
func Compose(d Document, body []byte) ([]byte, error) {
	if err := checkSections(d.Sections); err != nil {
		return nil, fmt.Errorf("write front matter: %w", err)
	}
	front, err := yaml.Marshal(frontMatter{Topic: d.Topic, Created: d.Created.UTC().Format("2006-01-02T15:04:05Z"),
		Specification: d.Specification, Sections: d.Sections})
	if err != nil {
		return nil, fmt.Errorf("write front matter: %w", err)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "---\n%s---\n\n", front)
	headings := markdown.Parse(body).Headings()
	has := map[string]bool{}
	for _, h := range headings {
		has[markdown.Name(h.Text)] = true
	}
	if len(headings) == 0 || headings[0].Level > 1 {
		fmt.Fprintf(&b, "# %s\n\n", escape(d.Topic))
	}
	if len(headings) == 0 || strings.TrimSpace(string(body[:headings[0].Start])) != "" {
		if !has["summary"] {
			b.WriteString("## Summary\n\n")
			has["summary"] = true
		}
	}
	if body = bytes.TrimRight(body, " \t\r\n"); len(body) > 0 {
		b.Write(body)
		b.WriteString("\n\n")
	}
	for _, name := range structure {
		if !has[strings.ToLower(name)] {
			fmt.Fprintf(&b, "## %s\n\n", name)
			if name == "Relevance" {
				for _, s := range d.Sections {
					fmt.Fprintf(&b, "- %s: %s\n", d.Specification, escape(s.Header))
				}
			}
		}
	}
	return append(bytes.TrimRight(b.Bytes(), "\n"), '\n'), nil
}

// escape keeps a text from being read as Markdown.
func escape(s string) string {
	var b strings.Builder
	for _, r := range s {
		if strings.ContainsRune("\\`*_[]<>#&!~|", r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}
