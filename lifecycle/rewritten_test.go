package lifecycle_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/carry"
	"github.com/lopen-dev/lopen/lifecycle/folder"
	"github.com/lopen-dev/lopen/lifecycle/redact"
	"github.com/lopen-dev/lopen/lifecycle/repair"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
	"github.com/lopen-dev/lopen/lifecycle/wire"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/crashfs"
	"github.com/lopen-dev/lopen/writer/journal"
)

// folderOf opens the folder of a session of a project.
func folderOf(t require.TestingT, project writer.FS, id session.ID) writer.FS {
	dir, err := project.Sub(".lopen/sessions/" + id.String())
	require.NoError(t, err)
	return dir
}

// rewritten writes a session anew, into the folder of another one.
func rewritten(t require.TestingT, project writer.FS, from, to session.ID, r carry.Rewriting) {
	require.NoError(t, project.Mkdir(".lopen/sessions/"+to.String(), 0o700))
	r.ID = to
	was, now := folderOf(t, project, from), folderOf(t, project, to)
	defer was.Close()
	defer now.Close()
	require.NoError(t, carry.Rewrite(was, now, from, r))
}

// sameInstants compares what two sessions show.
func sameInstants(t require.TestingT, project writer.FS, from, to session.ID) {
	was, now := folderOf(t, project, from), folderOf(t, project, to)
	defer was.Close()
	defer now.Close()
	require.Equal(t, instants(t, was, from, to), instants(t, now, to, to))
	for _, events := range []bool{false, true} {
		require.Equal(t, appendedIn(t, was, from, events), appendedIn(t, now, to, events))
	}
}

// An instant is what a session shows at a record.
type instant struct {
	state, metrics string
	at             session.Mark
}

// instants returns what a session shows at each record, as another session would.
func instants(t require.TestingT, dir writer.FS, id, as session.ID) map[uint64]instant {
	ld, err := folder.Load(dir, id)
	require.NoError(t, err)
	all := map[uint64]instant{}
	began, err := journal.Began(dir)
	require.NoError(t, err)
	for seq := began; seq <= ld.At.Seq; seq++ {
		st, at, err := folder.StateAt(dir, id, seq)
		require.NoError(t, err, "record %d", seq)
		at.Iterations = 0 // which depends on where the replay began
		st, err = st.As(as)
		require.NoError(t, err)
		all[seq] = instant{string(wire.EncodeState(st, at)), string(wire.EncodeMetrics(st, at)), at}
	}
	return all
}

// appendedIn returns the messages or events of a session with their numbers and records.
func appendedIn(t require.TestingT, dir writer.FS, id session.ID, events bool) (all []folder.Appended) {
	ld, err := folder.Load(dir, id)
	require.NoError(t, err)
	for a, err := range folder.ReadAppended(dir, ld.At, events) {
		require.NoError(t, err)
		a.Object = slices.Clone(a.Object)
		all = append(all, a)
	}
	return all
}

// TestAnySessionWrittenAnew makes random histories, writes them anew under another ID, and
// compares what they show at each record. The result can be resumed and forked.
func TestAnySessionWrittenAnew(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := newSim(t, crashfs.Ext4)
		s.initWith(lifecycle.Policy{
			JournalBytes: rapid.SampledFrom([]int64{0, 12 << 10}).Draw(t, "bound"),
			Interval:     rapid.IntRange(0, 4).Draw(t, "interval"),
		})
		require.NoError(t, s.create())
		s.talks = rapid.Bool().Draw(t, "talk")
		for range rapid.IntRange(1, 10).Draw(t, "steps") {
			step(t, s)
		}
		s.disk.SetHook(nil)
		_ = s.unpause()
		s.kill()
		require.NoError(t, s.reopen())
		require.NoError(t, s.save(1))
		require.NoError(t, s.sync())
		from := s.id
		if rapid.Bool().Draw(t, "fork") {
			at := lifecycle.ForkOptions{}
			if n := len(s.messages); n > 0 && rapid.Bool().Draw(t, "at a message") {
				at.Message = s.messages[rapid.IntRange(0, n-1).Draw(t, "which")]
			}
			fork, err := s.store.Fork(t.Context(), s.id, at)
			if errors.Is(err, lifecycle.ErrNotFound) { // the message's record was dropped
				fork, err = s.store.Fork(t.Context(), s.id, lifecycle.ForkOptions{})
			}
			require.NoError(t, err)
			from = fork.ID()
			require.NoError(t, fork.Append(&session.Message{ID: "of the fork", Role: session.RoleUser, Content: session.Text("y")}))
			require.NoError(t, fork.Close(t.Context()))
		}
		if rapid.Bool().Draw(t, "closed") {
			require.NoError(t, s.close())
		}
		s.kill()
		to := from
		to.Counter = 99
		rewritten(t, s.disk.FS(), from, to, carry.Rewriting{})
		sameInstants(t, s.disk.FS(), from, to)
		resumeRewritten(t, s.disk.FS(), to)
	})
}

