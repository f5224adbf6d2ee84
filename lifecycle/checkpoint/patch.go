package checkpoint

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff"

	"github.com/lopen-dev/lopen/cache/files"
	"github.com/lopen-dev/lopen/writer"
)

const (
	// MaxPatch bounds the contents that are compared line by line, in bytes each.
	MaxPatch = 1 << 20
	// maxPatchText bounds the text of one patch, in bytes.
	maxPatchText = 1 << 20
	// sniff is the number of bytes that are searched for a NUL. A content with a NUL there is
	// binary, as in git.
	sniff  = 8000
	around = 3 // lines of context
)

// Lines is the size of a change in lines.
type Lines struct {
	Added   int  `json:"added"`
	Deleted int  `json:"deleted"`
	Binary  bool `json:"binary"` // binary, too large to compare or not stored; both numbers are 0
}

// Lines counts the lines that differ. nil means no file. It reads contents from the blobs or,
// if they are not stored, from the project if the file there has the fingerprint's hash.
func (s *Store) Lines(from, to *files.Fingerprint) (Lines, error) {
	if hidden(from) || hidden(to) {
		return Lines{Binary: true}, nil
	}
	a, b, why, err := s.sides(from, to)
	if err != nil || why != "" {
		return Lines{Binary: why != ""}, err
	}
	var n Lines
	for _, e := range udiff.Lines(a, b) {
		n.Deleted += lines(a[e.Start:e.End])
		n.Added += lines(e.New)
	}
	return n, nil
}

func lines(s string) int {
	n := strings.Count(s, "\n")
	if s != "" && !strings.HasSuffix(s, "\n") {
		n++
	}
	return n
}

// Patch returns the unified diff of one path, with git's lines for modes and for a file that
// was created, deleted or moved. nil means no file. For binary and very large contents it only
// says that they differ. It reads contents as Lines does.
func (s *Store) Patch(from, to *files.Fingerprint) (string, error) {
	return s.PatchShown(from, to, func(text string) string { return text })
}

// PatchShown is Patch with what show makes of each content: what it hides is hidden in the lines
// around a change, too, and where a change leads into or out of it.
func (s *Store) PatchShown(from, to *files.Fingerprint, show func(string) string) (string, error) {
	if hidden(from) || hidden(to) {
		return hiddenText(from, to), nil
	}
	var b strings.Builder
	oldName, newName := "/dev/null", "/dev/null"
	if from != nil {
		oldName = quote("a/" + from.Path)
	}
	if to != nil {
		newName = quote("b/" + to.Path)
	}
	switch {
	case from == nil && to == nil:
		return "", nil
	case from == nil:
		fmt.Fprintf(&b, "new %s %s\n", modeText(to), newName)
	case to == nil:
		fmt.Fprintf(&b, "deleted %s %s\n", modeText(from), oldName)
	default:
		if from.Path != to.Path {
			fmt.Fprintf(&b, "rename from %s\nrename to %s\n", quote(from.Path), quote(to.Path))
		}
		if from.Mode != to.Mode {
			fmt.Fprintf(&b, "old %s %s\nnew %s %s\n", modeText(from), oldName, modeText(to), newName)
		}
	}
	text, err := s.unified(oldName, newName, from, to, show)
	if err != nil {
		return "", err
	}
	b.WriteString(text)
	return b.String(), nil
}

// Unified returns the unified diff of two texts, under these names.
func Unified(oldName, newName, a, b string) string { return udiff.Unified(oldName, newName, a, b) }

func (s *Store) unified(oldName, newName string, from, to *files.Fingerprint, show func(string) string) (string, error) {
	if same(from, to) || from != nil && to != nil && from.Hash == to.Hash {
		return "", nil
	}
	a, b, why, err := s.sides(from, to)
	if err != nil {
		return "", err
	}
	if why != "" {
		return fmt.Sprintf("%s %s and %s differ\n", why, oldName, newName), nil
	}
	differ := a != b
	if a, b = show(a), show(b); differ && a == b {
		return fmt.Sprintf("Files %s and %s differ in what is hidden\n", oldName, newName), nil
	}
	text, err := udiff.ToUnified(oldName, newName, a, udiff.Lines(a, b), around)
	if err != nil {
		return "", fmt.Errorf("compare %s and %s: %w", oldName, newName, err)
	}
	if len(text) > maxPatchText {
		return fmt.Sprintf("Large files %s and %s differ\n", oldName, newName), nil
	}
	return text, nil
}

// sides returns both contents, or why they are not compared line by line.
func (s *Store) sides(from, to *files.Fingerprint) (a, b, why string, err error) {
	for _, f := range []*files.Fingerprint{from, to} {
		if unknown(f) {
			if f.Target == string(files.TooLarge) {
				return "", "", "Files too large to be stored", nil
			}
			return "", "", "Repositories", nil
		}
		if f != nil && f.Mode.IsRegular() && f.Size > MaxPatch {
			return "", "", "Large files", nil
		}
	}
	old, err := s.text(from)
	if err != nil {
		return "", "", "", err
	}
	next, err := s.text(to)
	if err != nil {
		return "", "", "", err
	}
	if isBinary(old) || isBinary(next) {
		return "", "", "Binary files", nil
	}
	return string(old), string(next), "", nil
}

// text returns the content of a file or the target of a symlink, and nil for a folder.
func (s *Store) text(f *files.Fingerprint) ([]byte, error) {
	switch {
	case f == nil || f.Mode.IsDir():
		return nil, nil
	case f.Mode&fs.ModeSymlink != 0:
		return []byte(f.Target), nil
	}
	data, err := s.blobs.Read(f.Hash, MaxPatch)
	if errors.Is(err, fs.ErrNotExist) {
		return s.fromTree(f)
	}
	return data, err
}

// Content opens the content of a file in a checkpoint. The content is verified while it is
// read: if it is damaged, the last Read returns an error.
func (s *Store) Content(f *files.Fingerprint) (io.ReadCloser, error) {
	if f == nil {
		return nil, absent("read content", "fingerprint")
	}
	return s.blobs.OpenSized(f.Hash, f.Size)
}

// fromTree reads a content that is not stored from the project.
func (s *Store) fromTree(f *files.Fingerprint) ([]byte, error) {
	c := descent{root: s.tree}
	defer c.cut(0)
	dir, err := c.to(parent(f.Path))
	if err != nil {
		return nil, writer.NewError("read", f.Path, writer.NotCommitted, err)
	}
	file, info, err := writer.OpenRegular(dir, "read", base(f.Path), os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	_ = file.Close()
	if fits, err := s.content(context.Background(), dir, base(f.Path), info, f, nil); err != nil || !fits {
		return nil, errors.Join(fmt.Errorf("read %s: it changed since it was looked at", f.Path), err)
	}
	return writer.ReadFile(dir, base(f.Path), MaxPatch)
}

func isBinary(b []byte) bool { return bytes.IndexByte(b[:min(len(b), sniff)], 0) >= 0 }

// quote quotes a path unless it is printable without quotes and backslashes.
func quote(path string) string {
	fits := utf8.ValidString(path)
	for _, r := range path {
		fits = fits && unicode.IsPrint(r) && r != '"' && r != '\\'
	}
	if fits {
		return path
	}
	return strconv.Quote(path)
}

// modeText returns the type and mode of a file for a patch.
func modeText(f *files.Fingerprint) string {
	kind := "file"
	switch f.Mode.Type() {
	case fs.ModeDir:
		kind = "folder"
	case fs.ModeSymlink:
		return "symlink"
	}
	return fmt.Sprintf("%s mode %04o", kind, f.Mode.Perm())
}
