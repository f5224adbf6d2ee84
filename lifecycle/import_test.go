package lifecycle_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/carry"
	"github.com/lopen-dev/lopen/lifecycle/rewind"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

func TestImportIntoAnEmptyStore(t *testing.T) {
	t.Parallel()
	from, id := workedElsewhere(t)
	store := initStore(t)
	r, err := store.Import(t.Context(), from.again(nil))
	require.NoError(t, err)
	require.Len(t, r.Sessions, 1)
	require.Equal(t, id.String(), r.Sessions[0].ID)
	require.Equal(t, "intact", r.Sessions[0].Condition)
	require.EqualValues(t, 1, r.Sessions[0].Messages)
	require.Equal(t, 4, r.Checkpoints)
	require.False(t, r.Apart)
	require.Zero(t, r.ObjectsKnown)
	require.Equal(t, "written written", r.Documents[0].Became+" "+r.Documents[1].Became)
	requireIntact(t, store, id)
	require.Len(t, cps(t, store), 4)
	require.Equal(t, "# Spec\n", got(t, store.Project(), "docs/spec.md"))
	latest, err := store.Latest("")
	require.NoError(t, err)
	require.Equal(t, id, latest)
	messages, _, err := conversationIn(store, id)
	require.NoError(t, err)
	require.Equal(t, []string{"m1"}, messages)

	// Everything works as it did there: the files come back, and so do the tasks.
	sess, err := store.Open(id)
	require.NoError(t, err)
	require.Equal(t, 2, done(sess.State()))
	all := cps(t, store)
	_, err = sess.Rewind(t.Context(), all[1].ID, rewind.Options{Files: true, State: true, Force: true})
	require.NoError(t, err)
	require.Equal(t, "1 old (none)", content(t, store))
	require.Equal(t, 1, done(sess.State()))
	require.NoError(t, sess.Close(t.Context()))
	requireIntact(t, store, id)

	// What went on here is more than the bundle has.
	before := visible(t, store)
	r, err = store.Import(t.Context(), from.again(nil))
	require.NoError(t, err)
	require.True(t, r.Sessions[0].Known)
	require.Greater(t, r.Sessions[0].Here, r.Sessions[0].Seq)
	require.Equal(t, "different same", r.Documents[0].Became+" "+r.Documents[1].Became, "the rewind has changed the plan")
	require.Equal(t, before, visible(t, store))

	// Its ID is not given again.
	next := made(t, store, "auth")
	require.NotEqual(t, id, next)
}

// A store with checkpoints of its own keeps its chain; what came can be looked at, and goes with
// its session.
func TestImportBesideAChain(t *testing.T) {
	t.Parallel()
	from, id := workedElsewhere(t)
	store := initStore(t)
	own, _ := agentWorked(t, store, "other")
	require.NoError(t, own.Close(t.Context()))
	mine := cps(t, store)
	r, err := store.Import(t.Context(), from.again(nil))
	require.NoError(t, err)
	require.True(t, r.Apart)
	require.Equal(t, r.Objects, r.ObjectsKnown, "the same files were here")
	require.Equal(t, mine, cps(t, store))
	requireIntact(t, store, id, own.ID())
	c, err := store.Checkpoints(nil)
	require.NoError(t, err)
	defer c.Close()
	line, err := store.CheckpointLine(c, id)
	require.NoError(t, err)
	require.Len(t, line, 4)
	for _, e := range mine {
		require.False(t, line[e.ID])
	}
	usage, err := store.CheckpointUsage()
	require.NoError(t, err)
	require.Equal(t, 8, usage.Checkpoints)
	require.Zero(t, usage.Unneeded)

	// The session goes on, with checkpoints in this project's chain.
	sess, err := store.Open(id)
	require.NoError(t, err)
	_, _, err = sess.Checkpoint(t.Context(), "manual", "")
	require.NoError(t, err)
	require.NoError(t, sess.Close(t.Context()))
	require.Len(t, cps(t, store), 5)
	line, err = store.CheckpointLine(c, id)
	require.NoError(t, err)
	require.Len(t, line, 5)
	requireIntact(t, store, id, own.ID())

	// Deleting another session leaves the chain; deleting this one takes it along.
	_, err = store.Delete(t.Context(), made(t, store, "third"))
	require.NoError(t, err)
	chains, err := c.Others()
	require.NoError(t, err)
	require.Len(t, chains, 1)
	_, err = store.Delete(t.Context(), id)
	require.NoError(t, err)
	chains, err = c.Others()
	require.NoError(t, err)
	require.Empty(t, chains)
	requireIntact(t, store, own.ID())
}

// The files of the project are compared with what they were.
func TestImportComparesFiles(t *testing.T) {
	t.Parallel()
	from, _ := workedElsewhere(t)
	store := initStore(t)
	dir := store.Project().Name()
	require.NoError(t, os.WriteFile(dir+"/same", []byte("one"), 0o644))
	require.NoError(t, os.WriteFile(dir+"/other", []byte("two"), 0o644))
	require.NoError(t, os.WriteFile(dir+"/mode", []byte("one"), 0o755))
	require.NoError(t, os.Symlink("same", dir+"/link"))
	require.NoError(t, os.Symlink("other", dir+"/link2"))
	sum := fmt.Sprintf("%x", sha256.Sum256([]byte("one")))
	var lines strings.Builder
	for _, name := range []string{"same", "other", "mode", "missing", "link2"} {
		fmt.Fprintf(&lines, `{"path":%q,"size":3,"mode":420,"sha256":%q}`+"\n", name, sum)
	}
	lines.WriteString(`{"path":"link","size":4,"mode":0,"target":"same"}` + "\n")
	r, err := store.Import(t.Context(), from.again(func(l *loaded) { l.add("project.jsonl", []byte(lines.String())) }))
	require.NoError(t, err)
	require.Equal(t, []int{6, 2, 3, 1}, []int{r.Files.Listed, r.Files.Equal, r.Files.Different, r.Files.Missing})
	require.Equal(t, []string{"other", "mode", "missing", "link2"}, r.Files.Names)
}