// resumeRewritten opens a session that was written anew, saves, forks it at each message, and
// verifies it.
func resumeRewritten(t require.TestingT, project writer.FS, id session.ID) {
	store, err := lifecycle.OpenOn(project, simOptions)
	require.NoError(t, err)
	store.Shrink(4<<10, 8<<10)
	report, err := store.Verify(id)
	require.NoError(t, err)
	for _, f := range report.Faults {
		require.Contains(t, []string{"state.json", "metrics.json"}, f.File, "%v", f)
	}
	sess, err := store.Open(id)
	require.NoError(t, err)
	require.NoError(t, sess.Append(&session.Message{ID: "one more", Role: session.RoleUser, Content: session.Text("z")}))
	require.NoError(t, sess.Change(session.TriggerTaskCompleted, func(e *session.Edit) error {
		e.Header().TurnCount = 1000
		return nil
	}))
	require.NoError(t, sess.Sync(context.Background()))
	require.NoError(t, sess.Close(context.Background()))
	report, err = store.Verify(id)
	require.NoError(t, err)
	require.Equal(t, repair.Intact, report.Condition, "%v %v", report.Err, report.Faults)
	st, _, err := store.Read(id)
	require.NoError(t, err)
	require.Equal(t, 1000, st.Header().TurnCount)
	var last string
	for m, err := range store.Messages(id) {
		require.NoError(t, err)
		last = m.ID
	}
	require.Equal(t, "one more", last)
	fork, err := store.Fork(context.Background(), id, lifecycle.ForkOptions{Message: last})
	require.NoError(t, err)
	require.NoError(t, fork.Close(context.Background()))
	require.NoError(t, store.Close(context.Background()))
}

func TestARecoveredSessionWrittenAnew(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	sess, _ := agentWorked(t, store, "auth")
	require.NoError(t, sess.Append(&session.Message{ID: "m1", Role: session.RoleUser, Content: session.Text("x")}))
	require.NoError(t, sess.Close(t.Context()))
	dropRecord(t, path(store, "sessions", sess.ID().String()), 5)
	project, err := writer.OpenFS(store.Project().Name())
	require.NoError(t, err)
	defer project.Close()
	damaged := folderOf(t, project, sess.ID())
	defer damaged.Close()
	require.NoError(t, project.Mkdir(".lopen/other", 0o700))
	other, err := project.Sub(".lopen/other")
	require.NoError(t, err)
	defer other.Close()
	err = carry.Rewrite(damaged, other, sess.ID(), carry.Rewriting{ID: sess.ID()})
	require.ErrorIs(t, err, lifecycle.ErrCorrupt)
	require.Equal(t, writer.ClassCorrupt, lifecycle.ClassOf(err))

	r, err := store.Recover(t.Context(), sess.ID().String(), "", false)
	require.NoError(t, err)
	to := r.ID
	to.Counter = 99
	rewritten(t, project, r.ID, to, carry.Rewriting{})
	sameInstants(t, project, r.ID, to)
	var note repair.Note
	dir := folderOf(t, project, to)
	defer dir.Close()
	require.NoError(t, folder.ReadSmall(dir, "recovery.json", &note))
	require.Equal(t, to.String(), note.Session)
	require.Equal(t, sess.ID().String(), note.From)
	resumeRewritten(t, project, to)
}

// small returns a store with a session that has a snapshot of each kind.
func small(t *testing.T) (*crashfs.Disk, session.ID) {
	s := newSim(t, crashfs.Ext4)
	s.initWith(lifecycle.Policy{Interval: 2})
	require.NoError(t, s.create())
	s.talks = true
	for _, bulk := range []int{1, 6000, 10, 10} {
		require.NoError(t, s.save(bulk))
		require.NoError(t, s.flush())
	}
	require.NoError(t, s.close())
	require.NoError(t, s.store.Close(t.Context()))
	return s.disk, s.id
}

