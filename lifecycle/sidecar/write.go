package sidecar

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/lopen-dev/lopen/cache/files"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/writer/blob"
)

// A draft is a commit that is to be written.
type draft struct {
	parent  *Commit // nil for the first one
	entry   *checkpoint.Entry
	tree    string // a tree of the side-car in place of that of entry
	at      time.Time
	message string
}

// importCommand takes a stream that lacks its end for no commit.
var importCommand = []string{"fast-import", "--quiet", "--done", "--date-format=raw"}

// write writes a commit with the tree of a checkpoint in one pack, durably, and returns its ID.
// No reference names it yet.
func (s *Store) write(ctx context.Context, chain *checkpoint.Store, d draft) (string, error) {
	size := int64(0)
	if d.tree == "" {
		size = d.entry.Bytes
	}
	out, err := s.add(ctx, size, func(w io.Writer) error {
		st := &stream{w: bufio.NewWriterSize(w, 64<<10), chain: chain}
		st.head(d)
		if err := st.files(ctx, d); err != nil {
			return err
		}
		s.left = append(s.left, st.left...)
		st.printf("\nget-mark :1\ndone\n")
		return st.w.Flush()
	}, importCommand...)
	if err != nil {
		return "", err
	}
	return s.oid("fast-import", out)
}

// A stream writes the input of git fast-import. Errors of w come back from Flush.
type stream struct {
	w     *bufio.Writer
	chain *checkpoint.Store
	left  []string // what git refuses
}

func (st *stream) printf(format string, args ...any) { fmt.Fprintf(st.w, format, args...) }

func (st *stream) head(d draft) {
	st.printf("commit refs/heads/import\nmark :1\ncommitter lopen <%s> %d +0000\ndata %d\n%s\n", email, d.at.Unix(), len(d.message), d.message)
	if d.parent != nil {
		st.printf("from %s\n", d.parent.ID)
	}
}

// files writes what differs from the parent, or everything if the parent's tree is not that of a
// checkpoint, or cannot be read any more. Deletions come first, so that a file can take the
// place of a folder and the other way round.
func (st *stream) files(ctx context.Context, d draft) error {
	if d.tree != "" {
		st.printf("M 040000 %s \"\"\n", d.tree)
		return nil
	}
	var parent blob.Hash // zero is an empty tree
	if d.parent != nil {
		parent = d.parent.root
	}
	changes, err := checkpoint.Diff(st.chain.Tree(parent), st.chain.Tree(d.entry.Root))
	if err != nil || parent == (blob.Hash{}) {
		st.printf("deleteall\n")
		changes, err = checkpoint.Diff(st.chain.Tree(blob.Hash{}), st.chain.Tree(d.entry.Root))
	}
	for _, c := range changes {
		switch c.Kind {
		case files.Deleted:
			st.remove(c.Path)
		case files.Moved:
			st.remove(c.From)
		}
	}
	for _, c := range changes {
		if err == nil {
			err = ctx.Err()
		}
		if _, hidden := c.New.Hidden(); err == nil && c.New != nil && !hidden {
			err = st.file(c.New)
		}
	}
	return err
}

func (st *stream) remove(name string) {
	if !refused(name) {
		st.printf("D %s\n", quoted(name))
	}
}

// file writes a file or a symlink.
func (st *stream) file(f *files.Fingerprint) error {
	mode := "100644"
	switch {
	case f.Mode.IsDir(): // nothing to git
		return nil
	case refused(f.Path):
		st.left = append(st.left, f.Path)
		return nil
	case f.Mode.Type() == fs.ModeSymlink:
		st.printf("M 120000 inline %s\ndata %d\n%s\n", quoted(f.Path), len(f.Target), f.Target)
		return nil
	case f.Mode&0o100 != 0:
		mode = "100755"
	}
	content, err := st.chain.Content(f)
	if err != nil {
		return err
	}
	defer content.Close()
	st.printf("M %s inline %s\ndata %d\n", mode, quoted(f.Path), f.Size)
	n, err := io.Copy(st.w, content) // verifies it
	if err == nil && n != f.Size {
		err = fmt.Errorf("content of %s has %d bytes in place of %d", quoted(f.Path), n, f.Size)
	}
	st.printf("\n")
	return err
}

// dotGit is a name that is .git to Windows, and ignorable is what macOS does not see in a name.
var (
	dotGit    = regexp.MustCompile(`(?i)(^|[/\\])(\.git|git~1)[ .]*([/\\:]|$)`)
	ignorable = regexp.MustCompile(`[\x{200c}-\x{200f}\x{202a}-\x{202e}\x{206a}-\x{206f}\x{feff}]`)
)

// refused reports whether git refuses a path: it does not check out what is .git to some system.
func refused(name string) bool {
	return checkpoint.Reserved(name) || dotGit.MatchString(ignorable.ReplaceAllString(name, ""))
}

// Left returns the paths that commits since the last call lack, because git refuses them.
func (s *Store) Left() (left []string) {
	left, s.left = s.left, nil
	return left
}

// LeftOut returns the paths of a tree that a commit of it lacks: empty folders, names like .git,
// and what the checkpoint could not record itself.
func LeftOut(tree *checkpoint.Tree) (paths []string, err error) {
	empty := map[string]bool{}
	for f, err := range tree.All() {
		if err != nil {
			return nil, err
		}
		delete(empty, path.Dir(f.Path))
		if f.Mode.IsDir() {
			empty[f.Path] = true
		} else if refused(f.Path) {
			paths = append(paths, f.Path)
		}
	}
	skipped, err := tree.Skipped()
	for _, s := range skipped {
		delete(empty, path.Dir(s.Path))
		if s.Reason != files.Ignored {
			paths = append(paths, s.Path)
		}
	}
	return slices.Sorted(slices.Values(slices.AppendSeq(paths, maps.Keys(empty)))), err
}

// quoted quotes a path as fast-import reads it, byte by byte.
func quoted(name string) string {
	b := []byte{'"'}
	for _, c := range []byte(name) {
		switch {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c < ' ' || c == 0x7f:
			b = fmt.Appendf(b, "\\%03o", c)
		default:
			b = append(b, c)
		}
	}
	return string(append(b, '"'))
}

// maxSubject bounds the first line of a message, in bytes.
const maxSubject = 200

// message returns a message: one line, the lines of a list, and the trailers.
func (t *Transaction) message(subject string, list []string, e *checkpoint.Entry, seq uint64) string {
	var b strings.Builder
	b.WriteString(oneLine(subject) + "\n\n")
	for _, line := range list {
		b.WriteString("- " + oneLine(line) + "\n")
	}
	if len(list) > 0 {
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "%s: %s\n%s: %s\n", ofSession, t.Session, ofTransaction, t.ID)
	if e != nil {
		fmt.Fprintf(&b, "%s: %s\n%s: %d\n%s: %s\n", ofCheckpoint, e.ID, ofRecord, seq, ofTree, e.Root)
	}
	return b.String()
}

// oneLine returns a text of bounded length without control characters.
func oneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, s)
	if len(s) > maxSubject {
		s = strings.ToValidUTF8(s[:maxSubject], "")
	}
	return strings.TrimSpace(s)
}
