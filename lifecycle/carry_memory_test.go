package lifecycle_test

import (
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle/bundle"
	"github.com/lopen-dev/lopen/lifecycle/carry"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

// A heaped file is written to or read, and looks at the memory in use each 8 MiB.
type heaped struct {
	*os.File
	n, peak uint64
}

func (h *heaped) Write(p []byte) (int, error) {
	h.look(len(p))
	return h.File.Write(p)
}

func (h *heaped) Read(p []byte) (int, error) {
	n, err := h.File.Read(p)
	h.look(n)
	return n, err
}

func (h *heaped) look(n int) {
	const step = 8 << 20
	before := h.n / step
	if h.n += uint64(n); h.n/step == before {
		return
	}
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	h.peak = max(h.peak, m.HeapAlloc)
}

// What is exported and imported may be of any size: none of it is held in memory. The test is
// not parallel: nothing else runs then.
func TestCarryingTakesConstantMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("there is nothing concurrent in it that other tests do not have")
	}
	const mib = 1 << 20
	exported, imported := carried(t, 16*mib)
	more, moreImported := carried(t, 128*mib)
	t.Logf("peak heap of an export %d MiB, and %d; of an import %d, and %d", exported/mib, more/mib, imported/mib, moreImported/mib)
	// The encoder queues some 20 MiB, more or less. A content in memory would be 112 MiB.
	require.Less(t, more, exported+56*mib, "export")
	require.Less(t, moreImported, imported+56*mib, "import")
}

// carried exports and imports a session with so many bytes of contents, which do not compress,
// and returns the largest heap of each.
func carried(t *testing.T, size int64) (exported, imported uint64) {
	t.Helper()
	project := t.TempDir()
	store := storeIn(t, project)
	sess := create(t, store, "auth")
	f, err := os.Create(filepath.Join(project, "contents"))
	require.NoError(t, err)
	_, err = io.CopyN(f, rand.NewChaCha8([32]byte{}), size)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	_, _, err = sess.Checkpoint(t.Context(), checkpoint.Manual, "")
	require.NoError(t, err)
	require.NoError(t, sess.Close(t.Context()))

	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	require.NoError(t, err)
	defer out.Close()
	to := &heaped{File: out}
	_, err = store.Export(t.Context(), carry.ExportOptions{Sessions: []session.ID{sess.ID()}}, func(h bundle.Header) (carry.Sink, error) {
		return bundle.NewWriter(to, h, nil)
	})
	require.NoError(t, err)
	require.Greater(t, to.n, uint64(size), "the contents went through it")
	_, err = out.Seek(0, io.SeekStart)
	require.NoError(t, err)
	from := &heaped{File: out}
	r, err := bundle.NewReader(from, nil)
	require.NoError(t, err)
	report, err := initStore(t).Import(t.Context(), r)
	require.NoError(t, err)
	require.Len(t, report.Sessions, 1)
	require.Greater(t, report.Bytes, size)
	return to.peak, from.peak
}
