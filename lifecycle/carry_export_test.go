package lifecycle_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/bundle"
	"github.com/lopen-dev/lopen/lifecycle/carry"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/repair"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/wire"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/blob"
)

// An unpacked takes what is exported and puts it in place in another project.
type unpacked struct {
	t       *testing.T
	header  bundle.Header
	project string
	hold    *blob.Hold
	batch   *blob.Batch
	names   []string
	bytes   int64
	done    bool
}

func unpack(t *testing.T) *unpacked {
	u := &unpacked{t: t, project: t.TempDir()}
	store := storeIn(t, u.project)
	dir := path(store, "blobs")
	require.NoError(t, os.MkdirAll(dir, 0o700))
	require.NoError(t, os.MkdirAll(path(store, "checkpoints"), 0o700))
	blobs, err := writer.OpenFS(dir)
	require.NoError(t, err)
	t.Cleanup(func() { _ = blobs.Close() })
	u.hold, err = blob.New(blobs).Hold(t.Context())
	require.NoError(t, err)
	u.batch = u.hold.Batch()
	return u
}

func (u *unpacked) open(h bundle.Header) (carry.Sink, error) {
	u.header = h
	return u, nil
}

func (u *unpacked) Add(name string, size int64, content io.Reader) error {
	data, err := io.ReadAll(content)
	if err != nil {
		return err
	}
	require.Len(u.t, data, int(size), name)
	u.names, u.bytes = append(u.names, name), u.bytes+size
	file := filepath.Join(u.project, ".lopen", filepath.FromSlash(name))
	require.NoError(u.t, os.MkdirAll(filepath.Dir(file), 0o700))
	return os.WriteFile(file, data, 0o600)
}

func (u *unpacked) Object(h blob.Hash, size int64, open func() (io.ReadCloser, error)) error {
	r, err := open()
	if err != nil {
		return err
	}
	defer r.Close()
	sum, n, err := u.batch.Put(r, blob.Hash{})
	if err != nil {
		return err
	}
	require.Equal(u.t, h, sum)
	require.Equal(u.t, size, n)
	u.bytes += n
	return nil
}

func (u *unpacked) Close() error {
	u.done = true
	return errors.Join(u.batch.Commit(), u.hold.Release())
}

// export exports to another project and returns its store.
func export(t *testing.T, store *lifecycle.Store, o carry.ExportOptions) (*unpacked, *lifecycle.Store, *carry.Exported) {
	t.Helper()
	u := unpack(t)
	out, err := store.Export(t.Context(), o, u.open)
	require.NoError(t, err)
	require.True(t, u.done)
	require.Equal(t, u.bytes, out.Bytes)
	require.LessOrEqual(t, out.Bytes, u.header.Bytes)
	return u, storeIn(t, u.project), out
}

// requireSame fails unless a session is the same in two stores, up to a record.
func requireSame(t *testing.T, a, b *lifecycle.Store, id session.ID, seq uint64) {
	t.Helper()
	report, err := b.Verify(id)
	require.NoError(t, err)
	require.Contains(t, []repair.Condition{repair.Intact, repair.Torn}, report.Condition, "%v %v", report.Err, report.Faults)
	require.NoError(t, report.Err)
	require.Equal(t, seq, report.Seq)
	was, err := a.ReadAt(id, seq)
	require.NoError(t, err)
	now, at, err := b.Read(id)
	require.NoError(t, err)
	require.Equal(t, seq, at)
	require.Equal(t, string(wire.EncodeState(was, session.Mark{})), string(wire.EncodeState(now, session.Mark{})))
	require.Equal(t, string(wire.EncodeMetrics(was, session.Mark{})), string(wire.EncodeMetrics(now, session.Mark{})))
}

func messagesOf(t *testing.T, store *lifecycle.Store, id session.ID) (all []string) {
	t.Helper()
	for m, err := range store.Messages(id) {
		require.NoError(t, err)
		all = append(all, m.ID)
	}
	return all
}

func TestExport(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	sess, cps := agentWorked(t, store, "auth")
	for _, text := range []string{"one", "two"} {
		require.NoError(t, sess.Append(&session.Message{Role: session.RoleUser, Content: session.Text(text)}))
	}
	large := strings.Repeat("0123456789abcdef", 8<<10)
	put(t, store.Project(), "large", large)
	_, _, err := sess.Checkpoint(t.Context(), checkpoint.Manual, "")
	require.NoError(t, err)
	require.NoError(t, sess.Sync(t.Context()))
	require.NoError(t, store.SetMeta(t.Context(), sess.ID(), func(m *lifecycle.Meta) error { m.Name = "a name"; return nil }))

	u, other, out := export(t, store, carry.ExportOptions{Sessions: []session.ID{sess.ID()}, Lopen: "test"})
	require.Equal(t, "a name", out.Header.Sessions[0].Name)
	require.Equal(t, 2, out.Header.Sessions[0].Done)
	require.Equal(t, len(cps)+1, out.Checkpoints)
	require.Empty(t, out.Warnings)
	requireSame(t, store, other, sess.ID(), out.Header.Sessions[0].Seq)
	require.Len(t, messagesOf(t, other, sess.ID()), 2)
	require.Equal(t, messagesOf(t, store, sess.ID()), messagesOf(t, other, sess.ID()))
	require.Equal(t, ".lopen/modules/auth/plan.md", u.header.Documents[0].Path)
	lines, err := os.ReadFile(filepath.Join(u.project, ".lopen", "project.jsonl"))
	require.NoError(t, err)
	require.Contains(t, string(lines), `{"path":"large","size":131072,"mode":420,"sha256":"`)

	there, err := other.Checkpoints()
	require.NoError(t, err)
	defer there.Close()
	all, faults, err := there.List()
	require.NoError(t, err)
	require.Empty(t, faults)
	require.Len(t, all, len(cps)+1)
	for i, id := range cps {
		require.Equal(t, id, all[i].ID)
		require.False(t, all[i].Cut)
	}
	f, known, err := there.Tree(all[len(cps)].Root).Find("large")
	require.NoError(t, err)
	require.True(t, known)
	content, err := there.Content(f)
	require.NoError(t, err)
	got, err := io.ReadAll(content)
	require.NoError(t, err)
	require.Equal(t, large, string(got))

	// It is resumed, and goes back, as where it comes from.
	again, err := other.Open(sess.ID())
	require.NoError(t, err)
	require.NoError(t, again.Change(session.TriggerTaskCompleted, turns(7)))
	require.NoError(t, again.Close(t.Context()))
}
