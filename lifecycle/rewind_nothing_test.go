package lifecycle_test

import (
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/rewind"
	"github.com/lopen-dev/lopen/writer/crashfs"
)

// A folder in a file's place stays if no checkpoint has all that is in it. The plan says so, what the task
// made in it is removed, and undo brings that back, also after another rewind that has nothing to do.
func TestAFolderWithIgnoredFilesStays(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	sess := create(t, store, "auth")
	dir := store.Project()
	file := func(name string) string { return dir.Name() + "/" + name }
	put(t, dir, ".gitignore", "*.log\n")
	put(t, dir, "x.sh", "1")
	first, _, err := sess.Checkpoint(t.Context(), checkpoint.BeforeTask, "t")
	require.NoError(t, err)
	require.NoError(t, os.Remove(file("x.sh")))
	require.NoError(t, os.Mkdir(file("x.sh"), 0o755))
	put(t, dir, "x.sh/in", "2")
	put(t, dir, "x.sh/a.log", "2")
	_, _, err = sess.Checkpoint(t.Context(), checkpoint.AfterTask, "t")
	require.NoError(t, err)
	is := func(in bool) {
		t.Helper()
		require.FileExists(t, file("x.sh/a.log"))
		if in {
			require.FileExists(t, file("x.sh/in"))
		} else {
			require.NoFileExists(t, file("x.sh/in"))
		}
	}
	files := rewind.Options{Files: true}
	plan, err := store.PlanRewind(t.Context(), sess.ID(), first.ID, files)
	require.NoError(t, err)
	kept := []checkpoint.Retained{{Path: "x.sh", Why: checkpoint.Blocked}, {Path: "x.sh/a.log", Why: checkpoint.Ignored}}
	require.Equal(t, kept, plan.Retained)
	require.Equal(t, []string{"delete x.sh/in"}, changed(plan))
	back, err := sess.Rewind(t.Context(), first.ID, files)
	require.NoError(t, err)
	require.Equal(t, changed(plan), changed(back))
	require.Equal(t, kept, back.Retained)
	is(false)

	for _, force := range []bool{false, true} {
		again, err := sess.Rewind(t.Context(), first.ID, rewind.Options{Files: true, Force: force})
		require.NoError(t, err)
		require.True(t, again.Nothing())
		require.Nil(t, again.Before)
		require.Equal(t, kept, again.Retained)
	}
	undone, err := sess.Undo(t.Context(), files)
	require.NoError(t, err)
	require.Empty(t, undone.Retained)
	is(true)
	require.NoError(t, sess.Close(t.Context()))
}

// changed are the changes of a rewind, each with its path.
func changed(r rewind.Result) (list []string) {
	for _, c := range r.Changes {
		list = append(list, string(c.Kind)+" "+c.Path)
	}
	return list
}

// A rewind all of whose paths change after the plan was made, or may not be written, changes nothing: undo
// goes back to where it went before, also if the rewind was cut off and the next holder finishes it.
func TestARewindThatChangesNothingIsNotUndone(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"changed meanwhile", "denied", "cut off"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			disk := crashfs.New(crashfs.Ext4)
			store, err := lifecycle.InitOn(disk.FS(), simOptions)
			require.NoError(t, err)
			sess, ids := agentWorked(t, store, "sim")
			files := rewind.Options{Files: true}
			_, err = sess.Rewind(t.Context(), ids[2], files) // to before the second task
			require.NoError(t, err)
			require.Equal(t, "1 old (none)", content(t, store))
			var cut *crashfs.Disk
			edited := false
			edit := func() {
				edited = true
				put(t, store.Project(), "a", "mine")
			}
			disk.SetHook(func(op crashfs.Op) crashfs.Fault {
				if edited || op.N == 0 || op.Call != "create" || !strings.Contains(op.Name, ".lopen-rewind-") {
					return crashfs.Fault{}
				}
				switch how {
				case "denied":
					return crashfs.Fault{Err: fs.ErrPermission}
				case "cut off":
					cut, edited = disk.Snapshot(), true
				default:
					edit()
				}
				return crashfs.Fault{}
			})
			done, err := sess.Rewind(t.Context(), ids[0], rewind.Options{Files: true, Force: true, Paths: []string{"a"}})
			disk.SetHook(nil)
			require.NoError(t, err)
			if cut != nil {
				require.NotNil(t, done.Before)
				require.NoError(t, store.Close(t.Context()))
				store, err = lifecycle.OpenOn(cut.FS(), simOptions)
				require.NoError(t, err)
				edit()
				sess, err = store.Open(sess.ID())
				require.NoError(t, err)
			} else {
				require.Nil(t, done.Before)
				require.True(t, done.Nothing())
				require.Equal(t, []string{"a"}, leftPaths(done))
			}
			if edited {
				require.Equal(t, "mine old (none)", content(t, store))
				put(t, store.Project(), "a", "1")
			}
			_, err = sess.Undo(t.Context(), files)
			require.NoError(t, err)
			require.Equal(t, "2 (none) 2", content(t, store), "what the first rewind did is taken back")
			require.NoError(t, store.Close(t.Context()))
		})
	}
}
