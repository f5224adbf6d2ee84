package lifecycle_test

import (
	"bytes"
	gopath "path"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/bundle"
	"github.com/lopen-dev/lopen/lifecycle/carry"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/folder"
	"github.com/lopen-dev/lopen/lifecycle/output"
	"github.com/lopen-dev/lopen/lifecycle/redact"
	"github.com/lopen-dev/lopen/lifecycle/rewind"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer/blob"
	"github.com/lopen-dev/lopen/writer/crashfs"
	"github.com/lopen-dev/lopen/writer/journal"
)

// bundled exports sessions, and returns what imports them into a store.
func bundled(t *testing.T, store *lifecycle.Store, o carry.ExportOptions, ids ...session.ID) func(into *lifecycle.Store) *carry.Report {
	t.Helper()
	var file bytes.Buffer
	o.Sessions = ids
	_, err := store.Export(t.Context(), o, func(h bundle.Header) (carry.Sink, error) { return bundle.NewWriter(&file, h, nil) })
	require.NoError(t, err)
	return func(into *lifecycle.Store) *carry.Report {
		r, err := bundle.NewReader(bytes.NewReader(file.Bytes()), nil)
		require.NoError(t, err)
		report, err := into.Import(t.Context(), r)
		require.NoError(t, err)
		for _, a := range report.Sessions {
			id, err := session.ParseID(a.ID)
			require.NoError(t, err)
			requireIntact(t, into, id)
		}
		return report
	}
}

// A session that came with less is no obstacle to the whole one.
func TestImportOfTheWholeAfterLess(t *testing.T) {
	t.Parallel()
	const secret = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
	for name, c := range map[string]struct {
		less carry.ExportOptions
		work func(*testing.T, *lifecycle.Session)
	}{
		"messages": {carry.ExportOptions{NoMessages: true}, func(t *testing.T, sess *lifecycle.Session) {
			require.NoError(t, sess.Append(&session.Message{Role: session.RoleUser, Content: session.Text("hello")}))
		}},
		"output": {carry.ExportOptions{NoMessages: true}, func(t *testing.T, sess *lifecycle.Session) {
			w, err := sess.Output(1, output.Attempt{Task: "one"})
			require.NoError(t, err)
			require.NoError(t, w.Close("done", "", true))
		}},
		"texts": {carry.ExportOptions{Redact: &redact.Redactor{}}, func(t *testing.T, sess *lifecycle.Session) {
			require.NoError(t, sess.Change(session.TriggerTaskCompleted, func(e *session.Edit) error {
				e.Header().Git.Branch = secret
				return nil
			}))
		}},
		"checkpoints": {carry.ExportOptions{Redact: &redact.Redactor{}}, func(t *testing.T, sess *lifecycle.Session) {
			_, _, err := sess.Checkpoint(t.Context(), "manual", "")
			require.NoError(t, err)
		}},
		"inherited messages": {carry.ExportOptions{NoMessages: true}, func(t *testing.T, sess *lifecycle.Session) {}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			there := storeWith(t, t.TempDir(), lifecycle.Policy{Unredacted: true})
			sess := create(t, there, "auth")
			if strings.HasPrefix(name, "inherited") {
				require.NoError(t, sess.Append(&session.Message{Role: session.RoleUser, Content: session.Text("hello")}))
				require.NoError(t, sess.Close(t.Context()))
				var err error
				sess, err = there.Fork(t.Context(), sess.ID(), lifecycle.ForkOptions{})
				require.NoError(t, err)
			}
			c.work(t, sess)
			require.NoError(t, sess.Close(t.Context()))
			less, whole := bundled(t, there, c.less, sess.ID()), bundled(t, there, carry.ExportOptions{}, sess.ID())
			store := initStore(t)
			first := less(store).Sessions[0]
			require.False(t, first.Known)
			second := whole(store).Sessions[0]
			require.False(t, second.Known, "it has more than what is here")
			require.NotEqual(t, first.ID, second.ID)
			for id, again := range map[string]func(*lifecycle.Store) *carry.Report{first.ID: less, second.ID: whole} {
				a := again(store).Sessions[0]
				require.True(t, a.Known)
				require.True(t, a.ID == id || name == "output", "the whole one has all of the other")
			}
		})
	}
}

