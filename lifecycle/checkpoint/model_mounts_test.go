package checkpoint

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// mounts has somebody mount a volume with two files, on a folder that is empty or not there.
func (m *model) mounts() {
	at := rapid.SampledFrom([]string{"g", "d/e", "v"}).Draw(m.t, "at")
	for name, text := range m.look() {
		if strings.HasPrefix(name, at+"/") || (name == at || strings.HasPrefix(at, name+"/")) && text[0] != 'd' {
			m.t.Skip("something stands there")
		}
	}
	if m.mountedAbove(at+"/x") != "" {
		m.t.Skip("something is mounted there")
	}
	m.write(true, func() error {
		err := m.mkdir(at)
		if err != nil {
			return err
		}
		require.NoError(m.t, m.disk.Mount("tree/"+at, true))
		m.mounted[at] = true
		for _, name := range []string{"a", "photo"} {
			err = errors.Join(err, m.change(path.Join(at, name), fmt.Sprintf("volume %d", m.next())))
		}
		return err
	})
}

// unmounts takes a volume away. What is seen then is the empty folder.
func (m *model) unmounts() {
	if len(m.mounted) == 0 {
		m.t.Skip("nothing is mounted")
	}
	m.unmount(rapid.SampledFrom(slices.Sorted(maps.Keys(m.mounted))).Draw(m.t, "unmount"))
}

func (m *model) unmount(at string) {
	delete(m.mounted, at)
	m.write(true, func() error {
		require.NoError(m.t, m.disk.Mount("tree/"+at, false))
		return errors.Join(m.change(at, "-"), m.mkdir(at))
	})
}

// reboot takes all volumes away that a power cut left behind.
func (m *model) reboot() {
	for _, at := range slices.Sorted(maps.Keys(m.mounted)) {
		if _, err := m.tree.Lstat(at); err != nil { // the name of the folder was not durable
			delete(m.mounted, at)
			continue
		}
		m.unmount(at)
	}
}

// mountedAbove returns the mount point that a path is on, "" for none.
func (m *model) mountedAbove(name string) string {
	for at := range m.mounted {
		if strings.HasPrefix(name, at+"/") {
			return at
		}
	}
	return ""
}

// mountedSince reports whether a path is on a mount that was not there at an entry.
func (m *model) mountedSince(name string, then *moment) bool {
	at := m.mountedAbove(name)
	return at != "" && !then.mounted[at]
}
