package sidecar

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/folder"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
)

// A transaction from its begin to main: each completed task is a commit with the tree of its
// checkpoint, and main gets one commit that names the session.
func TestTransaction(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, s := w.session("auth"), w.store()
	w.edit("a", "begin", "gone", "x", "dir/b", "b")
	tx := a.begin(s)
	require.Equal(t, "auth-20260101-1-t1", tx.ID)
	branch := "lopen/session-" + tx.ID
	a.task("one", "a", "one", "gone", "-")
	require.Equal(t, 1, a.recorded(s, tx))
	require.Zero(t, a.recorded(s, tx), "nothing twice")
	a.task("two", "dir", "-")
	a.task("three", "dir", "now a file")
	w.git("gc", "--quiet", "--prune=now") // of a person: branches are packed
	require.Equal(t, 2, a.recorded(s, tx))
	require.Equal(t, map[string]string{"a": "one", "dir": "now a file"}, w.files(branch))
	require.Equal(t, map[string]string{"a": "one", "dir/b": "b"}, w.files(branch+"~2"))
	require.Equal(t, map[string]string{"a": "one"}, w.files(branch+"~1"))

	st := s.Status(t.Context(), tx, nil)
	require.Equal(t, InProgress, st.State)
	require.Empty(t, st.Problem)
	gone := w.store()
	gone.opts.Alive = func(string) bool { return false }
	require.Contains(t, gone.Status(t.Context(), tx, nil).Problem, "its session auth-20260101-1 is not here any more")
	all, err := s.Log(t.Context(), tx)
	require.NoError(t, err)
	require.Len(t, all, 3)
	require.Equal(t, "task three", all[0].Subject)
	require.Equal(t, a.last.ID, all[0].Checkpoint)

	a.commit(s, tx)
	require.Equal(t, w.files(branch), w.files("main"))
	require.Equal(t, "2", w.git("rev-list", "--count", "main"))
	message := w.git("log", "-1", "--format=%B", "main")
	require.Contains(t, message, "Lopen-Session: auth-20260101-1")
	require.Contains(t, message, "- task two\n- task three")
	w.git("fsck", "--strict", "--no-dangling")

	again, err := w.store().Find(tx.ID)
	require.NoError(t, err)
	require.Equal(t, Committed, again.State)
	st = w.store().Status(t.Context(), again, nil)
	require.Equal(t, Committed, st.State)
	require.Equal(t, w.git("rev-parse", "main"), st.Commit)
	_, err = s.Find("auth-20260101-1-t2")
	require.ErrorIs(t, err, folder.ErrNotFound)
	_, err = s.Find("../../etc")
	require.ErrorIs(t, err, folder.ErrNotFound)
}

// What is committed is what git and the checkpoints say, whatever the manifest says.
func TestStatusIsOfGit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, s := w.session("auth"), w.store()
	tx := a.begin(s)
	_, err := s.Commit(t.Context(), tx, a.source(), "", false)
	require.ErrorIs(t, err, errNothing)
	before := *tx
	a.task("one", "a", "1")
	a.commit(s, tx)

	require.NoError(t, s.save(&before)) // as if it was killed in front of the manifest
	got, err := w.store().Find(tx.ID)
	require.NoError(t, err)
	require.Equal(t, InProgress, got.State)
	require.Equal(t, Committed, w.store().Status(t.Context(), got, nil).State)
	w.edit("outside", "1")
	w.session("billing").begin(w.store())
	require.Equal(t, "1", w.files("main")["outside"], "no other transaction is in progress")
	was := w.git("rev-parse", "main")
	a.commit(s, got) // mends it
	require.Equal(t, was, w.git("rev-parse", "main"))
	got, err = s.Find(tx.ID)
	require.NoError(t, err)
	require.Equal(t, Committed, got.State)

	w.git("update-ref", "refs/heads/main", tx.Base)
	st := w.store().Status(t.Context(), got, nil)
	require.Equal(t, Committed, st.State)
	require.Contains(t, st.Problem, "is not on main of the side-car any more")
}