// Two copies of a session that went on in two places are two sessions.
func TestImportOfACopyThatWentOn(t *testing.T) {
	t.Parallel()
	here, there := initStore(t), initStore(t)
	id := made(t, here, "auth")
	bundled(t, here, carry.ExportOptions{}, id)(there)
	for i, store := range []*lifecycle.Store{there, here} {
		sess, err := store.Open(id)
		require.NoError(t, err)
		for n := range 3 + i {
			require.NoError(t, sess.Change(session.TriggerTaskCompleted, turns(10*i+n+1)))
			require.NoError(t, sess.Sync(t.Context()))
		}
		require.NoError(t, sess.Close(t.Context()))
	}
	a := bundled(t, there, carry.ExportOptions{}, id)(here).Sessions[0]
	require.False(t, a.Known, "what it did there is not here")
	require.NotEqual(t, id.String(), a.ID)
}

// What was dropped of the log here does not make it another session.
func TestImportOfWhatWasThinnedHere(t *testing.T) {
	t.Parallel()
	s := newSim(t, crashfs.Ext4)
	s.talks = true
	s.initWith(bounded)
	require.NoError(t, s.create())
	for n := range 3 {
		s.attempt(n)
		require.NoError(t, s.save(600))
		require.NoError(t, s.sync())
	}
	whole, less := bundled(t, s.store, carry.ExportOptions{}, s.id), bundled(t, s.store, carry.ExportOptions{NoMessages: true}, s.id)
	_, began := s.shrinks(1)
	require.Greater(t, began, uint64(6))
	require.True(t, whole(s.store).Sessions[0].Known)
	require.False(t, less(s.store).Sessions[0].Known)
}

// A fork names its origin by the ID that this one has now.
func TestImportOfAForkWithItsOrigin(t *testing.T) {
	t.Parallel()
	there := initStore(t)
	was := create(t, there, "auth")
	require.NoError(t, was.Append(&session.Message{Role: session.RoleUser, Content: session.Text("hello")}))
	require.NoError(t, was.Close(t.Context()))
	fork, err := there.Fork(t.Context(), was.ID(), lifecycle.ForkOptions{})
	require.NoError(t, err)
	require.NoError(t, fork.Close(t.Context()))
	both := bundled(t, there, carry.ExportOptions{}, was.ID(), fork.ID())
	for taken := range 3 {
		store := initStore(t)
		for range taken {
			made(t, store, "auth")
		}
		for range 2 { // and again
			all := both(store).Sessions
			require.Equal(t, taken > 0, all[0].ID != all[0].Was)
			require.Equal(t, taken > 1, all[1].ID != all[1].Was)
			id, err := session.ParseID(all[1].ID)
			require.NoError(t, err)
			st, _, err := store.Read(id)
			require.NoError(t, err)
			require.Equal(t, all[0].ID, st.Header().Lineage.From.String())
			require.Len(t, messagesOf(t, store, id), 1)
		}
		infos, err := store.List()
		require.NoError(t, err)
		require.Len(t, infos, taken+2)
	}
}

// cutRewind returns a store whose session was cut off in a rewind, how the session was before
// it, and the checkpoint before it.
func cutRewind(t *testing.T) (before *lifecycle.Store, was *session.State, undo checkpoint.ID) {
	t.Helper()
	disk := crashfs.New(crashfs.Ext4)
	store, err := lifecycle.InitOn(disk.FS(), simOptions)
	require.NoError(t, err)
	sess, ids := agentWorked(t, store, "sim")
	was = sess.State()
	var cut *crashfs.Disk
	disk.SetHook(serial(func(op crashfs.Op) crashfs.Fault {
		if cut == nil && op.Call == "rename" && !strings.Contains(op.Name, lifecycle.Dir) {
			cut = disk.Snapshot()
		}
		return crashfs.Fault{}
	}))
	done, err := sess.Rewind(t.Context(), ids[0], both)
	require.NoError(t, err)
	disk.SetHook(nil)
	require.NotEqual(t, was.Progress(), sess.State().Progress())
	require.NoError(t, sess.Close(t.Context()))
	require.NotNil(t, cut)
	before, err = lifecycle.OpenOn(cut.Crash(crashfs.Variant{}).FS(), simOptions)
	require.NoError(t, err)
	return before, was, done.Before.ID
}

