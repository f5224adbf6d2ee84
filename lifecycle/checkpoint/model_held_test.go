package checkpoint

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lopen-dev/lopen/writer"
)

// A held file is one that a process has open for writing.
type held struct {
	file writer.File
	at   string
}

// opens has somebody's process open a file for writing, and keep it.
func (m *model) opens() {
	var some []string
	for name, text := range m.look() {
		if strings.HasPrefix(text, "-") && !strings.Contains("/"+name, "/.lopen-") && !strings.Contains("/"+name+"/", "/.git/") {
			some = append(some, name)
		}
	}
	if len(some) == 0 || len(m.held) == 3 {
		m.t.Skip("no file")
	}
	at := rapid.SampledFrom(slices.Sorted(slices.Values(some))).Draw(m.t, "open")
	f, err := m.tree.OpenFile(at, os.O_RDWR, 0)
	require.NoError(m.t, err)
	m.held = append(m.held, held{f, at})
}

// says has a process write to a file that it has open. Where that has no name any more, as edits
// have removed or replaced it, nothing is seen of it.
func (m *model) says() {
	if len(m.held) == 0 {
		m.t.Skip("nobody has a file open")
	}
	i := rapid.IntRange(0, len(m.held)-1).Draw(m.t, "held")
	m.write(true, func() error {
		_, err := m.held[i].file.WriteAt(fmt.Appendf(nil, "held %d", m.next()), 0)
		return errors.Join(err, m.held[i].file.Sync())
	})
}

// closes ends a process that has a file open.
func (m *model) closes() {
	if len(m.held) == 0 {
		m.t.Skip("nobody has a file open")
	}
	i := rapid.IntRange(0, len(m.held)-1).Draw(m.t, "held")
	require.NoError(m.t, m.held[i].file.Close())
	m.held = append(m.held[:i:i], m.held[i+1:]...)
}

// inUse are the contents of the files that are open for writing, by their names now. Those on a volume
// are left out: it goes with a power cut.
func (m *model) inUse() map[string]string {
	all := map[string]string{}
	for name, text := range m.look() {
		if !strings.HasPrefix(text, "-") || m.mountedAbove(name) != "" {
			continue
		}
		info, err := m.tree.Lstat(name)
		require.NoError(m.t, err)
		for _, h := range m.held {
			if mine, err := h.file.Stat(); err == nil && writer.SameFile(mine, info) {
				all[name] = textOf(text)
			}
		}
	}
	return all
}

// textOf is what look says of a file, without the mode.
func textOf(text string) string {
	_, content, _ := strings.Cut(text, " ")
	return content
}

// keepsInUse requires that a rewind left the files as they were that were open for writing.
func (m *model) keepsInUse(before map[string]string, after map[string]string, opts RewindOptions) {
	for name, was := range before {
		if !opts.Force {
			require.Equal(m.t, was, textOf(after[name]), "%s is open for writing", name)
		}
	}
}
