package sidecar

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strconv"
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

// write writes a commit with the tree of a checkpoint in one pack, and returns its ID. No
// reference names it yet.
func (s *Store) write(ctx context.Context, chain *checkpoint.Store, d draft) (string, error) {
	if err := s.clear(); err != nil {
		return "", err
	}
	size := int64(0)
	if d.tree == "" {
		size = d.entry.Bytes
	}
	out, err := s.git(ctx, size, func(w io.Writer) error {
		st := &stream{w: bufio.NewWriterSize(w, 64<<10), chain: chain}
		st.head(d)
		if err := st.files(ctx, d); err != nil {
			return err
		}
		st.printf("\nget-mark :1\ndone\n")
		return st.w.Flush()
	}, importCommand...)
	if err != nil {
		return "", s.failed(err)
	}
	return s.oid("fast-import", strings.TrimSpace(string(out)))
}

// abandoned is the age of a file that a git which was killed has left behind.
const abandoned = time.Hour

// clear removes what a git that was killed has left in objects/pack. The caller holds the lock.
func (s *Store) clear() error {
	entries, err := s.repo.ReadDir("objects/pack")
	for _, e := range entries {
		info, ierr := e.Info()
		if strings.HasPrefix(e.Name(), "tmp_") && ierr == nil && time.Since(info.ModTime()) > abandoned {
			err = errors.Join(err, s.repo.Remove("objects/pack/"+e.Name()))
		}
	}
	return err
}

// A stream writes the input of git fast-import. Errors of w come back from Flush.
type stream struct {
	w     *bufio.Writer
	chain *checkpoint.Store
}

func (st *stream) printf(format string, args ...any) { fmt.Fprintf(st.w, format, args...) }

func (st *stream) head(d draft) {
	st.printf("commit refs/heads/import\nmark :1\ncommitter lopen <%s> %d +0000\ndata %d\n%s\n", email, d.at.Unix(), len(d.message), d.message)
	if d.parent != nil {
		st.printf("from %s\n", d.parent.ID)
	}
}

// files writes what differs from the parent. Deletions come first, so that a file can take the
// place of a folder and the other way round.
func (st *stream) files(ctx context.Context, d draft) error {
	if d.tree != "" {
		st.printf("M 040000 %s \"\"\n", d.tree)
		return nil
	}
	tree := st.chain.Tree(d.entry.Root)
	changes, known := st.changes(d.parent, tree)
	if !known {
		return st.whole(ctx, tree)
	}
	for _, c := range changes {
		if c.Kind == files.Deleted && !checkpoint.Reserved(c.Path) {
			st.printf("D %s\n", quoted(c.Path))
		} else if c.Kind == files.Moved && !checkpoint.Reserved(c.From) {
			st.printf("D %s\n", quoted(c.From))
		}
	}
	for _, c := range changes {
		if err := ctx.Err(); err != nil {
			return err
		}
		if c.New != nil {
			if err := st.file(c.New); err != nil {
				return err
			}
		}
	}
	return nil
}

// whole writes a whole tree.
func (st *stream) whole(ctx context.Context, tree *checkpoint.Tree) error {
	st.printf("deleteall\n")
	for f, err := range tree.All() {
		if err == nil {
			err = ctx.Err()
		}
		if err == nil {
			err = st.file(f)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// changes returns what differs from the tree of a parent. known is false if that tree is not one
// of a checkpoint, or cannot be read any more.
func (st *stream) changes(parent *Commit, tree *checkpoint.Tree) (changes []files.Change, known bool) {
	if parent == nil || parent.root == (blob.Hash{}) {
		return nil, false
	}
	changes, err := checkpoint.Diff(st.chain.Tree(parent.root), tree)
	return changes, err == nil
}

// file writes a file or a symlink. A folder is nothing to git, and a name like .git is not
// allowed in its trees.
func (st *stream) file(f *files.Fingerprint) error {
	mode := "100644"
	switch {
	case checkpoint.Reserved(f.Path) || f.Mode.IsDir():
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
		} else if checkpoint.Reserved(f.Path) {
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

// The trailers of a message.
const (
	ofSession     = "Lopen-Session: "
	ofTransaction = "Lopen-Transaction: "
	ofCheckpoint  = "Lopen-Checkpoint: "
	ofRecord      = "Lopen-Record: "
	ofTree        = "Lopen-Tree: " // the checkpoint's tree that the commit has
)

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
	b.WriteString(ofSession + t.Session + "\n" + ofTransaction + t.ID + "\n")
	if e != nil {
		b.WriteString(ofCheckpoint + e.ID.String() + "\n" + ofRecord + strconv.FormatUint(seq, 10) + "\n" + ofTree + e.Root.String() + "\n")
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
