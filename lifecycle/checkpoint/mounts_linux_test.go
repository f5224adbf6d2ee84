package checkpoint

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/mount/mounttest"
)

// A mountWorld is a project on a real disk, with a volume that can be mounted in it.
type mountWorld struct {
	*worker
	t            *testing.T
	root, volume string
}

func newMountWorld(t *testing.T) *mountWorld {
	top := t.TempDir()
	m := &mountWorld{t: t, root: filepath.Join(top, "tree"), volume: filepath.Join(top, "volume")}
	w := &world{t: t, alive: map[string]bool{}, checkpoints: &volume{}, blobs: &volume{}, tree: &volume{}}
	for name, v := range map[string]*volume{"checkpoints": w.checkpoints, "blobs": w.blobs, "tree": w.tree} {
		require.NoError(t, os.Mkdir(filepath.Join(top, name), 0o755))
		var err error
		v.FS, err = writer.OpenFS(filepath.Join(top, name))
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, v.Close()) })
	}
	m.worker = &worker{world: w, id: "s"}
	m.start()
	m.write(m.volume, "photos/1.jpg", "holiday", "db", "all of it")
	m.write(m.root, "kept.txt", "1", "data/old", "under the mount")
	return m
}

// write writes files, paths and contents in turn. "-" removes a path.
func (m *mountWorld) write(dir string, contents ...string) {
	for i := 0; i < len(contents); i += 2 {
		name := filepath.Join(dir, contents[i])
		if contents[i+1] == "-" {
			require.NoError(m.t, os.RemoveAll(name))
			continue
		}
		require.NoError(m.t, os.MkdirAll(filepath.Dir(name), 0o755))
		require.NoError(m.t, os.WriteFile(name, []byte(contents[i+1]), 0o600))
	}
}

// all returns the files beneath a folder with their contents, and the folders, which end in '/'.
func (m *mountWorld) all(dir string) map[string]string {
	all := map[string]string{}
	require.NoError(m.t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		require.NoError(m.t, err)
		name := strings.TrimPrefix(path, dir+"/")
		if e.IsDir() {
			if path != dir {
				all[name+"/"] = ""
			}
			return nil
		}
		data, err := os.ReadFile(path)
		require.NoError(m.t, err)
		all[name] = string(data)
		return nil
	}))
	return all
}

// changed returns what a session is told of the changes between two entries.
func (m *mountWorld) changed(a, b *Entry) (paths []string) {
	diff, err := Diff(m.cps.Tree(a.Root), m.cps.Tree(b.Root))
	require.NoError(m.t, err)
	for _, c := range diff {
		paths = append(paths, c.Path+": "+string(c.Kind))
	}
	return paths
}

// back rewinds to an entry and returns the plan, and what was retained when it was applied. meanwhile
// comes between the two.
func (m *mountWorld) back(target *Entry, opts RewindOptions, meanwhile func()) (planned, retained []string) {
	last := m.last
	before := m.create(BeforeRewind, target.Number)
	plan, err := m.cps.Plan(context.Background(), target, before, m.cps.Tree(before.Root), last, opts)
	require.NoError(m.t, err)
	if meanwhile != nil {
		meanwhile()
	}
	done, err := m.cps.Apply(context.Background(), plan)
	require.NoError(m.t, err)
	m.create(AfterRewind, target.Number)
	return summary(plan), summary(&Plan{Retained: done.Retained})
}

// TestMountedSince has a task in which something is mounted in the project. What is on the mount, and
// what it hides, is as it was after the task is set back; it is no change of the task, and is named.
func TestMountedSince(t *testing.T) {
	mounttest.Run(t, func(t *testing.T) {
		for name, on := range map[string]struct {
			at    string
			mount func(m *mountWorld, at string)
			want  string
		}{
			"over a folder with files": {"data", func(m *mountWorld, at string) { mounttest.Bind(m.t, m.volume, at) }, "data"},
			"in a folder of the task":  {"new/deep/data", func(m *mountWorld, at string) { mounttest.Bind(m.t, m.volume, at) }, "new/deep/data"},
			"of a folder on itself":    {"data", func(m *mountWorld, at string) { mounttest.Bind(m.t, at, at) }, "data"},
			"of a single file":         {"kept.txt", func(m *mountWorld, at string) { mounttest.Bind(m.t, m.volume+"/db", at) }, "kept.txt"},
			"of a single new file":     {"new/file", func(m *mountWorld, at string) { mounttest.Bind(m.t, m.volume+"/db", at) }, "new/file"},
			"in memory": {"data", func(m *mountWorld, at string) {
				mounttest.Tmpfs(m.t, at)
				m.write(at, "ram", "ram")
			}, "data"},
		} {
			t.Run(name, func(t *testing.T) {
				m := newMountWorld(t)
				was, volume, at := m.all(m.root), m.all(m.volume), filepath.Join(m.root, on.at)
				before := m.begin()
				on.mount(m, at)
				m.write(m.root, "out.txt", "of the task")
				mounted := m.all(m.root)
				after := m.end()
				require.Equal(t, []string{"out.txt: created"}, without(m.changed(before, after), "new"))
				require.Empty(t, after.Mounts)
				planned, retained := m.back(before, RewindOptions{Force: true}, nil)
				require.Equal(t, []string{on.want + ": mounted", "out.txt: delete"}, planned)
				require.Empty(t, retained)
				delete(mounted, "out.txt")
				require.Equal(t, mounted, m.all(m.root))
				require.Equal(t, volume, m.all(m.volume))
				mounttest.Unmount(t, at)
				now := m.all(m.root)
				for path, text := range was {
					require.Equal(t, text, now[path], path)
				}
			})
		}
	})
}

