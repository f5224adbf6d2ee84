package lifecycle_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	gopath "path"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/bundle"
	"github.com/lopen-dev/lopen/lifecycle/carry"
	"github.com/lopen-dev/lopen/lifecycle/folder"
	"github.com/lopen-dev/lopen/lifecycle/repair"
	"github.com/lopen-dev/lopen/lifecycle/rewind"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/blob"
	"github.com/lopen-dev/lopen/writer/crashfs"
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
	cps, err := store.Checkpoints()
	if errors.Is(err, lifecycle.ErrNotFound) {
		return l
	}
	require.NoError(t, err)
	require.NoError(t, cps.Close())
	for _, name := range []string{"main"} {
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
		require.NoError(t, store.VerifyData(&r))
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
			case e.Name() == ".lock", e.Name() == "ballast", e.Name() == "ids.json":
			case e.IsDir() && name != lifecycle.Dir+"/blobs" && name != lifecycle.Dir+"/checkpoints" && gopath.Dir(name) != lifecycle.Dir+"/blobs":
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

func TestImportIntoAnEmptyStore(t *testing.T) {
	t.Parallel()
	from, id := workedElsewhere(t)
	store := initStore(t)
	r, err := store.Import(t.Context(), from.again(nil))
	require.NoError(t, err)
	require.Len(t, r.Sessions, 1)
	require.Equal(t, id.String(), r.Sessions[0].ID)
	require.Equal(t, "intact", r.Sessions[0].Condition)
	require.EqualValues(t, 1, r.Sessions[0].Messages)
	require.Equal(t, 4, r.Checkpoints)
	require.False(t, r.Apart)
	require.Zero(t, r.ObjectsKnown)
	require.Equal(t, "written written", r.Documents[0].Became+" "+r.Documents[1].Became)
	requireIntact(t, store, id)
	require.Len(t, cps(t, store), 4)
	require.Equal(t, "# Spec\n", got(t, store.Project(), "docs/spec.md"))
	latest, err := store.Latest("")
	require.NoError(t, err)
	require.Equal(t, id, latest)
	messages, _, err := conversationIn(store, id)
	require.NoError(t, err)
	require.Equal(t, []string{"m1"}, messages)

	// Everything works as it did there: the files come back, and so do the tasks.
	sess, err := store.Open(id)
	require.NoError(t, err)
	require.Equal(t, 2, done(sess.State()))
	all := cps(t, store)
	_, err = sess.Rewind(t.Context(), all[1].ID, rewind.Options{Files: true, State: true, Force: true})
	require.NoError(t, err)
	require.Equal(t, "1 old (none)", content(t, store))
	require.Equal(t, 1, done(sess.State()))
	require.NoError(t, sess.Close(t.Context()))
	requireIntact(t, store, id)

	// What went on here is more than the bundle has.
	before := visible(t, store)
	r, err = store.Import(t.Context(), from.again(nil))
	require.NoError(t, err)
	require.True(t, r.Sessions[0].Known)
	require.Greater(t, r.Sessions[0].Here, r.Sessions[0].Seq)
	require.Equal(t, "different same", r.Documents[0].Became+" "+r.Documents[1].Became, "the rewind has changed the plan")
	require.Equal(t, before, visible(t, store))

	// Its ID is not given again.
	next := made(t, store, "auth")
	require.NotEqual(t, id, next)
}

// A store with checkpoints of its own keeps its chain; what came can be looked at, and goes with
// its session.
func TestImportBesideAChain(t *testing.T) {
	t.Parallel()
	from, id := workedElsewhere(t)
	store := initStore(t)
	own, _ := agentWorked(t, store, "other")
	require.NoError(t, own.Close(t.Context()))
	mine := cps(t, store)
	r, err := store.Import(t.Context(), from.again(nil))
	require.NoError(t, err)
	require.True(t, r.Apart)
	require.Equal(t, r.Objects, r.ObjectsKnown, "the same files were here")
	require.Equal(t, mine, cps(t, store))
	requireIntact(t, store, id, own.ID())
	c, err := store.Checkpoints()
	require.NoError(t, err)
	defer c.Close()
	line, err := store.CheckpointLine(c, id)
	require.NoError(t, err)
	require.Len(t, line, 4)
	for _, e := range mine {
		require.False(t, line[e.ID])
	}
	usage, err := store.CheckpointUsage()
	require.NoError(t, err)
	require.Equal(t, 8, usage.Checkpoints)
	require.Zero(t, usage.Unneeded)

	// The session goes on, with checkpoints in this project's chain.
	sess, err := store.Open(id)
	require.NoError(t, err)
	_, _, err = sess.Checkpoint(t.Context(), "manual", "")
	require.NoError(t, err)
	require.NoError(t, sess.Close(t.Context()))
	require.Len(t, cps(t, store), 5)
	line, err = store.CheckpointLine(c, id)
	require.NoError(t, err)
	require.Len(t, line, 5)
	requireIntact(t, store, id, own.ID())

	// Deleting another session leaves the chain; deleting this one takes it along.
	_, err = store.Delete(t.Context(), made(t, store, "third"))
	require.NoError(t, err)
	chains, err := c.Imported()
	require.NoError(t, err)
	require.Len(t, chains, 1)
	_, err = store.Delete(t.Context(), id)
	require.NoError(t, err)
	chains, err = c.Imported()
	require.NoError(t, err)
	require.Empty(t, chains)
	requireIntact(t, store, own.ID())
}

// What is refused leaves nothing.
func TestImportRefuses(t *testing.T) {
	t.Parallel()
	from, id := workedElsewhere(t)
	dir := "sessions/" + id.String() + "/"
	text := func(s string) func([]byte) []byte { return func([]byte) []byte { return []byte(s) } }
	for name, c := range map[string]struct {
		change func(l *loaded)
		want   string
	}{
		"not whole":            {func(l *loaded) { l.fail = fmt.Errorf("cut off: %w", lifecycle.ErrCorrupt) }, "cut off"},
		"a name of nothing":    {func(l *loaded) { l.add("ids.json", nil) }, "nothing that is carried"},
		"a lock":               {func(l *loaded) { l.add(dir+".lock", nil) }, "nothing that is carried"},
		"a way out":            {func(l *loaded) { l.add(dir+"../../config.json", nil) }, "nothing that is carried"},
		"no session":           {func(l *loaded) { l.add("sessions/AUTH-1/state.json", nil) }, "nothing that is carried"},
		"another session":      {func(l *loaded) { l.add("sessions/auth-20260214-77/segments", nil) }, "does not name the session"},
		"a session is missing": {func(l *loaded) { l.header.Sessions[0].ID = "auth-20260214-77" }, "does not name"},
		"twice":                {func(l *loaded) { l.header.Sessions = append(l.header.Sessions, l.header.Sessions[0]) }, "named twice"},
		"a huge counter":       {func(l *loaded) { l.header.Sessions[0].ID = "auth-20260214-18446744073709551615" }, "is no session"},
		"another module":       {func(l *loaded) { l.header.Sessions[0].Module = "other" }, "is no session of module"},
		"another record":       {func(l *loaded) { l.header.Sessions[0].Seq++ }, "its log is at record"},
		"another incarnation":  {func(l *loaded) { l.header.Sessions[0].Incarnation = "00" }, "its log is at record"},
		"another progress":     {func(l *loaded) { l.header.Sessions[0].Done = 7 }, "its log is at record"},
		"another status":       {func(l *loaded) { l.header.Sessions[0].Status = "complete" }, "its log is at record"},
		"a damaged log": {func(l *loaded) {
			l.replace(t, "journal-", func(d []byte) []byte { d[bytes.Index(d, []byte(`"ops"`))] ^= 1; return d })
		}, "sessions/" + id.String()},
		"another session's log": {func(l *loaded) {
			for _, name := range []string{"journal-", "segments"} {
				l.replace(t, name, func(d []byte) []byte { return bytes.ReplaceAll(d, []byte(id.String()), []byte("auth-20260214-9")) })
			}
		}, "sessions/" + id.String()},
		"a damaged chain":   {func(l *loaded) { l.replace(t, "checkpoints/", func(d []byte) []byte { d[20] ^= 1; return d }) }, "checkpoints/main.jsonl"},
		"a chain cut short": {func(l *loaded) { l.replace(t, "checkpoints/", func(d []byte) []byte { return d[:len(d)-1] }) }, "cannot be read"},
		"no objects": {func(l *loaded) {
			l.entries = slices.DeleteFunc(l.entries, func(e loadedEntry) bool { return e.Name == "" })
		}, "checkpoint 1"},
		"a content is missing": {func(l *loaded) {
			l.entries = slices.DeleteFunc(l.entries, func(e loadedEntry) bool { return e.Name == "" && string(e.data) == "old" })
		}, "the content of gone is missing"},
		"another content": {func(l *loaded) {
			i := slices.IndexFunc(l.entries, func(e loadedEntry) bool { return e.Name == "" && string(e.data) == "old" })
			l.entries[i].data = []byte("new")
		}, "another hash"},
		"a document is missing":   {func(l *loaded) { l.header.Documents[0].SHA256 = strings.Repeat("00", 32) }, "no such document"},
		"a document is too large": {func(l *loaded) { l.header.Documents[0].Size = 1 << 30 }, "more than"},
		"a document has no hash":  {func(l *loaded) { l.header.Documents[0].SHA256 = "../x" }, "no hash"},
		"another document":        {func(l *loaded) { l.replace(t, "documents/", text("- [x] one\n- [x] TWO\n")) }, "another hash"},
		"a document is no text":   {func(l *loaded) { l.document("x.md", "research", "", "\xff") }, "no text in UTF-8"},
		"a document has a zero":   {func(l *loaded) { l.document("x.md", "research", "", "\x00") }, "no text in UTF-8"},
		"an unnamed document":     {func(l *loaded) { l.add("documents/"+strings.Repeat("00", 32), nil) }, "no such document"},
		"files outside":           {func(l *loaded) { l.add("project.jsonl", []byte(`{"path":"../x","size":1,"mode":420}`+"\n")) }, "no path inside"},
		"files without a path":    {func(l *loaded) { l.add("project.jsonl", []byte("{}\n")) }, "no path inside"},
		"files that are no JSON":  {func(l *loaded) { l.add("project.jsonl", []byte("x\n")) }, "line 1"},
		"a line without an end":   {func(l *loaded) { l.add("project.jsonl", []byte(`{"path":"x"}`)) }, "cut off"},
		"an endless line":         {func(l *loaded) { l.add("project.jsonl", bytes.Repeat([]byte("x"), 1<<20)) }, "cut off"},
		"no room":                 {func(l *loaded) { l.header.Bytes = 1 << 60 }, "are free"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := initStore(t)
			before := visible(t, store)
			_, err := store.Import(t.Context(), from.again(c.change))
			require.ErrorContains(t, err, c.want)
			require.Equal(t, before, visible(t, store), err)
			temp := t.TempDir()
			_, verr := lifecycle.VerifyBundle(t.Context(), from.again(c.change), temp)
			if name != "another content" { // the container has compared it
				require.ErrorContains(t, verr, c.want)
			}
			left, err := os.ReadDir(temp)
			require.NoError(t, err)
			require.Empty(t, left)
			_, err = store.Import(t.Context(), from.again(nil))
			require.NoError(t, err, "nothing is in the way of the real one")
			requireIntact(t, store, id)
		})
	}
}

