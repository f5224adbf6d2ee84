package folder_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle/folder"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
	"github.com/lopen-dev/lopen/lifecycle/wire"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/envelope"
	"github.com/lopen-dev/lopen/writer/journal"
)

var day = time.Date(2026, 2, 14, 9, 0, 0, 0, time.UTC)

// newFolder returns the folder of a session whose log has five records, each with another
// message and component. It has no readable files.
func newFolder(t *testing.T) (writer.FS, session.ID) {
	t.Helper()
	dir, err := writer.OpenFS(t.TempDir())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, dir.Close()) })
	id, err := session.NewID("auth", day, 1)
	require.NoError(t, err)
	st, err := session.New(id, day)
	require.NoError(t, err)
	log, err := journal.Create(dir, id.String())
	require.NoError(t, err)
	var last *session.State
	for n := uint64(1); n <= 5; n++ {
		e := st.Edit()
		e.Header().Component = fmt.Sprint("part ", n)
		st, err = e.State()
		require.NoError(t, err)
		message, err := wire.EncodeMessage(&session.Message{ID: fmt.Sprint("m", n), Time: day, Role: session.RoleUser, Content: session.Text("hello")})
		require.NoError(t, err)
		rec := record.Record{At: day, Messages: n, Message: message}
		_, err = log.Append(journal.Record{Body: wire.EncodeAppended(rec), Object: message, Entry: true},
			journal.Record{Body: wire.EncodeChange(last, st, record.Record{At: day, Messages: n, Incarnation: map[bool]string{true: "0123456789abcdef"}[n == 1]}, 0).Body})
		require.NoError(t, err)
		last = st
	}
	require.NoError(t, log.Close())
	return dir, id
}

func TestTheLogAloneIsEnough(t *testing.T) {
	t.Parallel()
	dir, id := newFolder(t)
	ld, err := folder.Load(dir, id)
	require.NoError(t, err)
	require.Equal(t, "part 5", ld.State.Header().Component)
	require.EqualValues(t, 10, ld.At.Seq)
	require.NoError(t, ld.Edited())
	require.Len(t, ld.Stale, 2, "both readable files are to be made again")
}

func TestStateAt(t *testing.T) {
	t.Parallel()
	dir, id := newFolder(t)
	st, at, err := folder.StateAt(dir, id, 6)
	require.NoError(t, err)
	require.Equal(t, "part 3", st.Header().Component)
	require.EqualValues(t, 3, at.Messages)
	_, _, err = folder.StateAt(dir, id, 11)
	require.ErrorIs(t, err, folder.ErrNotFound)
}

func TestReadAppended(t *testing.T) {
	t.Parallel()
	dir, id := newFolder(t)
	ld, err := folder.Load(dir, id)
	require.NoError(t, err)
	var ids []string
	for a, err := range folder.ReadAppended(dir, ld.At, false) {
		require.NoError(t, err)
		ids = append(ids, a.Message.ID)
	}
	require.Equal(t, []string{"m1", "m2", "m3", "m4", "m5"}, ids)
	for range folder.ReadAppended(dir, ld.At, true) {
		require.Fail(t, "there is no event")
	}
	at, err := folder.FindMessage(dir, ld.At, "m2")
	require.NoError(t, err)
	require.EqualValues(t, 3, at.Seq)
	_, err = folder.FindMessage(dir, ld.At, "m9")
	require.ErrorIs(t, err, folder.ErrNotFound)
}

// A readable file that is sealed and that the log does not know is of another session.
func TestAReadableFileOfAnotherSessionIsStale(t *testing.T) {
	t.Parallel()
	dir, id := newFolder(t)
	other, err := session.NewID("auth", day, 2)
	require.NoError(t, err)
	st, err := session.New(other, day)
	require.NoError(t, err)
	require.NoError(t, writer.ReplaceFile(dir, folder.StateFile, wire.EncodeState(st, session.Mark{Epoch: 1, Seq: 1}), 0o600))
	ld, err := folder.Load(dir, id)
	require.NoError(t, err)
	require.Equal(t, "part 5", ld.State.Header().Component)
	require.Equal(t, folder.StateFile, ld.Stale[0].Name)
	require.ErrorIs(t, ld.Stale[0].Err, envelope.ErrCorrupt)
}

func TestADamagedRecordExcludesTheSession(t *testing.T) {
	t.Parallel()
	dir, id := newFolder(t)
	entries, err := dir.ReadDir(".")
	require.NoError(t, err)
	require.Len(t, entries, 2, "the log's one segment and the list of them")
	for _, e := range entries {
		if journal.IsSegment(e.Name()) {
			name := filepath.Join(dir.Name(), e.Name())
			data, err := os.ReadFile(name)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(name, bytes.Replace(data, []byte("part 3"), []byte("part 4"), 1), 0o600))
		}
	}
	_, err = folder.Load(dir, id)
	require.Equal(t, writer.ClassCorrupt, writer.ClassOf(err))
	b := &folder.Builder{Dir: dir, ID: id}
	require.NoError(t, b.Read(nil))
	got, err := b.Newest(folder.AllRecords)
	require.NoError(t, err)
	require.ErrorIs(t, got.Ended, envelope.ErrCorrupt)
	require.Equal(t, "part 2", got.State.Header().Component)
}

func TestFirstOf(t *testing.T) {
	t.Parallel()
	all := make([]string, 12)
	require.Len(t, folder.FirstOf(all[:10], "places"), 10)
	require.Equal(t, "2 more places", folder.FirstOf(all, "places")[10])
}
