package sidecar

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/folder"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/envelope"
)

// A dying FS is that of a process which ends in front of its n-th change, or that records all.
type dying struct {
	writer.FS
	at   string
	life *life
}

type life struct {
	left  int
	calls []string
}

var errDead = errors.New("the process has ended")

func (d dying) change(op, name string) error {
	if d.life.left--; d.life.left < 0 {
		return errDead
	}
	d.life.calls = append(d.life.calls, op+" "+d.at+name)
	return nil
}

func (d dying) Sub(name string) (writer.FS, error) {
	sub, err := d.FS.Sub(name)
	return dying{sub, d.at + name + "/", d.life}, err
}

func (d dying) Mkdir(name string, perm fs.FileMode) error {
	if err := d.change("mkdir", name); err != nil {
		return err
	}
	return d.FS.Mkdir(name, perm)
}

func (d dying) OpenFile(name string, flag int, perm fs.FileMode) (writer.File, error) {
	if flag&os.O_CREATE != 0 {
		if err := d.change("create", name); err != nil {
			return nil, err
		}
	}
	return d.FS.OpenFile(name, flag, perm)
}

func (d dying) Rename(from, to string) error {
	if err := d.change("rename", to); err != nil {
		return err
	}
	return d.FS.Rename(from, to)
}

func (d dying) Remove(name string) error {
	if d.life.left < 0 {
		return errDead // a process that has ended tidies up nothing
	}
	return d.FS.Remove(name)
}

func (d dying) SyncDir(name string) error {
	if err := d.change("sync", name); err != nil {
		return err
	}
	return d.FS.SyncDir(name)
}

// dies has a store end in front of its n-th change.
func dies(s *Store, n int) *life {
	l := &life{left: n}
	s.root = dying{s.root, "", l}
	return l
}

// A process that ends anywhere leaves the old or the new, and whoever comes next finishes it.
func TestKilledAtAnyCall(t *testing.T) {
	t.Parallel()
	t.Run("begin", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		a := w.session("auth")
		w.edit("a", "1")
		at := a.checkpoint(checkpoint.Manual, 0, 0)
		for n := 0; ; n++ {
			require.NoError(t, os.RemoveAll(filepath.Join(w.lopen, repoDir)))
			require.NoError(t, os.RemoveAll(filepath.Join(w.lopen, manifestDir)))
			s := w.store()
			dies(s, n)
			_, err := s.Begin(t.Context(), a.source(), at, "")
			if err == nil {
				require.Greater(t, n, 20)
				break
			}
			require.ErrorIs(t, err, errDead, n)
			tx, err := w.store().Begin(t.Context(), a.source(), at, "")
			require.NoError(t, err, n)
			require.Equal(t, "auth-20260101-1-t1", strings.Replace(tx.ID, "-t2", "-t1", 1))
			require.Equal(t, map[string]string{"a": "1"}, w.files(branchOf(tx.ID)))
		}
	})
	t.Run("commit", func(t *testing.T) {
		t.Parallel()
		for n := 0; ; n++ {
			w := newWorld(t)
			a, s := w.session("auth"), w.store()
			tx := a.begin(s)
			a.task("one", "a", "1")
			s = w.store()
			dies(s, n)
			found := *tx
			_, err := s.Commit(t.Context(), &found, a.source(), "", false)
			if err == nil {
				require.Greater(t, n, 10)
				break
			}
			require.ErrorIs(t, err, errDead, n)
			got, err := w.store().Find(tx.ID)
			require.NoError(t, err, n)
			st := w.store().Status(t.Context(), got, nil)
			require.Empty(t, st.Problem, n)
			a.commit(w.store(), got)
			require.Equal(t, map[string]string{"a": "1"}, w.files("main"), n)
			require.Equal(t, "2", w.git("rev-list", "--count", "main"), "%d: %s", n, st.State)
		}
	})
}

// A branch names a commit when its pack is durable, and the manifest says so after that.
func TestOrderOfWrites(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, s := w.session("auth"), w.store()
	tx := a.begin(s)
	a.task("one", "a", "1")
	s = w.store()
	l := dies(s, 1000)
	a.commit(s, tx)
	var order []string
	for _, call := range l.calls {
		if strings.HasPrefix(call, "rename sidecar.git/objects/pack/pack-") {
			order = append(order, filepath.Ext(call))
		}
		for _, what := range []string{"sync sidecar.git/objects/pack", "rename sidecar.git/refs/heads/lopen/session-" + tx.ID, "rename sidecar.git/refs/heads/main", "rename transactions/" + tx.ID + ".json"} {
			if call == what {
				order = append(order, strings.TrimSuffix(filepath.Base(what), tx.ID))
			}
		}
	}
	require.Equal(t, []string{".pack", ".idx", "pack", "session-", ".pack", ".idx", "pack", "main", tx.ID + ".json"}, slices.DeleteFunc(order, func(s string) bool { return s == ".rev" }))
}

