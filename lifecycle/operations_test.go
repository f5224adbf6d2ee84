package lifecycle_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/repair"
	"github.com/lopen-dev/lopen/lifecycle/rewind"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
)

// operations are what the log says that the records of a session did, but for the first
// one, a text each. A record that no save and no event caused must say something.
func operations(t *testing.T, store *lifecycle.Store, id session.ID) (all []string) {
	t.Helper()
	require.NoError(t, store.Log(id, 1, func(r record.Record) error {
		if r.Event == "" && r.Saves() == 0 {
			require.NotEmpty(t, r.Ops, "record %d", r.Seq)
		}
		for _, op := range r.Ops {
			text := fmt.Sprintf("%d %s %s %s %d %s", r.Seq, op.Name, op.Task, op.To, op.Count, strings.Join(op.Paths, ","))
			all = append(all, strings.Join(strings.Fields(text), " "))
		}
		return nil
	}))
	return all
}

// TestConversationAndFilesAreOperations keeps no record that says nothing: messages,
// events, checkpoints, attempts and changed files are operations, in the records that
// carry them.
func TestConversationAndFilesAreOperations(t *testing.T) {
	t.Parallel()
	project := t.TempDir()
	store := storeIn(t, project)
	put := func(name, text string) { write(t, filepath.Join(project, name), text) }
	put("a.txt", "one")
	sess := create(t, store, "auth")
	says(t, sess, "m1") // one: of several the first may be committed alone
	require.NoError(t, sess.AppendEvent([]byte(`{"type":"turn"}`)))
	require.NoError(t, sess.Sync(t.Context()))
	before, _, err := sess.Checkpoint(t.Context(), checkpoint.BeforeTask, "x/y")
	require.NoError(t, err)

	// A task changes many files; the checkpoint after it names the first ones, and the
	// attempt does not name them again.
	put("a.txt", "two")
	for i := range 25 {
		put(fmt.Sprintf("new-%02d", i), "new")
	}
	after, changes, err := sess.Checkpoint(t.Context(), checkpoint.AfterTask, "x/y")
	require.NoError(t, err)
	require.Len(t, changes, 26)
	attempt := record.Attempt{Task: "x/y", Attempt: 1, Then: "done", Files: []record.FileChange{{Path: "a.txt", Change: "modified"}}}
	require.NoError(t, sess.Record(attempt))
	require.NoError(t, sess.Sync(t.Context()))

	// Without checkpoints the attempt is what knows of the files.
	put("a.txt", "three")
	_, err = sess.Look(t.Context())
	require.NoError(t, err)
	attempt.Attempt, attempt.Then, attempt.MoreFiles = 2, "failed", 7
	require.NoError(t, sess.Record(attempt))
	require.NoError(t, sess.Sync(t.Context()))

	// A State that says the same is no record.
	require.NoError(t, sess.Update(func(st *session.State) (*session.State, error) { return st.Edit().State() }))
	require.NoError(t, sess.Sync(t.Context()))

	_, err = sess.Rewind(t.Context(), before.ID, rewind.Options{Files: true, Force: true})
	require.NoError(t, err)
	var created []string
	for i := range 20 {
		created = append(created, fmt.Sprintf("new-%02d", i))
	}
	names := strings.Join(created, ",")
	want := []string{
		"2 messages-appended 1",
		"3 events-appended 1",
		"4 checkpoint-made x/y " + before.ID.String() + " 0",
		"5 checkpoint-made x/y " + after.ID.String() + " 0",
		"5 files-changed x/y modified 1 a.txt",
		"5 files-changed x/y created 25 " + names,
		"6 attempt-recorded x/y done 0",
		"7 attempt-recorded x/y failed 0",
		"7 files-changed x/y modified 1 a.txt",
		"7 files-changed x/y 7",
		"9 files-changed modified 1 a.txt",
		"9 files-changed deleted 25 " + names,
	}
	require.ElementsMatch(t, want, operations(t, store, sess.ID()))

	// A replay of the journal alone finds the same State.
	require.NoError(t, sess.Close(t.Context()))
	st := sess.State()
	r, err := store.Recover(t.Context(), sess.ID().String(), repair.JournalAlone, true)
	require.NoError(t, err)
	require.EqualValues(t, 10, r.Seq, "the last one is that of the close")
	require.Equal(t, st.Header(), r.State().Header())
	require.Len(t, messageIDs(t, store, sess.ID()), 1)
}