// What Rewrite returned for is there after a power cut, and each call that fails fails it.
func TestRewrittenSessionsAreDurable(t *testing.T) {
	t.Parallel()
	disk, id := small(t)
	from := folderOf(t, disk.FS(), id)
	defer from.Close()
	for k := 1; ; k++ {
		to := crashfs.New(crashfs.XFS)
		n, hit := 0, ""
		to.SetHook(func(op crashfs.Op) crashfs.Fault {
			if n = max(n, op.N); op.N != k {
				return crashfs.Fault{}
			}
			hit = op.Call
			return crashfs.Fault{Err: syscall.EIO}
		})
		err := carry.Rewrite(from, to.FS(), id, carry.Rewriting{ID: id})
		to.SetHook(nil)
		if n >= k {
			require.True(t, errors.Is(err, syscall.EIO) || hit == "remove", "call %d, %s: %v", k, hit, err)
			continue
		}
		require.NoError(t, err)
		want := instants(t, from, id, id)
		for _, v := range to.Variants(nil, 0) {
			require.Equal(t, want, instants(t, to.Crash(v).FS(), id, id), v.Name)
		}
		return
	}
}

// A file that a writer removes meanwhile makes Rewrite begin again.
func TestRewriteBeginsAgain(t *testing.T) {
	t.Parallel()
	disk, id := small(t)
	from, to := folderOf(t, disk.FS(), id), crashfs.New(crashfs.Ext4)
	defer from.Close()
	for times := range folder.Tries + 1 {
		n := 0
		disk.SetHook(func(op crashfs.Op) crashfs.Fault {
			if op.Call == "open" && strings.Contains(op.Name, "history/") && writes(to) {
				if n++; n <= times {
					to.SetHook(nil)
					return crashfs.Fault{Err: syscall.ENOENT}
				}
			}
			return crashfs.Fault{}
		})
		err := carry.Rewrite(from, to.FS(), id, carry.Rewriting{ID: id})
		disk.SetHook(nil)
		if times == folder.Tries {
			require.ErrorIs(t, err, syscall.ENOENT)
			break
		}
		require.NoError(t, err, "%d times", times)
		require.Equal(t, instants(t, from, id, id), instants(t, to.FS(), id, id))
		to = crashfs.New(crashfs.Ext4)
	}
}

// writes reports whether a disk has a file.
func writes(disk *crashfs.Disk) bool {
	entries, err := disk.FS().ReadDir(".")
	return err == nil && len(entries) > 0
}

// A session is written anew while its holder saves, compresses segments and drops records.
func TestRewriteOfALiveSession(t *testing.T) {
	t.Parallel()
	s := newSim(t, crashfs.Ext4)
	s.talks = true
	s.initWith(bounded)
	require.NoError(t, s.create())
	for n := range 4 {
		saved := make(chan struct{})
		go func() {
			defer close(saved)
			for range 20 {
				if s.save(600) != nil || s.flush() != nil {
					return
				}
			}
		}()
		dir := folderOf(t, s.disk.FS(), s.id)
		to := crashfs.New(crashfs.Ext4)
		err := carry.Rewrite(dir, to.FS(), s.id, carry.Rewriting{ID: s.id, Redact: &redact.Redactor{}})
		require.NoError(t, err, "round %d", n)
		require.NotEmpty(t, instants(t, to.FS(), s.id, s.id))
		<-saved
		require.NoError(t, dir.Close())
	}
	require.NoError(t, s.close())
}