// A git that is killed in the middle changes nothing and leaves nothing. What a process that was
// killed left goes with the next commit.
func TestGitIsKilled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, s := w.session("auth"), w.store()
	tx := a.begin(s)
	everything := func() string { return sh(t, "find '"+w.lopen+"/"+repoDir+"' '"+w.scratch+"'") }
	was, refs := everything(), w.git("for-each-ref")
	ctx, kill := context.WithCancel(t.Context())
	_, err := s.add(ctx, 0, func(to io.Writer) error {
		fmt.Fprintf(to, "commit refs/heads/import\ncommitter a <a> 0 +0000\ndata 0\nM 100644 inline a\ndata %d\n", 1<<40)
		for n := 0; ; n++ {
			if n == 10<<4 {
				left, err := filepath.Glob(filepath.Join(w.lopen, repoDir, incoming, "pack/tmp_*"))
				require.NoError(t, err)
				require.NotEmpty(t, left)
				kill()
			}
			if _, err := to.Write(make([]byte, 64<<10)); err != nil { // it is dead
				return err
			}
		}
	}, importCommand...)
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, was, everything())
	require.Equal(t, refs, w.git("for-each-ref"))

	left := filepath.Join(w.lopen, repoDir, incoming, "pack/tmp_pack_x")
	require.NoError(t, os.MkdirAll(filepath.Dir(left), 0o700))
	require.NoError(t, os.WriteFile(left, []byte("PACK"), 0o400))
	a.task("one", "a", "1")
	require.Equal(t, 1, a.recorded(s, tx))
	require.NotContains(t, everything(), "tmp_pack_x")

	// A part of a stream is not taken for the whole, even if nobody kills git.
	_, err = s.add(t.Context(), 0, func(to io.Writer) error {
		_, err := to.Write([]byte("commit refs/heads/import\nmark :1\ncommitter a <a> 0 +0000\ndata 0\nget-mark :1\n"))
		return err
	}, importCommand...)
	require.Error(t, err)
}

// A lock file that a git which was killed has left stops nothing for ever.
func TestAnOldLock(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, s := w.session("auth"), w.store()
	tx := a.begin(s)
	a.task("one", "a", "1")
	lock := filepath.Join(w.lopen, repoDir, "packed-refs.lock")
	require.NoError(t, os.WriteFile(lock, nil, 0o600))
	err := s.Record(t.Context(), tx, a.source())
	require.ErrorIs(t, err, writer.ErrBusy)
	require.FileExists(t, lock)
	old := time.Now().Add(-2 * abandoned)
	require.NoError(t, os.Chtimes(lock, old, old))
	require.Equal(t, 1, a.recorded(s, tx))
	require.NoFileExists(t, lock)
}

// A git that hangs is killed, the error says so, and no other one is waited for.
func TestGitHangs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.store()
	require.NoError(t, s.make())
	s.opts.Patience = 100 * time.Millisecond
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	_, err := s.add(ctx, 0, func(to io.Writer) error {
		for {
			if _, err := to.Write([]byte("# a comment\n")); err != nil {
				return err
			}
		}
	}, importCommand...)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "did not end in time and was killed")
	_, again := s.git(t.Context(), "version")
	require.Equal(t, err, again)
}

// Whoever writes excludes other writers, so no commit of main is lost.
func TestOneWriter(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, s := w.session("auth"), w.store()
	tx := a.begin(s)
	a.task("one", "a", "1")
	at := a.checkpoint(checkpoint.Manual, 0, 0)
	was := w.git("for-each-ref")
	unlock, err := w.store().lock(t.Context())
	require.NoError(t, err)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = s.Begin(ended, a.source(), at, "")
	require.ErrorIs(t, err, writer.ErrBusy)
	_, err = s.Commit(ended, tx, a.source(), "", false)
	require.ErrorIs(t, err, writer.ErrBusy)
	err = s.Record(ended, tx, a.source())
	require.ErrorIs(t, err, writer.ErrBusy)
	require.ErrorIs(t, s.Remake(ended, tx, a.source()), writer.ErrBusy)
	require.ErrorIs(t, s.RolledBack(ended, tx, at.Number), writer.ErrBusy)
	require.Equal(t, was, w.git("for-each-ref"))
	unlock()
	a.commit(s, tx)
}