// without returns the texts that do not begin with a prefix.
func without(all []string, prefix string) (rest []string) {
	for _, s := range all {
		if !strings.HasPrefix(s, prefix) {
			rest = append(rest, s)
		}
	}
	return rest
}

// TestMountsOfTheProject: what was there before the first task is the project's, and so is what
// somebody mounts between tasks from then on. A rewind to before that leaves it alone, and so does
// one to before it was unmounted.
func TestMountsOfTheProject(t *testing.T) {
	mounttest.Run(t, func(t *testing.T) {
		t.Run("before the first checkpoint", func(t *testing.T) {
			m := newMountWorld(t)
			mounttest.Bind(t, m.volume, filepath.Join(m.root, "data"))
			was := m.all(m.root)
			before := m.begin()
			require.Equal(t, []string{"data"}, before.Mounts)
			m.write(m.root, "data/db", "changed", "data/photos/1.jpg", "-", "data/made/2.jpg", "new")
			after := m.end()
			require.Equal(t, []string{"data/db: modified", "data/made/2.jpg: created", "data/photos/1.jpg: deleted"}, m.changed(before, after))
			m.back(before, RewindOptions{}, nil)
			require.Equal(t, was, m.all(m.root))
		})
		t.Run("between tasks", func(t *testing.T) {
			m := newMountWorld(t)
			first := m.begin()
			m.write(m.root, "one", "1")
			m.end()
			mounttest.Bind(t, m.volume, filepath.Join(m.root, "data"))
			second := m.begin()
			require.Equal(t, []string{"data"}, second.Mounts)
			was := m.all(m.root)
			m.write(m.root, "data/db", "changed")
			m.end()
			planned, _ := m.back(second, RewindOptions{}, nil)
			require.Equal(t, []string{"data/db: overwrite"}, planned)
			require.Equal(t, was, m.all(m.root))
			planned, _ = m.back(first, RewindOptions{Force: true}, nil)
			require.Equal(t, []string{"data: mounted", "one: delete"}, planned)
			require.Equal(t, "all of it", m.all(m.volume)["db"])
		})
		t.Run("unmounted", func(t *testing.T) {
			m := newMountWorld(t)
			at := filepath.Join(m.root, "data")
			mounttest.Bind(t, m.volume, at)
			before := m.begin()
			mounttest.Unmount(t, at)
			m.write(m.root, "out.txt", "of the task")
			after := m.end()
			require.Equal(t, []string{"out.txt: created"}, m.changed(before, after), "the volume's files are not deleted, and what it hid is not created")
			m.begin()
			m.end()
			planned, _ := m.back(before, RewindOptions{Force: true}, nil)
			require.Equal(t, []string{"data: mounted", "out.txt: delete"}, planned)
			require.Equal(t, "under the mount", m.all(m.root)["data/old"])
			require.NotContains(t, m.all(m.root), "data/db")
		})
		t.Run("by a task, and left", func(t *testing.T) {
			m := newMountWorld(t)
			m.begin()
			mounttest.Bind(t, m.volume, filepath.Join(m.root, "data"))
			m.end()
			second := m.begin() // nobody was at work, and nothing was mounted since
			require.Empty(t, second.Mounts)
			m.write(m.root, "data/db", "changed on the volume")
			require.Empty(t, m.changed(second, m.end()))
			mounttest.Unmount(t, filepath.Join(m.root, "data"))
			require.Empty(t, m.begin().Mounts)
			m.end()
			mounttest.Bind(t, m.volume, filepath.Join(m.root, "data"))
			require.Equal(t, []string{"data"}, m.begin().Mounts)
		})
	})
}

