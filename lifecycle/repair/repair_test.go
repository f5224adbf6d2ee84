package repair_test

import (
	"errors"
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle/folder"
	"github.com/lopen-dev/lopen/lifecycle/repair"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/crashfs"
	"github.com/lopen-dev/lopen/writer/envelope"
)

func id(t *testing.T) session.ID {
	t.Helper()
	id, err := session.ParseID("auth-20260101-1")
	require.NoError(t, err)
	return id
}

// An empty folder is a damaged session from which nothing can be recovered.
func TestEmptyFolder(t *testing.T) {
	t.Parallel()
	dir := crashfs.New(crashfs.Ext4).FS()
	r := repair.Verify(repair.Subject{ID: id(t), Dir: dir})
	require.Equal(t, repair.Corrupt, r.Condition)
	require.ErrorIs(t, r.Err, envelope.ErrCorrupt)
	for _, strategy := range []string{"", repair.LatestCheckpoint, repair.JournalAlone, repair.Partial} {
		_, err := repair.Recover(dir, "corrupted/x", strategy, r, nil)
		require.ErrorIs(t, err, envelope.ErrCorrupt, strategy)
	}
	_, err := repair.Recover(dir, "corrupted/x", "another", r, nil)
	require.ErrorIs(t, err, writer.ErrInvalid)
	left, err := dir.ReadDir(".")
	require.NoError(t, err)
	require.Empty(t, left, "nothing is changed")
}

func TestRecoverLeavesANewerVersionAlone(t *testing.T) {
	t.Parallel()
	newer := repair.Report{ID: id(t), Err: envelope.ErrFutureVersion}
	_, err := repair.Recover(crashfs.New(crashfs.Ext4).FS(), "sessions/x", "", newer, nil)
	require.ErrorIs(t, err, envelope.ErrFutureVersion)
}

// A fault in a small file loses only what the file is for. A missing small file is no fault.
func TestOtherFiles(t *testing.T) {
	t.Parallel()
	bad := errors.New("bad")
	r := repair.Verify(repair.Subject{ID: id(t), Dir: crashfs.New(crashfs.Ext4).FS(), Others: []repair.File{
		{Name: "none", Check: func(writer.FS) error { return fs.ErrNotExist }},
		{Name: "meta", Check: func(writer.FS) error { return bad }},
	}})
	require.Contains(t, r.Faults, repair.Fault{File: "meta", Kind: "damaged", Problem: "bad"})
	for _, f := range r.Faults {
		require.NotEqual(t, "none", f.File)
	}
}

func TestChainThatCannotBeOpened(t *testing.T) {
	t.Parallel()
	r := repair.Report{ID: id(t), Condition: repair.Intact}
	r.CheckChain(nil, folder.ErrNotFound)
	require.Equal(t, repair.Intact, r.Condition, "the project has no checkpoints")
	r.CheckChain(nil, errors.New("no"))
	require.Equal(t, repair.Flawed, r.Condition)
}

func TestSessions(t *testing.T) {
	t.Parallel()
	sound := repair.Report{ID: id(t), Condition: repair.Intact}
	with := func(change func(r *repair.Report)) repair.Report {
		r := sound
		change(&r)
		return r
	}
	for want, r := range map[string]repair.Report{
		"nothing is lost; the next run mends it: lopen session resume auth-20260101-1": with(func(r *repair.Report) { r.Condition = repair.Torn }),
		"update lopen": with(func(r *repair.Report) { r.Condition, r.Err = repair.Unreadable, envelope.ErrFutureVersion }),
		"the session is whole, its log has a hole: lopen session verify auth-20260101-1":           with(func(r *repair.Report) { r.Condition = repair.HistoryDamaged }),
		"the session is usable: lopen session verify auth-20260101-1 says what is wrong":           with(func(r *repair.Report) { r.Condition = repair.Flawed }),
		"look at it, then: lopen session recover auth-20260101-1 --accept-edit, or --discard-edit": with(func(r *repair.Report) { r.Condition = repair.Edited }),
		"lopen session recover auth-20260101-1 --dry-run says what is left of it":                  with(func(r *repair.Report) { r.Condition = repair.Corrupt }),
		"nobody runs it; go on with: lopen run auth":                                               with(func(r *repair.Report) { r.Status = session.StatusInterrupted }),
		"the agent ended in a turn; its next prompt resumes it: lopen session show auth-20260101-1": with(func(r *repair.Report) {
			r.Status, r.Origin = session.StatusInterrupted, session.OriginHook
		}),
		"nothing is lost; the next prompt mends it: lopen session show auth-20260101-1": with(func(r *repair.Report) { r.Condition, r.Origin = repair.Torn, session.OriginHook }),
		"nothing is lost; the next import mends it: lopen session show auth-20260101-1": with(func(r *repair.Report) { r.Condition, r.Origin = repair.Torn, session.OriginImport }),
	} {
		all := repair.Sessions([]repair.Report{sound, r})
		require.Len(t, all, 2, "what is sound is in the first line alone")
		require.Equal(t, want, all[1].Mend)
		intact := "1 of 2 are intact"
		if r.Status == session.StatusInterrupted {
			intact = "2 of 2 are intact"
		}
		require.Contains(t, all[0].Found, intact)
	}
	held := with(func(r *repair.Report) { r.Condition, r.Holder = repair.Torn, &writer.Owner{} })
	require.Len(t, repair.Sessions([]repair.Report{held}), 1, "its holder may be writing at this moment")
}

func TestStoreChecks(t *testing.T) {
	t.Parallel()
	root, err := writer.OpenFS(t.TempDir())
	require.NoError(t, err)
	defer root.Close()
	require.Empty(t, repair.Writing(root).Mend)
	require.Contains(t, repair.Sync(root).Found, "one append and fdatasync of 512 bytes takes")
	require.True(t, repair.Space(root, 1<<63).Problem)
	require.False(t, repair.Space(root, 0).Problem)
	left, err := root.ReadDir(".")
	require.NoError(t, err)
	require.Empty(t, left, "no file is left behind")
}
