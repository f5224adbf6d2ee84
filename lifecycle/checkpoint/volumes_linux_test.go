package checkpoint

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/mount/mounttest"
)

// aVolume returns another volume than that of the world.
func (m *mountWorld) aVolume() string {
	other := m.t.TempDir()
	m.write(other, "db", "of the other", "only/2.jpg", "another holiday")
	return other
}

// TestAnotherVolume has a volume of the project in whose place another one is mounted, which is then as
// any that was mounted since. One that is unmounted and mounted again stays the project's.
func TestAnotherVolume(t *testing.T) {
	mounttest.Run(t, func(t *testing.T) {
		swap := func(m *mountWorld, other, at string) {
			mounttest.Unmount(m.t, at)
			mounttest.Bind(m.t, other, at)
		}
		for name, put := range map[string]func(m *mountWorld, other, at string){
			"by a task":         swap,
			"by a task, on top": func(m *mountWorld, other, at string) { mounttest.Bind(m.t, other, at) },
		} {
			t.Run(name, func(t *testing.T) {
				m := newMountWorld(t)
				other, at := m.aVolume(), filepath.Join(m.root, "data")
				mounttest.Bind(t, m.volume, at)
				before := m.begin()
				require.Len(t, before.Volumes, 1)
				put(m, other, at)
				m.write(m.root, "out.txt", "of the task")
				volume, others := m.all(m.volume), m.all(other)
				after := m.end()
				require.Equal(t, []string{"out.txt: created"}, m.changed(before, after))
				require.Empty(t, after.Mounts)
				planned, retained := m.back(before, RewindOptions{Force: true}, nil)
				require.Equal(t, []string{"data: mounted", "out.txt: delete"}, planned)
				require.Empty(t, retained)
				require.Equal(t, volume, m.all(m.volume))
				require.Equal(t, others, m.all(other))
			})
		}
		t.Run("between tasks", func(t *testing.T) {
			m := newMountWorld(t)
			other, at := m.aVolume(), filepath.Join(m.root, "data")
			mounttest.Bind(t, m.volume, at)
			first := m.begin()
			m.end()
			swap(m, other, at)
			second := m.begin()
			require.Equal(t, []string{"data"}, second.Mounts)
			require.NotEqual(t, first.Volumes, second.Volumes)
			others := m.all(other)
			m.write(m.root, "data/db", "changed")
			m.end()
			planned, _ := m.back(second, RewindOptions{}, nil)
			require.Equal(t, []string{"data/db: overwrite"}, planned)
			require.Equal(t, others, m.all(other))
			planned, _ = m.back(first, RewindOptions{Force: true}, nil)
			require.Equal(t, []string{"data: mounted"}, planned)
			require.Equal(t, others, m.all(other))
		})
		t.Run("the same one again", func(t *testing.T) {
			m := newMountWorld(t)
			at := filepath.Join(m.root, "data")
			mounttest.Bind(t, m.volume, at)
			was := m.all(m.root)
			before := m.begin()
			swap(m, m.volume, at)
			m.write(m.root, "data/db", "changed")
			after := m.end()
			require.Equal(t, before.Volumes, after.Volumes)
			planned, retained := m.back(before, RewindOptions{}, func() { swap(m, m.volume, at) })
			require.Equal(t, []string{"data/db: overwrite"}, planned)
			require.Empty(t, retained)
			require.Equal(t, was, m.all(m.root))
		})
		t.Run("after the plan", func(t *testing.T) {
			m := newMountWorld(t)
			other, at, file := m.aVolume(), filepath.Join(m.root, "data"), filepath.Join(m.root, "file")
			mounttest.Bind(t, m.volume, at)
			mounttest.Bind(t, m.volume+"/photos/1.jpg", file)
			before := m.begin()
			m.write(m.root, "data/db", "of the other") // what is to be overwritten is as on the other
			require.NoError(t, os.Chmod(file, 0o640))
			m.end()
			m.write(other, "photos/1.jpg", "holiday")
			require.NoError(t, os.Chmod(other+"/photos/1.jpg", 0o640))
			others, modes := m.all(other), m.modes(other)
			planned, retained := m.back(before, RewindOptions{}, func() {
				swap(m, other, at)
				swap(m, other+"/photos/1.jpg", file)
			})
			require.Equal(t, []string{"data/db: overwrite", "data/photos/1.jpg: mode", "file: mode"}, planned)
			require.Equal(t, []string{"data/db: mounted", "data/photos/1.jpg: mounted", "file: mounted"}, retained)
			require.Equal(t, others, m.all(other))
			require.Equal(t, modes, m.modes(other))
		})
	})
}

// TestVolumeStaysKnown: what was known of the volume at a mount point is, while nothing is mounted there.
func TestVolumeStaysKnown(t *testing.T) {
	t.Parallel()
	dir, err := writer.OpenFS(t.TempDir())
	require.NoError(t, err)
	defer dir.Close()
	m := newMounting(&Entry{Mounts: []string{"a", "b"}, Volumes: []string{"", "one"}}, &Store{tree: dir}, true)
	require.Equal(t, map[string]bool{"a": true, "b": true}, m.was)
	var e Entry
	m.mark(&e, []string{"b", "c"})
	require.Equal(t, Entry{Mounts: []string{"b", "c"}, Volumes: []string{"one", ""}}, e)
	m.mark(&e, []string{"a"})
	require.Equal(t, Entry{Mounts: []string{"a"}}, e)
}