// A content that is damaged, or gone, is an error, and nothing of the commit is seen.
func TestDamagedContent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, s := w.session("auth"), w.store()
	tx := a.begin(s)
	large := strings.Repeat("large ", 20000)
	a.task("one", "large", large)
	var blob string
	require.NoError(t, filepath.WalkDir(filepath.Join(w.lopen, "blobs"), func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() && filepath.Base(filepath.Dir(path)) != "packs" && !strings.HasPrefix(e.Name(), ".") {
			blob = path
		}
		return err
	}))
	data, err := os.ReadFile(blob)
	require.NoError(t, err)
	require.NoError(t, os.Chmod(blob, 0o600))
	bad := []byte(strings.Replace(string(data), "large", "LARGE", 1))
	require.NoError(t, os.WriteFile(blob, bad, 0o600))
	was := w.git("for-each-ref")
	err = s.Record(t.Context(), tx, a.source())
	require.ErrorIs(t, err, envelope.ErrCorrupt)
	require.Equal(t, was, w.git("for-each-ref"))
	require.NoError(t, os.WriteFile(blob, data, 0o600))
	require.Equal(t, 1, a.recorded(s, tx))
}

// What is wrong with a side-car is an error that names the file and the way out, and the way
// out works: everything is in the checkpoints.
func TestFaultsOfTheSidecar(t *testing.T) {
	t.Parallel()
	at := func(w *world, name string) string { return filepath.Join(w.lopen, repoDir, name) }
	away := func(w *world, name string) error { return os.Rename(at(w, name), filepath.Join(w.scratch, "away")) }
	put := func(w *world, name, text string) error {
		return errors.Join(os.MkdirAll(filepath.Dir(at(w, name)), 0o700), os.WriteFile(at(w, name), []byte(text), 0o600))
	}
	branch := "refs/heads/lopen/session-auth-20260101-1-t1"
	for name, c := range map[string]struct {
		spoil func(w *world) error
		is    error
		says  string
		mend  func(w *world) error
	}{
		"no side-car": {func(w *world) error { return away(w, "") }, folder.ErrNotFound, "lopen transaction commit --remake makes it again", nil},
		"no branch":   {func(w *world) error { return away(w, branch) }, folder.ErrNotFound, "lopen transaction commit auth-20260101-1-t1 --remake", nil},
		"no main":     {func(w *world) error { return away(w, mainRef) }, envelope.ErrCorrupt, "lopen transaction commit auth-20260101-1-t1 --remake", nil},
		"a branch that is none": {func(w *world) error { return put(w, branch, "ref: refs/heads/main\n") }, envelope.ErrCorrupt, "names no object",
			func(w *world) error { return away(w, branch) }},
		"a branch of nothing": {func(w *world) error { return put(w, branch, strings.Repeat("1", 40)+"\n") }, envelope.ErrCorrupt, wayOut,
			func(w *world) error { return away(w, branch) }},
		"no packs": {func(w *world) error {
			return errors.Join(away(w, "objects/pack"), os.Mkdir(at(w, "objects/pack"), 0o700))
		}, envelope.ErrCorrupt, wayOut,
			func(w *world) error { return os.RemoveAll(at(w, "")) }},
		"a damaged pack": {func(w *world) error {
			packs, err := filepath.Glob(at(w, "objects/pack/*.pack"))
			for _, pack := range packs {
				err = errors.Join(err, os.Chmod(pack, 0o600), os.Truncate(pack, 40))
			}
			return err
		}, envelope.ErrCorrupt, wayOut, func(w *world) error { return os.RemoveAll(at(w, "")) }},
		"objects elsewhere": {func(w *world) error { return put(w, "objects/info/alternates", w.scratch) }, envelope.ErrCorrupt, "objects/info/alternates",
			func(w *world) error { return os.Remove(at(w, "objects/info/alternates")) }},
		"objects that lead out": {func(w *world) error { return os.Symlink(w.scratch, at(w, "objects/ab")) }, envelope.ErrCorrupt, "objects/ab",
			func(w *world) error { return os.Remove(at(w, "objects/ab")) }},
		"a locked branch": {func(w *world) error { return put(w, branch+".lock", "") }, writer.ErrBusy, branch + ".lock",
			func(w *world) error { return os.Remove(at(w, branch+".lock")) }},
		"a locked main": {func(w *world) error { return put(w, mainRef+".lock", "") }, writer.ErrBusy, "when none runs, remove this file",
			func(w *world) error { return os.Remove(at(w, mainRef+".lock")) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			a := w.session("auth")
			w.edit("a", "begin")
			tx := a.begin(w.store())
			a.task("one", "a", "1")
			a.task("two", "b", "2")
			require.NoError(t, c.spoil(w))
			_, err := w.store().Commit(t.Context(), tx, a.source(), "", false)
			require.ErrorIs(t, err, c.is)
			require.ErrorContains(t, err, c.says)
			again, err := w.store().Find(tx.ID)
			require.NoError(t, err)
			require.Equal(t, InProgress, again.State)
			if c.mend != nil {
				require.NoError(t, c.mend(w))
			}
			require.NoError(t, w.store().Remake(t.Context(), again, a.source()))
			a.commit(w.store(), again)
			require.Equal(t, map[string]string{"a": "1", "b": "2"}, w.files("main"))
		})
	}
}

