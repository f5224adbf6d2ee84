package sidecar

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/blob"
)

// A world is a project with sessions whose logs are in memory.
type world struct {
	t                        *testing.T
	project, lopen, scratch  string
	chain                    *checkpoint.Store
	checkpoints, blobs, tree writer.FS
	now                      time.Time
}

// A work is a session of a world.
type work struct {
	*world
	id   session.ID
	log  []record.Record
	last *checkpoint.Entry
}

func newWorld(t *testing.T) *world {
	t.Helper()
	if err := HasGit(t.Context()); err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	w := &world{t: t, project: filepath.Join(dir, "project"), scratch: filepath.Join(dir, "scratch"), now: time.Unix(1.8e9, 0).UTC()}
	w.lopen = filepath.Join(w.project, ".lopen")
	open := func(path string) writer.FS {
		require.NoError(t, os.MkdirAll(path, 0o700))
		dir, err := writer.OpenFS(path)
		require.NoError(t, err)
		t.Cleanup(func() { _ = dir.Close() })
		return dir
	}
	w.tree, w.checkpoints, w.blobs = open(w.project), open(filepath.Join(w.lopen, "checkpoints")), open(filepath.Join(w.lopen, "blobs"))
	w.chain = checkpoint.New(w.checkpoints, checkpoint.MainTree, blob.New(w.blobs), w.tree, checkpoint.Options{})
	return w
}

func (w *world) session(name string) *work {
	id, err := session.ParseID(name + "-20260101-1")
	require.NoError(w.t, err)
	return &work{world: w, id: id}
}

// store opens the transactions, as a process does.
func (w *world) store() *Store {
	scratch := func() (string, func(), error) {
		dir, err := os.MkdirTemp(w.scratch, "git-*")
		return dir, func() { _ = os.RemoveAll(dir) }, err
	}
	require.NoError(w.t, os.MkdirAll(w.scratch, 0o700))
	s, err := Open(w.lopen, Options{Scratch: scratch, Now: func() time.Time { return w.now }})
	require.NoError(w.t, err)
	w.t.Cleanup(func() { _ = s.Close() })
	return s
}

// edit writes files of the project: names and contents in turn. "-" removes one.
func (w *world) edit(files ...string) {
	w.t.Helper()
	for i := 0; i < len(files); i += 2 {
		path := filepath.Join(w.project, files[i])
		if files[i+1] == "-" {
			require.NoError(w.t, os.RemoveAll(path))
			continue
		}
		require.NoError(w.t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(w.t, os.WriteFile(path, []byte(files[i+1]), 0o600))
	}
}

func (s *work) source() Source {
	return Source{Session: s.id, Incarnation: "i", Chain: s.chain, Name: func(task string) string { return "task " + task },
		Log: func(_ session.ID, above uint64, fn func(record.Record) error) error {
			for _, r := range s.log[min(int(above), len(s.log)):] {
				if err := fn(r); err != nil {
					return err
				}
			}
			return nil
		}}
}

func (s *work) record(r record.Record) {
	r.Seq = uint64(len(s.log) + 1)
	s.log = append(s.log, r)
}

// checkpoint makes a checkpoint, which the log names.
func (s *work) checkpoint(why checkpoint.Reason, target, parent uint64) *checkpoint.Entry {
	s.t.Helper()
	s.now = s.now.Add(time.Minute)
	meta := checkpoint.Meta{Session: s.id.String(), Incarnation: "i", Seq: uint64(len(s.log)), At: s.now, Reason: why, Target: target, Parent: parent}
	e, err := s.chain.Create(s.t.Context(), meta)
	require.NoError(s.t, err)
	s.record(record.Record{Checkpoint: e.ID.String()})
	s.last = e
	return e
}

// task is a completed task that changes files.
func (s *work) task(name string, files ...string) *checkpoint.Entry {
	s.t.Helper()
	s.edit(files...)
	e := s.checkpoint(checkpoint.AfterTask, 0, 0)
	s.record(record.Record{Attempts: []record.Attempt{{Task: name, Then: record.Done}}})
	return e
}

func (s *work) begin(store *Store) *Transaction {
	s.t.Helper()
	t, err := store.Begin(s.t.Context(), s.source(), s.checkpoint(checkpoint.Manual, 0, 0), "")
	require.NoError(s.t, err)
	return t
}

func (s *work) recorded(store *Store, t *Transaction) int {
	s.t.Helper()
	before, err := store.Log(s.t.Context(), t)
	require.NoError(s.t, err)
	require.NoError(s.t, store.Record(s.t.Context(), t, s.source()))
	after, err := store.Log(s.t.Context(), t)
	require.NoError(s.t, err)
	return len(after) - len(before)
}

func (s *work) commit(store *Store, t *Transaction) {
	s.t.Helper()
	_, err := store.Commit(s.t.Context(), t, s.source(), s.id.String(), false)
	require.NoError(s.t, err)
}

// git is the git of a person, on the side-car as it is.
func (w *world) git(args ...string) string {
	w.t.Helper()
	out, err := w.gitErr(args...)
	require.NoError(w.t, err, "%s", out)
	return out
}

func (w *world) gitErr(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "git", append([]string{"--git-dir=" + filepath.Join(w.lopen, repoDir)}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+os.DevNull,
		"GIT_AUTHOR_NAME=p", "GIT_AUTHOR_EMAIL=p@p", "GIT_COMMITTER_NAME=p", "GIT_COMMITTER_EMAIL=p@p")
	out, err := cmd.CombinedOutput()
	return strings.TrimSuffix(string(out), "\n"), err
}

// files are the contents of a branch, by path.
func (w *world) files(branch string) map[string]string {
	w.t.Helper()
	all := map[string]string{}
	for name := range strings.SplitSeq(w.git("ls-tree", "-r", "-z", "--name-only", branch), "\x00") {
		if name != "" {
			all[name] = w.git("cat-file", "blob", branch+":"+name)
		}
	}
	return all
}

// sh runs a command line.
func sh(t *testing.T, line string) string {
	t.Helper()
	out, err := exec.Command("sh", "-c", line).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return string(out)
}