// An unfinished rewind would be finished here, on files that it was not begun on.
func TestImportRefusesAnUnfinishedRewind(t *testing.T) {
	t.Parallel()
	disk := crashfs.New(crashfs.Ext4)
	store, err := lifecycle.InitOn(disk.FS(), simOptions)
	require.NoError(t, err)
	sess, ids := agentWorked(t, store, "sim")
	var cut *crashfs.Disk
	disk.SetHook(serial(func(op crashfs.Op) crashfs.Fault {
		if cut == nil && op.Call == "rename" && !strings.Contains(op.Name, lifecycle.Dir) {
			cut = disk.Snapshot()
		}
		return crashfs.Fault{}
	}))
	_, err = sess.Rewind(t.Context(), ids[0], both)
	require.NoError(t, err)
	disk.SetHook(nil)
	require.NoError(t, sess.Close(t.Context()))
	require.NotNil(t, cut)
	before, err := lifecycle.OpenOn(cut.Crash(crashfs.Variant{}).FS(), simOptions)
	require.NoError(t, err)
	from := gather(t, before, sess.ID())
	_, err = initStore(t).Import(t.Context(), from)
	require.ErrorContains(t, err, "a rewind was begun and not finished")
}

// Documents never replace anything and never lead out of the project, through links or into
// what tools read by themselves.
func TestImportedDocumentsStayInside(t *testing.T) {
	t.Parallel()
	from, _ := workedElsewhere(t)
	outside := t.TempDir()
	store := initStore(t)
	dir := store.Project().Name()
	require.NoError(t, os.Symlink(outside, dir+"/out"))
	require.NoError(t, os.Mkdir(dir+"/real", 0o755))
	require.NoError(t, os.Symlink("real", dir+"/in"))
	require.NoError(t, os.Symlink("nowhere.md", dir+"/dangling.md"))
	write(t, dir+"/mine.md", "mine")
	write(t, dir+"/file", "no folder")
	want := map[string]string{
		"../x.md": "left", "/x.md": "left", "a/../../x.md": "left", "out/x.md": "left", "in/x.md": "left", ".git/hooks/x.md": "left", "a/.git/x.md": "left", ".lopen/x.md": "left",
		".LOPEN/config.md": "left", ".envrc": "left", "a/.hidden.md": "left", "Makefile": "left", "run.sh": "left", "": "left", "file/x.md": "left",
		"mine.md": "different", "dangling.md": "different", "new/deep/x.md": "written", "x.TXT": "written",
		"CLAUDE.md": "left", "sub/agents.MD": "left", "CLAUDE.local.md": "left", "CMakeLists.txt": "left", "requirements-dev.txt": "left",
		"docs/requirements/x.md": "written", "docs/myagents.md": "written",
	}
	l := from.again(func(l *loaded) {
		for name := range want {
			l.document(name, "research", "auth", "text of "+name)
		}
		l.document("plan", "plan", "another", "- [ ] x\n")
		l.document("plan", "plan", "../auth", "- [ ] x y\n")
	})
	r, err := store.Import(t.Context(), l)
	require.NoError(t, err)
	for _, d := range r.Documents[2 : len(r.Documents)-2] {
		require.Equal(t, want[d.Path], d.Became, "%s: %s", d.Path, d.Why)
	}
	for _, d := range r.Documents[len(r.Documents)-2:] {
		require.Equal(t, "left", d.Became)
	}
	require.Equal(t, "mine", got(t, store.Project(), "mine.md"))
	left, err := os.ReadDir(outside)
	require.NoError(t, err)
	require.Empty(t, left)
	require.NoFileExists(t, dir+"/nowhere.md")
	require.NoFileExists(t, dir+"/real/x.md")
}

