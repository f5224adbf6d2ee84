package research

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/lopen-dev/lopen/plan/internal/guard"
	"github.com/lopen-dev/lopen/writer"
)

// ErrMarkers says that it is not clear where in an index the items go.
var ErrMarkers = errors.New("it needs one line `" + opening + "` and, further down, one `" + closing + "`")

// The lines around the items.
const (
	opening = "<!-- lopen:research -->"
	closing = "<!-- /lopen:research -->"
)

var (
	// ownItem is an item exactly as this package writes it.
	ownItem = pattern(`^- \[(?:[^\\\[\]]|\\.)*\]\((RESEARCH-[^()\s]+\.md)\)$`)
	link    = pattern(`\]\(<?(?:\./)?(RESEARCH-[^()<>\s#]+\.md)`)
)

// pattern compiles an expression once, when it is first used: most commands use none.
func pattern(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

func reindex(fsys writer.FS) error {
	err := guard.Edit(fsys, indexName, 0o644, nil, func(src []byte) ([]byte, error) {
		all, err := List(folder{fsys}, ".")
		if err != nil {
			return nil, err
		}
		return Index(src, all)
	})
	if err != nil {
		return fmt.Errorf("index research documents in %s: %w", filepath.Join(fsys.Name(), indexName), err)
	}
	return nil
}

// A folder is a writer.FS as an fs.FS, for List.
type folder struct{ writer.FS }

// Open opens a regular file or a folder. It looks first: to open some devices does something.
func (f folder) Open(name string) (fs.File, error) {
	info, err := f.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() && !info.IsDir() {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	return f.OpenFile(name, os.O_RDONLY, 0)
}

// ReadDir sorts by name, as an fs.FS does.
func (f folder) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := f.FS.ReadDir(name)
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, err
}

// Index returns what an index is to hold, given what it holds (nil for one that
// does not exist) and the documents. An index without the two comments gets them
// at its end.
func Index(src []byte, all []Document) ([]byte, error) {
	if src == nil {
		src = []byte("# Research\n\n" + opening + "\n" + closing + "\n")
	}
	eol := "\n"
	if first, _, _ := bytes.Cut(src, []byte{'\n'}); bytes.HasSuffix(first, []byte{'\r'}) {
		eol = "\r\n"
	}
	from, to, err := between(src)
	if err != nil {
		return nil, err
	}
	if from < 0 {
		gap := eol
		if len(src) > 0 && src[len(src)-1] != '\n' {
			gap += eol
		}
		src = append(bytes.Clone(src), gap+opening+eol+closing+eol...)
		to = len(src) - len(closing+eol)
		from = to
	}
	var b bytes.Buffer
	b.Write(src[:from])
	b.WriteString(items(string(src[from:to]), all, eol))
	b.Write(src[to:])
	return b.Bytes(), nil
}

// between returns where the lines between the comments are, -1 without comments.
func between(src []byte) (from, to int, err error) {
	from, to = -1, -1
	at := 0
	for line := range bytes.Lines(src) {
		switch string(bytes.TrimRight(line, " \t\r\n")) {
		case opening:
			if from >= 0 {
				return 0, 0, ErrMarkers
			}
			from = at + len(line)
		case closing:
			if to >= 0 || from < 0 {
				return 0, 0, ErrMarkers
			}
			to = at
		}
		at += len(line)
	}
	if from >= 0 && to < 0 {
		return 0, 0, ErrMarkers
	}
	return from, to, nil
}

// items returns the lines between the comments: those that are there, without
// own items of documents that are gone, own items as they are to be, and at the end
// those of documents that no line links to.
func items(old string, all []Document, eol string) string {
	want := make(map[string]string, len(all))
	for _, d := range all {
		name := target(d.File)
		want[name] = fmt.Sprintf("- [%s](%s)%s", escape(oneLine(d.Topic)), name, eol)
	}
	linked := map[string]bool{}
	for line := range strings.Lines(old) {
		if ownItem().MatchString(strings.TrimRight(line, "\r\n")) {
			continue
		}
		for _, m := range link().FindAllStringSubmatch(line, -1) {
			linked[canonical(m[1])] = true
		}
	}
	var b strings.Builder
	for line := range strings.Lines(old) {
		m := ownItem().FindStringSubmatch(strings.TrimRight(line, "\r\n"))
		if m == nil {
			b.WriteString(line)
			continue
		}
		name := canonical(m[1])
		if item, there := want[name]; there && !linked[name] {
			b.WriteString(item)
			linked[name] = true
		}
	}
	for _, d := range all {
		if name := target(d.File); !linked[name] {
			b.WriteString(want[name])
		}
	}
	return b.String()
}

// target is a file's name as the target of a link.
func target(file string) string {
	return strings.NewReplacer("(", "%28", ")", "%29").Replace(url.PathEscape(file))
}

// canonical is a link's target as this package writes it.
func canonical(link string) string {
	if name, err := url.PathUnescape(link); err == nil {
		return target(name)
	}
	return link
}
