package lifecycle_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/cache/files"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/bundle"
	"github.com/lopen-dev/lopen/lifecycle/carry"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/blob"
	"github.com/lopen-dev/lopen/writer/crashfs"
)

// A machine runs processes of one person in one project, one after the other.
type machine struct {
	t      *testing.T
	disk   *crashfs.Disk
	memory files.Memory
	born   time.Time // of the file young
	killed bool      // the process did not end by itself
}

func newMachine(t *testing.T) *machine {
	return &machine{t: t, disk: crashfs.New(crashfs.Ext4), memory: files.Own()}
}

// process calls fn with the store in a new process, which returns how many times it opened each of
// the project's files.
func (m *machine) process(fn func(store *lifecycle.Store)) (opened []string) {
	opts := simOptions
	opts.Now, opts.Memory = time.Now, m.memory
	store, err := lifecycle.InitOn(dated{m.disk.FS(), m}, opts)
	require.NoError(m.t, err)
	m.disk.SetHook(serial(func(op crashfs.Op) crashfs.Fault {
		if op.Call == "open" && !strings.HasPrefix(op.Name, lifecycle.Dir) {
			opened = append(opened, op.Name)
		}
		return crashfs.Fault{}
	}))
	disk := m.disk
	defer disk.SetHook(nil)
	fn(store)
	if m.killed {
		defer func(left *crashfs.Disk) { m.disk, m.killed = left, false }(m.disk.Snapshot())
	}
	require.NoError(m.t, store.Close(m.t.Context()))
	slices.Sort(opened)
	return slices.Compact(opened)
}

// dated is a folder in which the file young has a time of the machine's clock. The others are
// decades old.
type dated struct {
	writer.FS
	m *machine
}

func (d dated) Lstat(name string) (fs.FileInfo, error) {
	info, err := d.FS.Lstat(name)
	return d.date(name, info), err
}

func (d dated) OpenFile(name string, flag int, perm fs.FileMode) (writer.File, error) {
	f, err := d.FS.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return datedFile{f, name, d}, nil
}

func (d dated) date(name string, info fs.FileInfo) fs.FileInfo {
	switch {
	case info == nil:
		return nil
	case name == "young":
		return datedInfo{info, d.m.born}
	}
	return datedInfo{info, info.ModTime().AddDate(-50, 0, 0)}
}

type datedFile struct {
	writer.File
	name string
	d    dated
}

func (f datedFile) Stat() (fs.FileInfo, error) {
	info, err := f.File.Stat()
	return f.d.date(f.name, info), err
}

type datedInfo struct {
	fs.FileInfo
	at time.Time
}

func (i datedInfo) ModTime() time.Time { return i.at }

// tree makes files: old ones, one in a folder, rules, and a young one.
func (m *machine) tree() {
	for name, content := range map[string]string{"a": "1", "dir/b": "2", ".gitignore": "*.log\n", "x.log": "noise", "young": "3"} {
		require.NoError(m.t, writer.MkdirDurable(m.disk.FS(), filepath.Dir(name)))
		put(m.t, m.disk.FS(), name, content)
	}
	m.born = time.Now()
}

// However a process ends, the next one opens rule files and what changed within the clock's tick
// before the snapshot, and the one after that only rule files.
func TestSecondRunReadsWhatChanged(t *testing.T) {
	t.Parallel()
	checkpoints := func(m *machine, store *lifecycle.Store) *lifecycle.Session {
		sess := create(m.t, store, "auth")
		checkpointed(m.t, sess, checkpoint.Manual, "")
		return sess
	}
	for name, work := range map[string]func(m *machine, store *lifecycle.Store){
		"the store is closed": func(m *machine, store *lifecycle.Store) { checkpoints(m, store) },
		"the session is closed": func(m *machine, store *lifecycle.Store) {
			require.NoError(m.t, checkpoints(m, store).Close(m.t.Context()))
		},
		"the session is released and the process killed": func(m *machine, store *lifecycle.Store) {
			require.NoError(m.t, checkpoints(m, store).Release())
			m.killed = true
		},
		"there is no session": func(m *machine, store *lifecycle.Store) {
			_, err := store.Checkpoint(m.t.Context(), nil, false)
			require.NoError(m.t, err)
		},
		"no checkpoints are made": func(m *machine, store *lifecycle.Store) {
			id, err := store.Latest("auth")
			var sess *lifecycle.Session
			if err == nil {
				sess, err = store.Open(id)
				require.NoError(m.t, err)
			} else {
				sess = create(m.t, store, "auth")
			}
			_, err = sess.Look(m.t.Context())
			require.NoError(m.t, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := newMachine(t)
				m.tree()
				run := func() []string { return m.process(func(store *lifecycle.Store) { work(m, store) }) }
				require.Equal(t, []string{".gitignore", "a", "dir/b", "young"}, run(), "nothing is known")
				time.Sleep(time.Minute) // of this test's clock
				require.Equal(t, []string{".gitignore", "young"}, run())
				require.Equal(t, []string{".gitignore"}, run(), "it is remembered as settled")

				put(t, m.disk.FS(), "a", "another")
				require.Equal(t, []string{".gitignore", "a"}, run())
				m.memory = nil
				all := []string{".gitignore", "a", "dir/b", "young"}
				require.Equal(t, all, run(), "without a Memory nothing is believed")
				m.memory = files.Own()
				require.Equal(t, all, run(), "nor what a Memory does not have")
				require.Equal(t, []string{".gitignore"}, run(), "it has it now")
			})
		})
	}
}