// TestPowerCutWhileImporting cuts the power at every call: nothing is visible, or the whole
// session with all that its checkpoints need. What is left is cleared by the next one.
func TestPowerCutWhileImporting(t *testing.T) {
	t.Parallel()
	from, id := workedElsewhere(t)
	for _, beside := range []bool{false, true} {
		disk := crashfs.New(crashfs.Ext4)
		store, err := lifecycle.InitOn(disk.FS(), simOptions)
		require.NoError(t, err)
		own := 0
		if beside {
			sess, ids := agentWorked(t, store, "sim")
			require.NoError(t, sess.Close(t.Context()))
			own = len(ids)
			from = from.again(func(l *loaded) { // so that no document is synced behind the names
				l.header.Documents = nil
				l.entries = slices.DeleteFunc(l.entries, func(e loadedEntry) bool { return strings.HasPrefix(e.Name, "documents/") })
			})
		}
		var points []*crashfs.Disk
		states, reveals, placed := 0, 0, 0
		disk.SetHook(serial(func(op crashfs.Op) crashfs.Fault {
			if op.N > 0 {
				points = append(points, disk.Snapshot())
			}
			if reveals == 0 && strings.Contains(op.Name, "checkpoints") && !strings.Contains(op.Name, ".import-") && op.Call == "rename" {
				reveals = len(points) // from here on names come into place
			}
			if op.Call == "rename" && op.Name == lifecycle.Dir+"/sessions/"+id.String() {
				placed = len(points)
			}
			return crashfs.Fault{}
		}))
		_, err = store.Import(t.Context(), from.again(nil))
		require.NoError(t, err)
		disk.SetHook(nil)
		points = append(points, disk.Snapshot())
		require.NoError(t, store.Close(t.Context()))
		there, gone := 0, 0
		for i, p := range points {
			whole := *deep || i >= reveals-1 && i <= placed+4
			if !whole && i%5 != 0 && i < len(points)-1 {
				continue
			}
			for _, v := range p.Variants(nil, 0) {
				if states++; !whole && states%7 != 0 {
					continue
				}
				crashStates.Add(1)
				after, err := lifecycle.OpenOn(p.Crash(v).FS(), simOptions)
				require.NoError(t, err)
				if _, _, err := after.Read(id); err == nil {
					there++
					requireIntact(t, after, id)
				} else {
					gone++
					require.Less(t, i, len(points)-1, "it was acknowledged: %s", v.Name)
				}
				_, err = after.Prune(t.Context(), lifecycle.Retention{}, false)
				require.NoError(t, err)
				for _, name := range visible(t, after) {
					require.NotContains(t, name, ".import-")
				}
				if beside {
					require.Len(t, cps(t, after), own)
				}
				r, err := after.Import(t.Context(), from.again(nil))
				require.NoError(t, err, v.Name)
				require.Equal(t, id.String(), r.Sessions[0].ID)
				requireIntact(t, after, id)
				for _, name := range visible(t, after) {
					require.False(t, strings.Contains(name, ".tmp-") && strings.Contains(name, "checkpoints"), name)
				}
				require.NoError(t, after.Close(t.Context()))
			}
		}
		require.NotZero(t, there)
		require.NotZero(t, gone)
		require.NotZero(t, placed)
	}
}