// What the branch lacks does not come to main.
func TestNothingMissingIsCommitted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, s := w.session("auth"), w.store()
	tx := a.begin(s)
	a.task("one", "a", "1")
	a.recorded(s, tx)
	tree := w.git("mktree", "--missing", "/dev/null")
	require.NotEmpty(t, tree)
	lacking := strings.Repeat("2", 40)
	index := filepath.Join(t.TempDir(), "index")
	cmd := "GIT_INDEX_FILE='" + index + "' git --git-dir='" + filepath.Join(w.lopen, repoDir) + "' "
	out := sh(t, cmd+"update-index --add --cacheinfo 100644,"+lacking+",x && "+cmd+"write-tree --missing-ok")
	w.git("update-ref", "refs/heads/"+branchOf(tx.ID), w.git("commit-tree", strings.TrimSpace(out), "-p", branchOf(tx.ID), "-m", "x"))
	was := w.git("rev-parse", "main")
	_, err := s.Commit(t.Context(), tx, a.source(), "", false)
	require.ErrorIs(t, err, envelope.ErrCorrupt)
	require.ErrorContains(t, err, lacking)
	require.Equal(t, was, w.git("rev-parse", "main"))
}

// Nothing that the side-car's configuration, hooks and attributes name is run or believed.
func TestNothingOfTheSidecarRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ran := filepath.Join(t.TempDir(), "ran")
	evil := "touch '" + ran + "'"
	require.NoError(t, w.store().make())
	repo := filepath.Join(w.lopen, repoDir)
	config := "[core]\n\tfsmonitor = \"" + evil + "\"\n\thooksPath = " + filepath.Join(repo, "hooks") + "\n\tsshCommand = \"" + evil + "\"\n\tbare = true\n\trepositoryformatversion = 1\n" +
		"[extensions]\n\tpartialClone = evil\n[remote \"evil\"]\n\turl = \"ext::sh -c '" + evil + "'\"\n\tpromisor = true\n[protocol]\n\tallow = always\n" +
		"[merge \"evil\"]\n\tdriver = \"" + evil + "\"\n[gpg]\n\tprogram = \"" + evil + "\"\n[commit]\n\tgpgSign = true\n[include]\n\tpath = /dev/zero\n"
	for name, text := range map[string]string{"config": config, "hooks/reference-transaction": "#!/bin/sh\n" + evil + "\n", "info/attributes": "* merge=evil\n", "info/grafts": "x\n", "shallow": "x\n"} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(repo, name)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(repo, name), []byte(text), 0o700))
	}
	a, b, s := w.session("auth"), w.session("billing"), w.store()
	w.edit("a", "1\n2\n3\n4\n5\n6\n7\n8\n", ".gitattributes", "* merge=evil\n")
	ta := a.begin(s)
	a.task("one", "a", "one\n2\n3\n4\n5\n6\n7\n8\n")
	tb := b.begin(s)
	b.task("one", "a", "one\n2\n3\n4\n5\n6\n7\neight\n")
	b.commit(s, tb)
	a.commit(s, ta)
	require.NoFileExists(t, ran)
	_, err := s.git(t.Context(), "cat-file", "-p", strings.Repeat("3", 40)) // it would be fetched
	require.Error(t, err)
	require.NoFileExists(t, ran)
}

// Git has two ways to say that the disk is full.
func TestAFullDiskIsNoDamage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, s := w.session("auth"), w.store()
	a.begin(s)
	for _, text := range []string{"write error: No space left on device", "tmp_pack_x' write error. Out of diskspace\nfast-import: dumping crash report to y\nfatal: x (disk corruption?)"} {
		err := s.failed("fast-import", text, errors.New("exit status 128"))
		require.Equal(t, writer.ClassNoSpace, writer.ClassOf(err))
		require.NotContains(t, err.Error(), wayOut)
		require.NotContains(t, err.Error(), "crash report")
	}
}