// Two processes that remember at once leave something that a third believes.
func TestBothRemember(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t)
		m.tree()
		time.Sleep(time.Minute)
		m.process(func(one *lifecycle.Store) {
			checkpointed(t, create(t, one, "auth"), checkpoint.Manual, "")
			m.process(func(two *lifecycle.Store) {
				put(t, m.disk.FS(), "a", "another")
				checkpointed(t, create(t, two, "other"), checkpoint.Manual, "")
				require.NoError(t, one.Close(t.Context()))
			})
		})
		opened := m.process(func(store *lifecycle.Store) { checkpointed(t, create(t, store, "third"), checkpoint.Manual, "") })
		require.Subset(t, []string{".gitignore", "a"}, opened)
	})
}

// forge writes a snapshot of the tree as it is now that claims of a file that it has the content of
// before, as an agent can that wrote that file.
func (m *machine) forge(name, path string) {
	root := dated{m.disk.FS(), m}
	data, err := writer.ReadFile(root, name, files.MaxEncoded)
	require.NoError(m.t, err)
	old, err := files.Decode(data)
	require.NoError(m.t, err)
	forged, err := files.Take(m.t.Context(), root, nil, files.Options{})
	require.NoError(m.t, err)
	for i := range forged.Files {
		if f := &forged.Files[i]; f.Path == path {
			f.Hash = old.Find(path).Hash
		}
	}
	forged.At, forged.Stored = time.Now().Add(time.Hour), old.Stored
	require.NoError(m.t, writer.ReplaceFile(root, name, forged.Encode(), 0o600))
}

// A projectSink takes what an export says of the project's files.
type projectSink struct{ project string }

func (s *projectSink) Add(name string, _ int64, content io.Reader) error {
	data, err := io.ReadAll(content)
	if name == "project.jsonl" {
		s.project = string(data)
	}
	return err
}

func (s *projectSink) Object(blob.Hash, int64, func() (io.ReadCloser, error)) error { return nil }
func (s *projectSink) Close() error                                                 { return nil }

// What an agent writes in the place of a snapshot hides nothing.
func TestForgedSnapshotIsNotBelieved(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t)
		m.tree()
		time.Sleep(time.Minute)
		var first *checkpoint.Entry
		m.process(func(store *lifecycle.Store) {
			first = checkpointed(t, create(t, store, "auth"), checkpoint.Manual, "")
		})
		put(t, m.disk.FS(), "a", "malice")
		m.forge(".lopen/checkpoints/main.files", "a")

		m.process(func(store *lifecycle.Store) { // which remembers nothing
			sink := &projectSink{}
			_, err := store.Export(t.Context(), carry.ExportOptions{All: true}, func(bundle.Header) (carry.Sink, error) { return sink, nil })
			require.NoError(t, err)
			require.Contains(t, sink.project, fmt.Sprintf("%x", sha256.Sum256([]byte("malice"))))
		})
		m.process(func(store *lifecycle.Store) {
			second := checkpointed(t, create(t, store, "auth"), checkpoint.Manual, "")
			cps, err := store.Checkpoints(nil)
			require.NoError(t, err)
			defer cps.Close()
			diff, err := checkpoint.Diff(cps.Tree(first.Root), cps.Tree(second.Root))
			require.NoError(t, err)
			require.Len(t, diff, 1)
			require.Equal(t, "a", diff[0].Path)
		})
	})
}

// The same of what a session without checkpoints last saw.
func TestForgedLookIsNotBelieved(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t)
		m.tree()
		time.Sleep(time.Minute)
		var id session.ID
		m.process(func(store *lifecycle.Store) {
			sess := create(t, store, "auth")
			id = sess.ID()
			_, err := sess.Look(t.Context())
			require.NoError(t, err)
		})
		put(t, m.disk.FS(), "a", "malice")
		m.forge(".lopen/sessions/"+id.String()+"/files", "a")
		m.process(func(store *lifecycle.Store) {
			sess, err := store.Open(id)
			require.NoError(t, err)
			changes, err := sess.Look(t.Context())
			require.NoError(t, err)
			require.Len(t, changes, 1)
			require.Equal(t, "a", changes[0].Path)
		})
	})
}

// A close does not wait longer than its context for what is derived.
func TestCloseDoesNotWaitForMemory(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t)
		m.tree()
		free := make(chan struct{})
		defer close(free)
		opts := simOptions
		opts.Memory = slow{files.Own(), free}
		store, err := lifecycle.InitOn(m.disk.FS(), opts)
		require.NoError(t, err)
		checkpointed(t, create(t, store, "auth"), checkpoint.Manual, "")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.NoError(t, store.Close(ctx))
		require.ErrorIs(t, ctx.Err(), context.DeadlineExceeded)
	})
}

// slow is a Memory on a disk that is stuck.
type slow struct {
	files.Memory
	free chan struct{}
}

func (s slow) Note(string, [32]byte) { <-s.free }