// TestMountedMeanwhile mounts something between the plan and the apply, and between a look and the
// change. What is mounted is not changed, and its path is retained; the rest is done.
func TestMountedMeanwhile(t *testing.T) {
	mounttest.Run(t, func(t *testing.T) {
		for name, on := range map[string]struct {
			at       string
			mount    func(m *mountWorld, at string)
			retained []string
		}{
			"a folder": {"data", func(m *mountWorld, at string) { mounttest.Bind(m.t, m.volume, at) },
				[]string{"data/db: mounted", "data/made/1: mounted", "data/made: mounted", "data/old: mounted"}},
			"a folder that goes": {"data/made", func(m *mountWorld, at string) { mounttest.Bind(m.t, m.volume, at) },
				[]string{"data/made/1: mounted", "data/made: mounted"}},
			"a file that is replaced": {"data/old", func(m *mountWorld, at string) { mounttest.Bind(m.t, at, at) }, []string{"data/old: mounted"}},
			"a file that goes":        {"data/made/1", func(m *mountWorld, at string) { mounttest.Bind(m.t, m.volume+"/db", at) }, []string{"data/made/1: mounted", "data/made: mounted"}},
			"a mode":                  {"run", func(m *mountWorld, at string) { mounttest.Bind(m.t, m.volume+"/same", at) }, []string{"run: mounted"}},
			"a folder's mode":         {"shut", func(m *mountWorld, at string) { mounttest.Bind(m.t, m.volume, at) }, []string{"shut: mounted"}},
		} {
			t.Run(name, func(t *testing.T) {
				m := newMountWorld(t)
				m.write(m.root, "run", "same", "shut/x", "x")
				m.write(m.volume, "same", "same", "old", "changed", "made/1", "made")
				require.NoError(t, os.Chmod(m.root+"/shut", 0o700))
				before := m.begin()
				m.write(m.root, "data/old", "changed", "data/db", "of the task", "data/made/1", "made", "out.txt", "goes")
				require.NoError(t, os.Chmod(m.root+"/run", 0o755))
				require.NoError(t, os.Chmod(m.root+"/shut", 0o755))
				require.NoError(t, os.Chmod(m.volume+"/same", 0o755))
				require.NoError(t, os.Chmod(m.volume, 0o755))
				modes := m.modes(m.volume)
				m.end()
				volume := m.all(m.volume)
				_, retained := m.back(before, RewindOptions{}, func() { on.mount(m, filepath.Join(m.root, on.at)) })
				require.Equal(t, on.retained, retained)
				require.Equal(t, volume, m.all(m.volume))
				require.Equal(t, modes, m.modes(m.volume))
				require.NoFileExists(t, m.root+"/out.txt")
			})
		}
	})
}

// modes returns the modes of a folder and of all beneath it.
func (m *mountWorld) modes(dir string) map[string]fs.FileMode {
	all := map[string]fs.FileMode{}
	require.NoError(m.t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		require.NoError(m.t, err)
		info, err := e.Info()
		require.NoError(m.t, err)
		all[path] = info.Mode()
		return nil
	}))
	return all
}

// TestMountsInAnEntry: an entry names a bounded number of mount points, and takes no more.
func TestMountsInAnEntry(t *testing.T) {
	t.Parallel()
	dir, err := writer.OpenFS(t.TempDir())
	require.NoError(t, err)
	defer dir.Close()
	s := &Store{tree: dir}
	m := newMounting(nil, s, false)
	for n := range 2 * maxMounts {
		require.Equal(t, n < maxMounts, m.takes(strings.Repeat("m", 20)+string(rune('a'+n%26))+strings.Repeat("/x", n/26), true), n)
	}
	m = newMounting(nil, s, false)
	require.False(t, m.takes("\xff", true))
	require.True(t, m.takes(strings.Repeat("m", maxMountBytes-1), true))
	require.False(t, m.takes("mm", true))
	require.True(t, m.takes("m", true))
	require.True(t, m.takes("m", true), "it is the same one")
	require.False(t, newMounting(&Entry{}, s, true).takes("m", true))
}

// A hookFS calls a hook before calls that change a name or open a file. Some of them are made at once.
type hookFS struct {
	writer.FS
	hook func(call, path string)
	path string
}

func (h *hookFS) at(name string) string { return filepath.Join(h.path, name) }

func (h *hookFS) Rename(from, to string) error {
	h.hook("rename", h.at(to))
	return h.FS.Rename(from, to)
}

func (h *hookFS) Remove(name string) error {
	h.hook("remove", h.at(name))
	return h.FS.Remove(name)
}

func (h *hookFS) Mkdir(name string, perm fs.FileMode) error {
	err := h.FS.Mkdir(name, perm)
	h.hook("made", h.at(name))
	return err
}