// TestImportOnABadDisk fails each call: nothing is visible afterwards, and nothing is left
// behind, or everything came.
func TestImportOnABadDisk(t *testing.T) {
	t.Parallel()
	from, id := workedElsewhere(t)
	for n, fault := range []error{syscall.EIO, syscall.ENOSPC} {
		for k, ended := uint64(1), false; !ended; k++ {
			if !*deep && k%2 != uint64(n) {
				continue
			}
			disk := crashfs.New(crashfs.Ext4)
			store, err := lifecycle.InitOn(disk.FS(), simOptions)
			require.NoError(t, err)
			before := visible(t, store)
			call, n := "", uint64(0)
			disk.SetHook(serial(func(op crashfs.Op) crashfs.Fault {
				if op.N == 0 || op.Call == "remove" || op.Call == "removeall" {
					return crashfs.Fault{}
				}
				if n++; n == k {
					call = op.Call + " " + op.Name
					return crashfs.Fault{Err: fault}
				}
				return crashfs.Fault{}
			}))
			_, err = store.Import(context.Background(), from.again(nil))
			disk.SetHook(nil)
			ended = call == ""
			if _, _, rerr := store.Read(id); rerr == nil {
				requireIntact(t, store, id)
			} else {
				require.Error(t, err, call)
				require.Equal(t, before, visible(t, store), "%s: %v", call, err)
			}
			_, err = store.Import(context.Background(), from.again(nil))
			require.NoError(t, err, call)
			requireIntact(t, store, id)
			require.NoError(t, store.Close(context.Background()))
		}
	}
}