// Rolled back is a transaction until its rewind is undone, and again when that is.
func TestRolledBackAndUndone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, s := w.session("auth"), w.store()
	tx := a.begin(s)
	begin := a.last
	a.task("one", "a", "1")
	require.Equal(t, 1, a.recorded(s, tx))
	rewind := func(to *checkpoint.Entry, files ...string) (before *checkpoint.Entry) {
		before = a.checkpoint(checkpoint.BeforeRewind, to.Number, 0)
		w.edit(files...)
		after := a.checkpoint(checkpoint.AfterRewind, to.Number, before.Number)
		a.record(record.Record{Event: record.EventRewindEnd, Rewind: &session.Rewinding{To: to.ID.String(), After: after.ID.String()}})
		return before
	}
	state := func() State {
		all, _, err := w.chain.List()
		require.NoError(t, err)
		got, err := w.store().Find(tx.ID)
		require.NoError(t, err)
		return w.store().Status(t.Context(), got, all).State
	}
	before := rewind(begin, "a", "-")
	require.Equal(t, InProgress, state())
	require.NoError(t, s.RolledBack(t.Context(), tx, before.Number))
	require.Equal(t, RolledBack, state())
	other := w.session("other")
	other.checkpoint(checkpoint.AfterRewind, before.Number, before.Number)
	require.Equal(t, RolledBack, state(), "another session's rewind")
	second := rewind(before, "a", "1")
	require.Equal(t, InProgress, state())
	rewind(second, "a", "-")
	require.Equal(t, RolledBack, state())

	// The branch has the rewinds too.
	require.Equal(t, 3, a.recorded(s, tx))
	require.Empty(t, w.files("lopen/session-"+tx.ID))
	require.Equal(t, map[string]string{"a": "1"}, w.files("lopen/session-"+tx.ID+"~1"))
}

// What a person changes outside of transactions comes to main with the next one. What another
// session has in progress does not.
func TestMainMovesOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b, s := w.session("auth"), w.session("billing"), w.store()
	w.edit("a", "1\n2\n3\n4\n5\n6\n7\n8\n", "c", "c")
	ta := a.begin(s)
	a.task("one", "a", "one\n2\n3\n4\n5\n6\n7\n8\n", "of a", "partial")
	tb := b.begin(s)
	b.task("one", "a", "one\n2\n3\n4\n5\n6\n7\neight\n", "of b", "b")
	b.commit(s, tb)
	require.Equal(t, map[string]string{"a": "1\n2\n3\n4\n5\n6\n7\neight", "c": "c", "of b": "b"}, w.files("main"), "the change of a is not b's")
	a.task("two", "of a", "whole")
	a.commit(s, ta)
	require.Equal(t, map[string]string{"a": "one\n2\n3\n4\n5\n6\n7\neight", "c": "c", "of a": "whole", "of b": "b"}, w.files("main"))

	w.edit("person", "outside", "c", "-")
	tc := b.begin(s)
	require.Equal(t, "billing-20260101-1-t2", tc.ID)
	require.Equal(t, "outside", w.files("main")["person"])
	require.NotContains(t, w.files("main"), "c")
	w.git("fsck", "--strict", "--no-dangling")
}

// A contradiction of main is an error that names the files and changes nothing. By force main
// gets the files as the session has them.
func TestConflict(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b, s := w.session("auth"), w.session("billing"), w.store()
	w.edit("sa'me", "begin")
	ta := a.begin(s)
	tb := b.begin(s)
	a.task("one", "sa'me", "of a")
	require.Equal(t, 1, a.recorded(s, ta))
	b.task("one", "sa'me", "of b", "more", "b")
	require.Equal(t, 1, b.recorded(s, tb))
	a.commit(s, ta)
	was, manifest := w.git("for-each-ref"), *tb
	_, err := s.Commit(t.Context(), tb, b.source(), "", false)
	require.ErrorContains(t, err, `other changes of "sa'me" since: nothing was changed`)
	require.ErrorContains(t, err, "lopen transaction commit "+tb.ID+" --force")
	require.ErrorContains(t, err, "lopen transaction rollback "+tb.ID)
	require.NotContains(t, err.Error(), "git", "nobody is led to a git that reads the side-car's configuration")
	require.Equal(t, manifest, *tb)
	require.Equal(t, was, w.git("for-each-ref"))
	require.Equal(t, InProgress, w.store().Status(t.Context(), tb, nil).State)

	_, err = s.Commit(t.Context(), tb, b.source(), "", true)
	require.NoError(t, err)
	require.Equal(t, map[string]string{"sa'me": "of b", "more": "b"}, w.files("main"))
	require.Equal(t, "3", w.git("rev-list", "--count", "main"))
	require.Equal(t, "of a", w.git("show", "main~1:sa'me"))
}