func (h *hookFS) OpenFile(name string, flag int, perm fs.FileMode) (writer.File, error) {
	h.hook("open", h.at(name))
	return h.FS.OpenFile(name, flag, perm)
}

func (h *hookFS) Sub(name string) (writer.FS, error) {
	sub, err := h.FS.Sub(name)
	return &hookFS{sub, h.hook, h.at(name)}, err
}

// TestMountedInTheMiddle mounts something directly before a change of an Apply that has begun. What is
// mounted is not changed, its path is retained, and the rest is done.
func TestMountedInTheMiddle(t *testing.T) {
	mounttest.Run(t, func(t *testing.T) {
		for name, on := range map[string]struct {
			call, path string // the mount comes before this call
			at         string
			mount      func(m *mountWorld, at string)
			retained   []string
		}{
			"on a file before its rename": {"rename", "data/old", "data/old", func(m *mountWorld, at string) { mounttest.Bind(m.t, at, at) }, []string{"data/old: mounted"}},
			"on a file before it goes":    {"remove", "data/made/1", "data/made/1", func(m *mountWorld, at string) { mounttest.Bind(m.t, m.volume+"/db", at) }, []string{"data/made/1: mounted", "data/made: mounted"}},
			"on a folder after another change": {"rename", "a.txt", "data", func(m *mountWorld, at string) { mounttest.Bind(m.t, m.volume, at) },
				[]string{"data/made/1: mounted", "data/made: mounted", "data/old: mounted"}},
			"on a folder that was made":  {"made", "gone", "gone", func(m *mountWorld, at string) { mounttest.Bind(m.t, m.volume, at) }, []string{"gone/x: mounted", "gone: mounted"}},
			"before a mode is changed":   {"open", "run", "run", func(m *mountWorld, at string) { mounttest.Bind(m.t, m.volume+"/same", at) }, []string{"run: mounted"}},
			"on a folder that is closed": {"rename", "a.txt", "shut", func(m *mountWorld, at string) { mounttest.Bind(m.t, m.volume, at) }, []string{"shut: mounted"}},
		} {
			t.Run(name, func(t *testing.T) {
				m := newMountWorld(t)
				m.write(m.root, "a.txt", "1", "run", "same", "shut/x", "x", "gone/x", "x")
				m.write(m.volume, "same", "same", "old", "changed", "made/1", "made")
				before := m.begin()
				m.write(m.root, "a.txt", "2", "data/old", "changed", "data/made/1", "made", "out.txt", "goes", "gone", "-")
				for _, name := range []string{m.root + "/run", m.root + "/shut", m.volume + "/same"} {
					require.NoError(t, os.Chmod(name, 0o750))
				}
				require.NoError(t, os.Chmod(m.volume, 0o550)) // not letsIn
				m.end()
				volume, modes := m.all(m.volume), m.modes(m.volume)
				tree, begun, mounted := m.tree.FS, false, false
				var mu sync.Mutex
				m.tree.FS = &hookFS{FS: tree, hook: func(call, path string) {
					mu.Lock()
					defer mu.Unlock()
					begun = begun || call == "rename" && path == "a.txt"
					if (begun || on.call != "open") && !mounted && call == on.call && path == on.path {
						mounted = true
						on.mount(m, filepath.Join(m.root, on.at))
					}
				}}
				_, retained := m.back(before, RewindOptions{}, nil)
				m.tree.FS = tree
				require.True(t, mounted)
				require.Equal(t, on.retained, retained)
				require.Equal(t, volume, m.all(m.volume))
				require.Equal(t, modes, m.modes(m.volume))
				require.NoFileExists(t, m.root+"/out.txt")
				require.Equal(t, "1", m.all(m.root)["a.txt"])
			})
		}
	})
}

// TestUnlockCrossesNoMount: before what was moved away is removed, its folders are made writable, and
// not those of a mount in it.
func TestUnlockCrossesNoMount(t *testing.T) {
	mounttest.Run(t, func(t *testing.T) {
		m := newMountWorld(t)
		m.write(m.root, "moved/own/x", "x")
		mounttest.Bind(t, m.volume, m.root+"/moved/data")
		for _, name := range []string{m.volume, m.volume + "/photos", m.root + "/moved/own"} {
			require.NoError(t, os.Chmod(name, 0o555))
		}
		modes := m.modes(m.volume)
		d := ownDescent(m.tree)
		defer d.cut(0)
		d.unlock("moved")
		require.Equal(t, modes, m.modes(m.volume))
		info, err := os.Stat(m.root + "/moved/own")
		require.NoError(t, err)
		require.Equal(t, fs.FileMode(0o755), info.Mode().Perm())
	})
}