// An import whose caller gives up leaves nothing.
func TestImportGivenUp(t *testing.T) {
	t.Parallel()
	from, id := workedElsewhere(t)
	store := initStore(t)
	before := visible(t, store)
	for n := range from.entries {
		ctx, cancel := context.WithCancel(t.Context())
		l := from.again(nil)
		_, err := store.Import(ctx, &stopping{l, n, cancel})
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, before, visible(t, store))
	}
	_, _, err := store.Read(id)
	require.ErrorIs(t, err, lifecycle.ErrNotFound)
}

// stopping gives up before an entry.
type stopping struct {
	*loaded
	at   int
	stop func()
}

func (s *stopping) Next() (bundle.Entry, error) {
	if s.next == s.at {
		s.stop()
	}
	return s.loaded.Next()
}

// What a killed import left is named by doctor, and cleared by whoever makes a session; that of
// one that goes on is not.
func TestInterruptedImportIsCleared(t *testing.T) {
	t.Parallel()
	from, _ := workedElsewhere(t)
	store := initStore(t)
	old := path(store, ".import-old")
	require.NoError(t, os.MkdirAll(old+"/sessions/auth-20260214-1", 0o700))
	for _, dir := range []string{"checkpoints", "blobs"} {
		require.NoError(t, os.Mkdir(path(store, dir), 0o700))
	}
	content := path(store, "blobs", ".tmp-blob-cut")
	write(t, content, "half a content")
	named := func() (all []string) {
		for _, c := range store.Doctor(t.Context()) {
			if c.Name == "imports" {
				all = append(all, c.Found)
			}
		}
		return all
	}
	require.Len(t, named(), 1)
	require.Contains(t, named()[0], ".import-old is of an import that was cut off")
	made(t, store, "second")
	require.NoDirExists(t, old)
	require.NoFileExists(t, content)
	l := &stopping{loaded: from.again(nil), at: 3}
	l.stop = func() { // while it goes on, somebody else makes a session
		made(t, storeIn(t, store.Project().Name()), "third")
		require.Empty(t, named())
		entries, err := fs.Glob(os.DirFS(store.Path()), ".import-*")
		require.NoError(t, err)
		require.Len(t, entries, 1)
	}
	_, err := store.Import(t.Context(), l)
	require.NoError(t, err)
	entries, err := fs.Glob(os.DirFS(store.Path()), ".import-*")
	require.NoError(t, err)
	require.Empty(t, entries)
}

