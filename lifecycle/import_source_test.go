package lifecycle_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	gopath "path"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/bundle"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/folder"
	"github.com/lopen-dev/lopen/lifecycle/repair"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/blob"
)

// A loaded bundle is a source of entries in memory.
type loaded struct {
	header  bundle.Header
	entries []loadedEntry

	next int
	rest io.Reader
	fail error // what Next returns at the end, in place of io.EOF
}

type loadedEntry struct {
	bundle.Entry
	data []byte
}

func (l *loaded) Header() *bundle.Header { return &l.header }

func (l *loaded) Next() (bundle.Entry, error) {
	if l.next == len(l.entries) {
		if l.fail != nil {
			return bundle.Entry{}, l.fail
		}
		return bundle.Entry{}, io.EOF
	}
	e := l.entries[l.next]
	l.next++
	l.rest = bytes.NewReader(e.data)
	return e.Entry, nil
}

func (l *loaded) Read(p []byte) (int, error) { return l.rest.Read(p) }

func (l *loaded) add(name string, data []byte) {
	e := loadedEntry{bundle.Entry{Name: name, Size: int64(len(data))}, data}
	if name == "" {
		e.Object = sha256.Sum256(data)
	}
	l.entries = append(l.entries, e)
	l.header.Bytes += e.Size
}

func (l *loaded) document(name, kind, module, content string) {
	sum := sha256.Sum256([]byte(content))
	l.header.Documents = append(l.header.Documents, bundle.Document{Path: name, Kind: kind, Module: module, SHA256: hex.EncodeToString(sum[:]), Size: int64(len(content))})
	l.add("documents/"+hex.EncodeToString(sum[:]), []byte(content))
}

// again returns the same from its begin, as change makes it.
func (l *loaded) again(change func(l *loaded)) *loaded {
	c := &loaded{header: l.header, entries: slices.Clone(l.entries)}
	c.header.Sessions, c.header.Documents = slices.Clone(l.header.Sessions), slices.Clone(l.header.Documents)
	if change != nil {
		change(c)
	}
	return c
}

// replace replaces the content of an entry whose name has a text in it.
func (l *loaded) replace(t require.TestingT, text string, with func(data []byte) []byte) {
	i := slices.IndexFunc(l.entries, func(e loadedEntry) bool { return strings.Contains(e.Name, text) })
	require.GreaterOrEqual(t, i, 0, text)
	e := &l.entries[i]
	e.data = with(bytes.Clone(e.data))
	e.Size = int64(len(e.data))
}

// gather takes closed sessions out of a store, with its checkpoints.
func gather(t require.TestingT, store *lifecycle.Store, ids ...session.ID) *loaded {
	root, err := store.Project().Sub(lifecycle.Dir)
	require.NoError(t, err)
	defer root.Close()
	l := &loaded{header: bundle.Header{At: day, Project: bundle.Project{Path: "/elsewhere"}}}
	for _, id := range ids {
		dir, err := root.Sub(folder.Path(id))
		require.NoError(t, err)
		ld, err := folder.Load(dir, id)
		require.NoError(t, err)
		p := ld.State.Progress()
		l.header.Sessions = append(l.header.Sessions, bundle.Session{ID: id.String(), Module: id.Module, Incarnation: ld.At.Incarnation, Status: string(ld.State.Status()), Seq: ld.At.Seq, Done: p.Done, Total: p.Total})
		l.folder(t, dir, folder.Path(id), ".")
		require.NoError(t, dir.Close())
	}
	cps, err := store.Checkpoints(nil)
	if errors.Is(err, lifecycle.ErrNotFound) {
		return l
	}
	require.NoError(t, err)
	require.NoError(t, cps.Close())
	chains, err := root.Sub("checkpoints")
	require.NoError(t, err)
	defer chains.Close()
	names, err := checkpoint.Chains(chains)
	require.NoError(t, err)
	for _, name := range slices.DeleteFunc(names, func(n string) bool { return strings.HasPrefix(n, "import-") }) {
		data, err := writer.ReadFile(root, "checkpoints/"+name+".jsonl", 1<<20)
		require.NoError(t, err)
		l.add("checkpoints/"+name+".jsonl", data)
	}
	blobs, err := root.Sub("blobs")
	require.NoError(t, err)
	defer blobs.Close()
	from := blob.New(blobs)
	for h, err := range from.All() {
		require.NoError(t, err)
		data, err := from.Read(h, 1<<20)
		require.NoError(t, err)
		l.add("", data)
	}
	return l
}

func (l *loaded) folder(t require.TestingT, dir writer.FS, to, name string) {
	entries, err := dir.ReadDir(name)
	require.NoError(t, err)
	for _, e := range entries {
		full := gopath.Join(name, e.Name())
		switch {
		case strings.HasPrefix(e.Name(), "."), e.Name() == "files", e.Name() == "cursors":
		case e.IsDir():
			l.folder(t, dir, to, full)
		default:
			data, err := writer.ReadFile(dir, full, 1<<24)
			require.NoError(t, err)
			l.add(to+"/"+full, data)
		}
	}
}

// workedElsewhere is a session with four checkpoints that was made in another project.
func workedElsewhere(t *testing.T) (*loaded, session.ID) {
	store := initStore(t)
	sess, _ := agentWorked(t, store, "auth")
	require.NoError(t, sess.Append(&session.Message{ID: "m1", Role: session.RoleUser, Content: session.Text("hello")}))
	require.NoError(t, sess.Close(t.Context()))
	l := gather(t, store, sess.ID())
	l.document(lifecycle.PlanPath("auth"), "plan", "auth", "- [x] one\n- [x] two\n")
	l.document("docs/spec.md", "specification", "auth", "# Spec\n")
	return l, sess.ID()
}

// requireIntact says that sessions are intact, with all that their checkpoints need.
func requireIntact(t require.TestingT, store *lifecycle.Store, ids ...session.ID) {
	for _, id := range ids {
		r, err := store.Verify(id)
		require.NoError(t, err)
		require.NoError(t, store.VerifyData(context.Background(), &r))
		require.Equal(t, repair.Intact, r.Condition, "%v %v", r.Faults, r.Err)
	}
}

// visible returns the names in .lopen that somebody could see, but for the empty folders of
// checkpoints.
func visible(t require.TestingT, store *lifecycle.Store) (names []string) {
	var walk func(dir string)
	walk = func(dir string) {
		entries, err := store.Project().ReadDir(dir)
		require.NoError(t, err)
		for _, e := range entries {
			name := gopath.Join(dir, e.Name())
			switch {
			case e.Name() == ".lock", e.Name() == "ballast", e.Name() == "ids.json", e.Name() == ".gitignore":
			case e.IsDir() && name != lifecycle.Dir+"/blobs" && name != lifecycle.Dir+"/checkpoints" && name != lifecycle.Dir+"/moved" && gopath.Dir(name) != lifecycle.Dir+"/blobs":
				names = append(names, name)
				walk(name)
			case e.IsDir():
				walk(name)
			default:
				names = append(names, name)
			}
		}
	}
	walk(".")
	return names
}