func TestPathsOfTheProject(t *testing.T) {
	t.Parallel()
	disk := crashfs.New(crashfs.Ext4)
	store, err := lifecycle.InitOn(disk.FS(), simOptions)
	require.NoError(t, err)
	sess, err := store.Create(t.Context(), "sim")
	require.NoError(t, err)
	require.NoError(t, sess.Change(session.TriggerTaskCompleted, func(e *session.Edit) error {
		h := e.Header()
		h.Settings.Command = []string{"/home/a/proj/agent", "--dir=/home/a/proj", "/home/a/project", "x/home/a/proj", "/home/a/proj"}
		h.Settings.Check = "cd '/home/a/proj' && /home/a/proj/check /home/a/proj2"
		h.Cwd = "/home/a/proj"
		return nil
	}))
	require.NoError(t, sess.Close(t.Context()))
	require.NoError(t, store.Close(t.Context()))
	for from, want := range map[string][]string{
		"/home/a/proj": {"cd '/srv/b' && /srv/b/check /home/a/proj2", "/srv/b/agent", "--dir=/srv/b", "/home/a/project", "x/home/a/proj", "/srv/b"},
		"":             {"cd '/home/a/proj' && /home/a/proj/check /home/a/proj2", "/home/a/proj/agent", "--dir=/home/a/proj", "/home/a/project", "x/home/a/proj", "/home/a/proj"},
	} {
		to := sess.ID()
		to.Counter = uint64(100 + len(from))
		rewritten(t, disk.FS(), sess.ID(), to, carry.Rewriting{Paths: [2]string{from, "/srv/b"}})
		dir := folderOf(t, disk.FS(), to)
		ld, err := folder.Load(dir, to)
		require.NoError(t, err)
		h := ld.State.Header()
		require.Equal(t, want, append([]string{h.Settings.Check}, h.Settings.Command...))
		require.Equal(t, "/home/a/proj", h.Cwd, "it is relative to the project")
		require.NoError(t, dir.Close())
	}
}

// A text that its field has no room for once it is redacted is cut.
func TestRedactedTextsFit(t *testing.T) {
	t.Parallel()
	disk := crashfs.New(crashfs.Ext4)
	store, err := lifecycle.InitOn(disk.FS(), simOptions)
	require.NoError(t, err)
	sess, err := store.Create(t.Context(), "sim")
	require.NoError(t, err)
	long := strings.Repeat("ab\"", 64<<10)
	require.NoError(t, sess.Change(session.TriggerTaskCompleted, func(e *session.Edit) error {
		e.Put(session.Task{ID: "t", Kind: session.KindTask, State: session.TaskPending, Name: long[:64<<10], LastError: long[:16<<10]})
		e.SetRoots([]string{"t"})
		e.Header().Cwd = long[:64<<10]
		e.Header().Data = []byte(`{"x":"` + strings.Repeat("ab", 10<<10) + `"}`)
		return nil
	}))
	require.NoError(t, sess.Append(&session.Message{ID: "m1", Role: session.RoleUser, Content: session.Text(strings.Repeat("ab", 500_000))}))
	require.NoError(t, sess.Close(t.Context()))
	require.NoError(t, store.Close(t.Context()))
	r, err := redact.New([]string{"a"})
	require.NoError(t, err)
	to := sess.ID()
	to.Counter = 99
	rewritten(t, disk.FS(), sess.ID(), to, carry.Rewriting{Redact: r})
	dir := folderOf(t, disk.FS(), to)
	defer dir.Close()
	ld, err := folder.Load(dir, to)
	require.NoError(t, err)
	task, _ := ld.State.Task("t")
	require.True(t, strings.HasPrefix(task.LastError, `[redacted:custom]b"[redacted:custom]b"`))
	require.NotContains(t, strings.ReplaceAll(task.Name+task.LastError, "[redacted:custom]", ""), "a[")
	require.Equal(t, "{}", string(ld.State.Header().Data))
	messages := appendedIn(t, dir, to, false)
	require.Len(t, messages, 1)
	require.Equal(t, "m1", messages[0].Message.ID)
	require.Less(t, len(messages[0].Object), 1000)
}

// What cannot be loaded once it is redacted is refused.
func TestRewriteThatCannotBeLoaded(t *testing.T) {
	t.Parallel()
	disk := crashfs.New(crashfs.Ext4)
	store, err := lifecycle.InitOn(disk.FS(), simOptions)
	require.NoError(t, err)
	sess, err := store.Create(t.Context(), "sim")
	require.NoError(t, err)
	a := record.Attempt{Task: "t", StartedAt: day, EndedAt: day, Then: record.Failed, Command: []string{strings.Repeat("Xb", 80<<10)}}
	require.NoError(t, sess.Record(a))
	require.NoError(t, sess.Close(t.Context()))
	require.NoError(t, store.Close(t.Context()))
	r, err := redact.New([]string{"X"})
	require.NoError(t, err)
	dir := folderOf(t, disk.FS(), sess.ID())
	defer dir.Close()
	err = carry.Rewrite(dir, crashfs.New(crashfs.Ext4).FS(), sess.ID(), carry.Rewriting{ID: sess.ID(), Redact: r})
	require.ErrorIs(t, err, lifecycle.ErrCorrupt)
	require.ErrorContains(t, err, "attempt of more than")
}
