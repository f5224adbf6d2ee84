package research

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/lopen-dev/lopen/plan/markdown"
	"github.com/lopen-dev/lopen/writer/documents"
)

const (
	indexName = "RESEARCH.md"
	prefix    = "RESEARCH-"
	suffix    = ".md"
	// maxSize bounds what is read of one document, in bytes.
	maxSize = 16 << 20
	// maxSections bounds the sections that a document is about.
	maxSections = 1000
	// maxSlug bounds the topic in a file's name, in bytes.
	maxSlug = 64
)

// A Section is a part of the specification that a document is about.
type Section struct {
	Header string `yaml:"header"` // its path of headers
	SHA256 string `yaml:"sha256"` // of its bytes when the document was made, in hex
}

// A Document is one research document. What its front matter does not say is zero
// but for the topic, which is then the title or what the file's name says.
type Document struct {
	File          string // its name in the folder
	Topic         string
	Created       time.Time
	Specification string // name of the specification in the folder
	Sections      []Section
	SHA256        string // of the whole file, in hex
	Bytes         int
	// Err is why the document, or its front matter, could not be read.
	Err error
}

// frontMatter is what stands before a document's text.
type frontMatter struct {
	Topic         string    `yaml:"topic"`
	Created       string    `yaml:"created"` // a day, or RFC 3339
	Specification string    `yaml:"specification,omitempty"`
	Sections      []Section `yaml:"sections,omitempty"`
}

// FileName returns the name of the document on a topic.
func FileName(topic string) string {
	slug := markdown.Slug(topic)
	if len(slug) > maxSlug {
		slug = strings.TrimRight(strings.ToValidUTF8(slug[:maxSlug], ""), "-")
	}
	return prefix + slug + suffix
}

func isDocument(name string) bool {
	return strings.HasPrefix(name, prefix) && strings.HasSuffix(name, suffix) && len(name) > len(prefix)+len(suffix)
}

// List returns the documents in a folder by name; none where there is no folder.
// One that cannot be read is in the list with its Err.
func List(docs fs.FS, folder string) ([]Document, error) {
	entries, err := fs.ReadDir(docs, folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list research documents: %w", err)
	}
	var all []Document
	for _, e := range entries {
		if isDocument(e.Name()) && !e.IsDir() {
			d := Document{File: e.Name()}
			src, err := documents.Read(docs, path.Join(folder, e.Name()), maxSize)
			if d.Err = err; err == nil {
				d = Parse(e.Name(), src)
			}
			if d.Topic == "" {
				d.Topic = strings.TrimSuffix(strings.TrimPrefix(d.File, prefix), suffix)
			}
			all = append(all, d)
		}
	}
	return all, nil
}

// Parse reads a document. Any bytes are one; Err says what is wrong with its
// front matter.
func Parse(file string, src []byte) Document {
	sum := sha256.Sum256(src)
	d := Document{File: file, SHA256: hex.EncodeToString(sum[:]), Bytes: len(src)}
	if _, end := markdown.FrontMatter(src); end > 0 {
		if err := d.front(src); err != nil {
			d.Err = fmt.Errorf("read front matter of %s: %w", file, err)
		}
	}
	if d.Topic == "" {
		if doc := markdown.Parse(src); doc.Title() >= 0 {
			d.Topic = doc.Headings()[doc.Title()].Text
		}
	}
	return d
}

func (d *Document) front(src []byte) error {
	var m frontMatter
	if err := markdown.DecodeMeta(src, &m); err != nil {
		return errors.New(yaml.FormatError(err, false, false))
	}
	d.Topic, d.Specification = oneLine(m.Topic), m.Specification
	if err := checkSections(m.Sections); err != nil {
		return err
	}
	d.Sections = m.Sections
	if m.Created == "" {
		return nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		at, err := time.Parse(layout, m.Created)
		if err == nil {
			d.Created = at
			return nil
		}
	}
	return fmt.Errorf("created: %q is no date such as 2026-02-14", m.Created)
}

func checkSections(all []Section) error {
	if len(all) > maxSections {
		return fmt.Errorf("sections: it has %d entries, more than the %d that a document may have: divide it", len(all), maxSections)
	}
	return nil
}

// oneLine is a text without what would break a line or hide something.
func oneLine(s string) string {
	return strings.Join(strings.FieldsFunc(strings.ToValidUTF8(s, "\uFFFD"), func(r rune) bool { return r <= ' ' || r == 0x7f }), " ")
}
