package writer

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestQuarantineOrder(t *testing.T) {
	t.Parallel()
	dir := &faultFS{FS: openTemp(t)}
	require.NoError(t, dir.Mkdir("in", 0o700))
	require.NoError(t, dir.Mkdir("in/s", 0o700))
	dir.calls = nil
	name, err := Quarantine(dir, "in/s", "aside", "s", []byte("why"))
	require.NoError(t, err)
	require.Equal(t, "aside/s", name)
	require.Equal(t, "why", get(t, dir, "aside/s.json"))
	require.DirExists(t, dir.Name()+"/aside/s")
	last := dir.calls[len(dir.calls)-3:]
	require.Equal(t, []string{"rename aside/s", "syncdir in", "syncdir aside"}, last, "both names are durable before it returns")
}

// When the move of a folder may not last, the error says so and Quarantine returns where
// the folder is.
func TestQuarantineNotDurable(t *testing.T) {
	t.Parallel()
	dir := &faultFS{FS: openTemp(t)}
	require.NoError(t, dir.Mkdir("in", 0o700))
	require.NoError(t, dir.Mkdir("in/s", 0o700))
	dir.decide = failCalls(map[string]fault{"syncdir in": {err: syscall.EIO}})
	name, err := Quarantine(dir, "in/s", "aside", "s", []byte("why"))
	require.Equal(t, "aside/s", name)
	failed(t, err, dir.Name()+"/aside/s", NotDurable, syscall.EIO)
}

// A label that is taken is not used again, even when its file with the reason was removed.
func TestQuarantineOfATakenName(t *testing.T) {
	t.Parallel()
	dir := openTemp(t)
	for i, want := range []string{"aside/s", "aside/s.2", "aside/s.3"} {
		require.NoError(t, dir.Mkdir("s", 0o700))
		name, err := Quarantine(dir, "s", "aside", "s", []byte("why"))
		require.NoError(t, err)
		require.Equal(t, want, name)
		if i == 0 {
			require.NoError(t, dir.Remove("aside/s.json"))
		}
	}
}