// The files of the project are compared with what they were.
func TestImportComparesFiles(t *testing.T) {
	t.Parallel()
	from, _ := workedElsewhere(t)
	store := initStore(t)
	dir := store.Project().Name()
	require.NoError(t, os.WriteFile(dir+"/same", []byte("one"), 0o644))
	require.NoError(t, os.WriteFile(dir+"/other", []byte("two"), 0o644))
	require.NoError(t, os.WriteFile(dir+"/mode", []byte("one"), 0o755))
	require.NoError(t, os.Symlink("same", dir+"/link"))
	require.NoError(t, os.Symlink("other", dir+"/link2"))
	sum := fmt.Sprintf("%x", sha256.Sum256([]byte("one")))
	var lines strings.Builder
	for _, name := range []string{"same", "other", "mode", "missing", "link2"} {
		fmt.Fprintf(&lines, `{"path":%q,"size":3,"mode":420,"sha256":%q}`+"\n", name, sum)
	}
	lines.WriteString(`{"path":"link","size":4,"mode":0,"target":"same"}` + "\n")
	r, err := store.Import(t.Context(), from.again(func(l *loaded) { l.add("project.jsonl", []byte(lines.String())) }))
	require.NoError(t, err)
	require.Equal(t, []int{6, 2, 3, 1}, []int{r.Files.Listed, r.Files.Equal, r.Files.Different, r.Files.Missing})
	require.Equal(t, []string{"other", "mode", "missing", "link2"}, r.Files.Names)
}