// A session whose ID is taken gets another one, and is the same in all else: importing it once
// more finds it. What names the other project's folder names this one.
func TestImportUnderAnotherID(t *testing.T) {
	t.Parallel()
	there := initStore(t)
	was, _ := agentWorked(t, there, "auth")
	require.NoError(t, was.Change(session.TriggerTaskCompleted, func(e *session.Edit) error {
		e.Header().Settings.Command = []string{"sh", there.Project().Name() + "/agent.sh", "/usr/bin/x"}
		e.Header().Settings.Check = "cd " + there.Project().Name() + " && make"
		return nil
	}))
	require.NoError(t, was.Close(t.Context()))
	from := gather(t, there, was.ID())
	from.header.Project.Path = there.Project().Name()

	store := initStore(t)
	taken := made(t, store, "auth")
	require.Equal(t, was.ID(), taken)
	r, err := store.Import(t.Context(), from.again(nil))
	require.NoError(t, err)
	a := r.Sessions[0]
	require.Equal(t, taken.String(), a.Was)
	require.NotEqual(t, a.Was, a.ID)
	require.True(t, a.Paths)
	id, err := session.ParseID(a.ID)
	require.NoError(t, err)
	requireIntact(t, store, taken, id)
	st, seq, err := store.Read(id)
	require.NoError(t, err)
	require.Equal(t, a.Seq, seq)
	require.Equal(t, []string{"sh", store.Project().Name() + "/agent.sh", "/usr/bin/x"}, st.Header().Settings.Command)
	require.Equal(t, "cd "+store.Project().Name()+" && make", st.Header().Settings.Check)

	// It has its checkpoints, with the tasks of then.
	sess, err := store.Open(id)
	require.NoError(t, err)
	_, err = sess.Rewind(t.Context(), cps(t, store)[1].ID, rewind.Options{Files: true, State: true, Force: true})
	require.NoError(t, err)
	require.Equal(t, 1, done(sess.State()))
	require.Equal(t, "1 old (none)", content(t, store))
	require.NoError(t, sess.Close(t.Context()))
	_, err = store.Delete(t.Context(), taken)
	require.NoError(t, err)
	require.NotEmpty(t, cps(t, store), "they are of the other one")
	requireIntact(t, store, id)

	r, err = store.Import(t.Context(), from.again(nil))
	require.NoError(t, err)
	require.True(t, r.Sessions[0].Known)
	require.Equal(t, a.ID, r.Sessions[0].ID)

	// An ID in the trash is taken as well; a fork comes with what it inherited.
	require.NoError(t, func() error {
		sess, err := store.Open(id)
		if err == nil {
			err = errors.Join(sess.Complete(t.Context()), sess.Close(t.Context()))
		}
		return err
	}())
	fork, err := there.Fork(t.Context(), was.ID(), lifecycle.ForkOptions{})
	require.NoError(t, err)
	require.NoError(t, fork.Close(t.Context()))
	_, err = store.Prune(t.Context(), lifecycle.Retention{Age: 1}, false)
	require.NoError(t, err)
	both := gather(t, there, was.ID(), fork.ID())
	r, err = store.Import(t.Context(), both)
	require.NoError(t, err)
	for _, a := range r.Sessions {
		require.False(t, a.Known)
		id, err := session.ParseID(a.ID)
		require.NoError(t, err)
		requireIntact(t, store, id)
	}
}

func TestSettingsComeWithABackupOnly(t *testing.T) {
	t.Parallel()
	from, _ := workedElsewhere(t)
	from.document(lifecycle.Dir+"/config.json", "settings", "", `{"schemaVersion":1,"unit":"there"}`)
	became := func(r *carry.Report) string {
		i := slices.IndexFunc(r.Documents, func(d carry.PlacedDocument) bool { return d.Kind == "settings" })
		return r.Documents[i].Became
	}

	store := initStore(t)
	r, err := store.Import(t.Context(), from.again(nil))
	require.NoError(t, err)
	require.Equal(t, carry.DocumentLeft, became(r))
	data, err := store.Config()
	require.NoError(t, err)
	require.Nil(t, data)

	r, err = store.Import(t.Context(), carry.Whole{Source: from.again(nil)})
	require.NoError(t, err)
	require.Equal(t, carry.DocumentWritten, became(r))
	data, err = store.Config()
	require.NoError(t, err)
	require.Contains(t, string(data), "there")

	require.NoError(t, store.SetConfig([]byte(`{"schemaVersion":1,"unit":"here"}`)))
	r, err = store.Import(t.Context(), carry.Whole{Source: from.again(nil)})
	require.NoError(t, err)
	require.Equal(t, carry.DocumentDifferent, became(r))
	data, err = store.Config()
	require.NoError(t, err)
	require.Contains(t, string(data), "here")
}