// Names, modes, links and what git cannot hold.
func TestOddTrees(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, s := w.session("auth"), w.store()
	odd := []string{"new\nline", "tab\t\"quoted\" \\back", " space ", "\xff\xfe", "ünï", "-dash", "git~2", "a/b/c/d", "empty", ".gitattributes", "back\\slash"}
	for _, name := range odd {
		w.edit(name, "content of "+name)
	}
	no := []string{"git~1", "sub/.g\u200cit/config", "sub/a\\.GIT . "} // git has them as .git on other systems
	for _, name := range no {
		w.edit(name, "x")
	}
	w.edit("empty", "", ".gitattributes", "* text eol=crlf filter=evil merge=evil\n", "lines", "a\r\nb\n", "no end", "x")
	require.NoError(t, os.MkdirAll(filepath.Join(w.project, "empty folder"), 0o755))
	require.NoError(t, os.Symlink("a/b\nc", filepath.Join(w.project, "link")))
	require.NoError(t, os.WriteFile(filepath.Join(w.project, "run"), []byte("#!"), 0o700))
	require.NoError(t, os.MkdirAll(filepath.Join(w.project, "a/nested/.git"), 0o755))
	tx := a.begin(s)
	left, err := LeftOut(w.chain.Tree(a.last.Root))
	require.NoError(t, err)
	require.Equal(t, append([]string{"a/nested", "empty folder"}, no...), left)
	check := func() {
		t.Helper()
		got := w.files(branchOf(tx.ID))
		for _, name := range odd {
			require.Contains(t, got, name)
		}
		require.Equal(t, "a/b\nc", got["link"])
		require.Equal(t, "a\r\nb", got["lines"])
		require.Contains(t, w.git("ls-tree", branchOf(tx.ID), "run"), "100755 blob")
		require.Contains(t, w.git("ls-tree", branchOf(tx.ID), "link"), "120000 blob")
		require.NotContains(t, got, "empty folder")
		index := "--work-tree=" + t.TempDir()
		w.git("-c", "core.protectHFS=true", "-c", "core.protectNTFS=true", "-c", "core.bare=false", index, "read-tree", "-u", "--reset", branchOf(tx.ID))
	}
	check()
	require.NoError(t, os.Chmod(filepath.Join(w.project, "lines"), 0o700))
	require.NoError(t, os.Rename(filepath.Join(w.project, "no end"), filepath.Join(w.project, "moved\n")))
	a.task("one", "link", "-", "link/now", "a folder")
	w.edit("git~1", "y", "late/.Git\u200d", "x")
	a.checkpoint(checkpoint.AfterTask, 0, 0)
	a.record(record.Record{Attempts: []record.Attempt{{Task: "two", Then: record.Done}}})
	require.Equal(t, no, s.Left())
	require.NoError(t, s.Record(t.Context(), tx, a.source()))
	require.Equal(t, []string{"git~1", "late/.Git\u200d"}, s.Left())
	kept, _, err := w.chain.Tree(a.last.Root).Find("late/.Git\u200d")
	require.NoError(t, err)
	require.NotNil(t, kept, "the checkpoint has it")
	require.Contains(t, w.git("ls-tree", branchOf(tx.ID), "lines"), "100755 blob")
	got := w.files(branchOf(tx.ID))
	require.Equal(t, "x", got["moved\n"])
	require.NotContains(t, got, "no end")
	require.Equal(t, "a folder", got["link/now"])

	for _, command := range []string{"version", "gc"} { // of a person
		w.git(command)
		packs, err := filepath.Glob(filepath.Join(w.lopen, repoDir, "objects/pack/*"))
		require.NoError(t, err)
		require.NotEmpty(t, packs)
		for _, file := range packs {
			info, err := os.Stat(file)
			require.NoError(t, err)
			require.Equal(t, os.FileMode(0o400), info.Mode(), "%s after git %s", file, command)
		}
	}

	// The difference and the whole give the same tree.
	id, err := s.write(t.Context(), w.chain, draft{entry: a.last, message: "whole"})
	require.NoError(t, err)
	require.Equal(t, w.git("rev-parse", branchOf(tx.ID)+"^{tree}"), w.git("rev-parse", id+"^{tree}"))
}