// A session whose ID is taken gets another one, and is the same in all else: importing it once
// more finds it. What names the other project's folder names this one.
func TestImportUnderAnotherID(t *testing.T) {
	t.Parallel()
	there := initStore(t)
	was, _ := agentWorked(t, there, "auth")
	require.NoError(t, was.Change(session.TriggerTaskCompleted, func(e *session.Edit) error {
		e.Header().Settings.Command = []string{"sh", there.Project().Name() + "/agent.sh", "/usr/bin/x"}
		e.Header().Settings.Check = "cd " + there.Project().Name() + " && make"
		return nil
	}))
	require.NoError(t, was.Close(t.Context()))
	from := gather(t, there, was.ID())
	from.header.Project.Path = there.Project().Name()

	store := initStore(t)
	taken := made(t, store, "auth")
	require.Equal(t, was.ID(), taken)
	r, err := store.Import(t.Context(), from.again(nil))
	require.NoError(t, err)
	a := r.Sessions[0]
	require.Equal(t, taken.String(), a.Was)
	require.NotEqual(t, a.Was, a.ID)
	require.True(t, a.Paths)
	id, err := session.ParseID(a.ID)
	require.NoError(t, err)
	requireIntact(t, store, taken, id)
	st, seq, err := store.Read(id)
	require.NoError(t, err)
	require.Equal(t, a.Seq, seq)
	require.Equal(t, []string{"sh", store.Project().Name() + "/agent.sh", "/usr/bin/x"}, st.Header().Settings.Command)
	require.Equal(t, "cd "+store.Project().Name()+" && make", st.Header().Settings.Check)

	// It has its checkpoints, with the tasks of then.
	sess, err := store.Open(id)
	require.NoError(t, err)
	_, err = sess.Rewind(t.Context(), cps(t, store)[1].ID, rewind.Options{Files: true, State: true, Force: true})
	require.NoError(t, err)
	require.Equal(t, 1, done(sess.State()))
	require.Equal(t, "1 old (none)", content(t, store))
	require.NoError(t, sess.Close(t.Context()))
	_, err = store.Delete(t.Context(), taken)
	require.NoError(t, err)
	require.NotEmpty(t, cps(t, store), "they are of the other one")
	requireIntact(t, store, id)

	r, err = store.Import(t.Context(), from.again(nil))
	require.NoError(t, err)
	require.True(t, r.Sessions[0].Known)
	require.Equal(t, a.ID, r.Sessions[0].ID)

	// An ID in the trash is taken as well; a fork comes with what it inherited.
	require.NoError(t, func() error {
		sess, err := store.Open(id)
		if err == nil {
			err = errors.Join(sess.Complete(t.Context()), sess.Close(t.Context()))
		}
		return err
	}())
	fork, err := there.Fork(t.Context(), was.ID(), lifecycle.ForkOptions{})
	require.NoError(t, err)
	require.NoError(t, fork.Close(t.Context()))
	_, err = store.Prune(t.Context(), lifecycle.Retention{Age: 1}, false)
	require.NoError(t, err)
	both := gather(t, there, was.ID(), fork.ID())
	r, err = store.Import(t.Context(), both)
	require.NoError(t, err)
	for _, a := range r.Sessions {
		require.False(t, a.Known)
		id, err := session.ParseID(a.ID)
		require.NoError(t, err)
		requireIntact(t, store, id)
	}
}

func TestSettingsComeWithABackupOnly(t *testing.T) {
	t.Parallel()
	from, _ := workedElsewhere(t)
	from.document(lifecycle.Dir+"/config.json", "settings", "", `{"schemaVersion":1,"unit":"there"}`)
	became := func(r *carry.Report) string {
		i := slices.IndexFunc(r.Documents, func(d carry.PlacedDocument) bool { return d.Kind == "settings" })
		return r.Documents[i].Became
	}

	store := initStore(t)
	r, err := store.Import(t.Context(), from.again(nil))
	require.NoError(t, err)
	require.Equal(t, carry.DocumentLeft, became(r))
	data, err := store.Config()
	require.NoError(t, err)
	require.Nil(t, data)

	r, err = store.Import(t.Context(), carry.Whole{Source: from.again(nil)})
	require.NoError(t, err)
	require.Equal(t, carry.DocumentWritten, became(r))
	data, err = store.Config()
	require.NoError(t, err)
	require.Contains(t, string(data), "there")

	require.NoError(t, store.SetConfig([]byte(`{"schemaVersion":1,"unit":"here"}`)))
	r, err = store.Import(t.Context(), carry.Whole{Source: from.again(nil)})
	require.NoError(t, err)
	require.Equal(t, carry.DocumentDifferent, became(r))
	data, err = store.Config()
	require.NoError(t, err)
	require.Contains(t, string(data), "here")
}