// A rewind that was cut off does not come with its session: the next holder would end it on
// files that it was not begun on.
func TestImportLeavesOutAnUnfinishedRewind(t *testing.T) {
	t.Parallel()
	before, was, undo := cutRewind(t)
	id := was.ID()
	blobs, err := before.Project().Sub(lifecycle.Dir + "/blobs")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, blobs.Close()) })
	for name, c := range map[string]struct {
		arrive func(t *testing.T, into *lifecycle.Store) *carry.Report
		told   string
	}{
		"whole": {func(t *testing.T, into *lifecycle.Store) *carry.Report {
			return bundled(t, before, carry.ExportOptions{}, id)(into)
		}, undo.String()},
		"less": {func(t *testing.T, into *lifecycle.Store) *carry.Report {
			return bundled(t, before, carry.ExportOptions{NoMessages: true}, id)(into)
		}, ""}, // it did not even leave
		"one": {func(t *testing.T, into *lifecycle.Store) *carry.Report {
			report, err := into.Import(t.Context(), &carry.One{Source: gather(t, before, id), Session: id.String(), Contents: blob.New(blobs)})
			require.NoError(t, err)
			return report
		}, undo.String()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			into := initStore(t)
			put(t, into.Project(), "a", "mine")
			require.Equal(t, c.told, c.arrive(t, into).Sessions[0].Rewind)
			again, err := into.Open(id)
			require.NoError(t, err)
			require.Equal(t, was.Progress(), again.State().Progress())
			require.Equal(t, "mine", got(t, into.Project(), "a"))
			_, err = again.Rewind(t.Context(), undo, rewind.Options{Files: true, Force: true})
			require.NoError(t, err)
			require.Equal(t, "2", got(t, into.Project(), "a"), "the checkpoint before the rewind came as well")
			require.NoError(t, again.Close(t.Context()))
			require.True(t, c.arrive(t, into).Sessions[0].Known)
		})
	}
}

// A forged begin of a rewind is found however it is written, or refused.
func TestImportRefusesAForgedRewind(t *testing.T) {
	t.Parallel()
	before, was, undo := cutRewind(t)
	id := was.ID()
	forged := func(t *testing.T, from, to string) *loaded {
		t.Helper()
		l := gather(t, before, id)
		dir, log := folderOf(t, before.Project(), id), crashfs.New(crashfs.Ext4).FS()
		defer dir.Close()
		changed := 0
		require.NoError(t, journal.Rewrite(dir, log, journal.Rewriting{Session: id.String(), Upto: l.header.Sessions[0].Seq, Body: func(_ *journal.Ref, _, body []byte) ([]byte, error) {
			changed += bytes.Count(body, []byte(from))
			return bytes.ReplaceAll(body, []byte(from), []byte(to)), nil
		}}))
		require.NotZero(t, changed)
		l.entries = slices.DeleteFunc(l.entries, func(e loadedEntry) bool {
			name := gopath.Base(e.Name)
			return strings.HasPrefix(e.Name, "sessions/") && (journal.IsSegment(name) || name == journal.ListFile)
		})
		l.folder(t, log, "sessions/"+id.String(), ".")
		return l
	}
	_, err := initStore(t).Import(t.Context(), forged(t, `"before":"`+undo.String()+`"`, `"before":""`))
	require.ErrorContains(t, err, "is no checkpoint")
	into := initStore(t)
	report, err := into.Import(t.Context(), forged(t, `"rewind-begin"`, `"rewind\u002dbegin"`))
	require.NoError(t, err)
	require.Equal(t, undo.String(), report.Sessions[0].Rewind)
	dir := folderOf(t, into.Project(), id)
	defer dir.Close()
	ld, err := folder.Load(dir, id)
	require.NoError(t, err)
	require.Nil(t, ld.At.Rewinding)
}
