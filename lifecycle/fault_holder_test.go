package lifecycle_test

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/repair"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
	"github.com/lopen-dev/lopen/writer/crashfs"
)

func TestFault01KilledAtAnyCall(t *testing.T) {
	t.Parallel()
	for kill := 1; ; kill++ {
		b := newBed(t, crashfs.Ext4)
		n, dead := 0, false
		b.watch(serial(func(crashfs.Op) crashfs.Fault {
			if n++; n < kill {
				return crashfs.Fault{}
			}
			dead = true
			return crashfs.Fault{Err: errors.New("killed")}
		}))
		for range 3 {
			_ = b.save(700)
			_ = b.flush()
		}
		b.kill()
		require.NoError(t, b.reopen(), "killed at call %d", kill) // which requires what was acknowledged
		require.NoError(t, b.save(10))
		require.NoError(t, b.close())
		if !dead {
			return
		}
	}
}

// stuck blocks every fdatasync on a bed's disk until release is called.
func (b *bed) stuck() (entered <-chan struct{}, release func()) {
	in, out := make(chan struct{}, 100), make(chan struct{})
	b.watch(func(op crashfs.Op) crashfs.Fault {
		if op.Call == "datasync" {
			in <- struct{}{}
			<-out
		}
		return crashfs.Fault{}
	})
	return in, sync.OnceFunc(func() { close(out) })
}

func TestFault20FsyncHangs(t *testing.T) {
	t.Parallel()
	b := newBed(t, crashfs.Ext4)
	entered, release := b.stuck()
	defer release()
	require.NoError(t, b.save(10))
	<-entered
	for range 5000 { // far beyond the mailbox: were one of them to wait, the test would hang
		require.NoError(t, b.sess.Save(nil, session.TriggerStepCompleted))
	}
	require.NoError(t, b.save(10))
	over, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("the deadline"))
	err := b.sess.Close(over)
	require.ErrorContains(t, err, "the newest state is not durable")
	require.ErrorContains(t, err, "the deadline")
	_, err = b.store.Open(b.id)
	require.ErrorIs(t, err, lifecycle.ErrBusy, "the lease is kept while the call is stuck")
	release()
	<-b.sess.Done()
	b.acked.state = 3
	b.survives(t)
}

func TestFault21MailboxFull(t *testing.T) {
	t.Parallel()
	b := newBed(t, crashfs.Ext4)
	entered, release := b.stuck()
	defer release()
	require.NoError(t, b.save(10))
	<-entered
	const many = 10_000
	for range many {
		require.NoError(t, b.sess.Save(nil, session.TriggerTaskFailed))
	}
	require.NoError(t, b.save(10))
	release()
	require.NoError(t, b.sync())
	require.Equal(t, 3, b.found(t), "the newest state is never dropped")
	var records []record.Record
	require.NoError(t, b.store.Log(b.id, 0, func(r record.Record) error {
		records = append(records, r)
		return nil
	}))
	last := records[len(records)-1]
	require.EqualValues(t, many, last.Triggers[session.TriggerTaskFailed], "every trigger is counted")
	require.EqualValues(t, 4, last.Seq, "in exactly one more commit")
	require.NoError(t, b.close())
}

func TestFault22EverythingAtOnce(t *testing.T) {
	t.Parallel()
	for range 20 {
		b := newBed(t, crashfs.Ext4)
		var wg sync.WaitGroup
		var mu sync.Mutex
		acked := 0
		for range 4 {
			wg.Go(func() {
				for range 10 {
					mine := 0
					_ = b.sess.Change(session.TriggerStepCompleted, func(e *session.Edit) error {
						e.Header().TurnCount++
						mine = e.Header().TurnCount
						return nil
					})
					ctx, cancel := context.WithCancel(t.Context())
					go cancel()
					if b.sess.Flush(ctx) == nil && b.sess.Sync(t.Context()) == nil {
						mu.Lock()
						acked = max(acked, mine)
						mu.Unlock()
					}
				}
			})
		}
		wg.Go(func() { _ = b.sess.Close(t.Context()) })
		wg.Wait()
		require.NoError(t, b.sess.Close(t.Context()))
		store, err := lifecycle.OpenOn(b.disk.Crash(crashfs.Variant{}).FS(), simOptions)
		require.NoError(t, err)
		st, _, err := store.Read(b.id)
		require.NoError(t, err)
		require.GreaterOrEqual(t, st.Header().TurnCount, acked)
		require.NoError(t, store.Close(t.Context()))
	}
}

func TestFault23TwoProcesses(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	p := start(t, "hold", filepath.Dir(store.Path()))
	id, err := session.ParseID(p.line(t))
	require.NoError(t, err)
	_, err = store.Open(id)
	var busy *lifecycle.BusyError
	require.ErrorAs(t, err, &busy)
	require.Equal(t, p.Process.Pid, busy.Owner.PID)
	require.ErrorContains(t, err, "lopen run auth")
	st, _, err := store.Read(id)
	require.NoError(t, err, "reading needs no lease")
	require.Equal(t, 20, st.Header().TurnCount)
}

// The record of the killed holder names a process that lives: this one.
func TestFault24HolderKilledPIDReused(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	p := start(t, "hold", filepath.Dir(store.Path()))
	id, err := session.ParseID(p.line(t))
	require.NoError(t, err)
	lock := path(store, "sessions", id.String(), ".lock")
	var owner map[string]any
	data, err := os.ReadFile(lock)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &owner))
	owner["pid"] = os.Getpid()
	data, err = json.Marshal(owner)
	require.NoError(t, err)
	write(t, lock, string(data))
	_, err = store.Open(id)
	require.ErrorIs(t, err, lifecycle.ErrBusy)
	require.NoError(t, p.Process.Kill())
	_ = p.Wait()
	sess, err := store.Open(id)
	require.NoError(t, err, "at once, whatever the record says")
	require.Equal(t, 20, sess.State().Header().TurnCount)
	require.Equal(t, session.ExitCrashed, sess.State().Header().ExitReason)
}

func TestFault25LockRemovedOrReplaced(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(t *testing.T, lock string){
		"removed": func(t *testing.T, lock string) { require.NoError(t, os.Remove(lock)) },
		"replaced": func(t *testing.T, lock string) {
			require.NoError(t, os.Rename(lock, lock+".old"))
			write(t, lock, "")
		},
		"a symlink": func(t *testing.T, lock string) {
			require.NoError(t, os.Rename(lock, lock+".old"))
			require.NoError(t, os.Symlink(".lock.old", lock))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := initStore(t)
			sess := create(t, store, "auth")
			dir := path(store, "sessions", sess.ID().String())
			before := tree(t, dir)
			spoil(t, filepath.Join(dir, ".lock"))
			accepted(t, sess.Save(nil, session.TriggerStepCompleted))
			err := sess.Sync(t.Context())
			require.Error(t, err, "before anything is acknowledged")
			require.Equal(t, "fenced", lifecycle.ClassOf(err).String())
			require.ErrorContains(t, err, filepath.Join(dir, ".lock"))
			require.Equal(t, before, tree(t, dir), "nothing was written")
			if name == "a symlink" {
				require.Error(t, sess.Unpause(t.Context()))
				require.Equal(t, before, tree(t, dir), "nothing was written")
				return
			}
			require.NoError(t, sess.Unpause(t.Context()), "nobody had gone on")
			_, err = storeIn(t, filepath.Dir(store.Path())).Open(sess.ID())
			require.ErrorIs(t, err, lifecycle.ErrBusy, "it is held again")
			require.NoError(t, sess.Change(session.TriggerStepCompleted, turns(7)))
			require.NoError(t, sess.Close(t.Context()))
			r, err := store.Verify(sess.ID())
			require.NoError(t, err)
			require.Equal(t, repair.Intact, r.Condition)
			st, _, err := store.Read(sess.ID())
			require.NoError(t, err)
			require.Equal(t, 7, st.Header().TurnCount)
		})
	}
}

// takeOver has another process take the bed's session over, whose lock file vanished,
// at the first call that match picks, before that call is carried out. then is what
// the successor does with it. taken is its session afterwards.
func (b *bed) takeOver(t *testing.T, match func(crashfs.Op) bool, then func(*lifecycle.Session)) (taken **lifecycle.Session) {
	taken = new(*lifecycle.Session)
	b.watch(serial(func(op crashfs.Op) crashfs.Fault {
		if *taken != nil || !match(op) {
			return crashfs.Fault{}
		}
		*taken = b.succeed(t)
		then(*taken)
		return crashfs.Fault{}
	}))
	return taken
}

// succeed opens the bed's session, whose lock file vanished, as another process.
func (b *bed) succeed(t *testing.T) *lifecycle.Session {
	b.disk.SetHook(nil)
	root, err := b.disk.FS().Sub(".lopen/sessions/" + b.id.String())
	require.NoError(t, err)
	require.NoError(t, root.Rename(".lock", ".lock.stolen"))
	store, err := lifecycle.OpenOn(b.disk.FS(), simOptions)
	require.NoError(t, err)
	store.Shrink(4<<10, 8<<10)
	taken, err := store.Open(b.id)
	require.NoError(t, err)
	return taken
}

// A writer has looked at its lease and stands before its write, or before the sync
// that follows, when another one takes the session over. What it writes is void by the
// new epoch: it is not acknowledged, and the writer does not get to write again.
func TestFault26WriterThatLostItsLockCommits(t *testing.T) {
	t.Parallel()
	for _, call := range []string{"write", "datasync"} {
		b := newBed(t, crashfs.Ext4)
		taken := b.takeOver(t, named(call, "journal-1-1.jsonl"), func(s *lifecycle.Session) {
			require.NoError(t, s.Change(session.TriggerPaused, turns(77)))
			require.NoError(t, s.Flush(t.Context()))
		})
		// Sync makes the commit itself, so that nothing but the commit can refuse.
		require.NoError(t, b.sess.Update(func(st *session.State) (*session.State, error) {
			e := st.Edit()
			e.Header().TurnCount = 55
			return e.State()
		}))
		err := b.sess.Sync(t.Context())
		require.Equal(t, "fenced", lifecycle.ClassOf(err).String(), "%s: %v", call, err)
		_ = b.sess.Save(nil, session.TriggerPaused)
		require.Equal(t, "fenced", lifecycle.ClassOf(b.sess.Unpause(t.Context())).String(), call)
		require.NoError(t, (*taken).Change(session.TriggerPaused, turns(78)))
		require.NoError(t, (*taken).Flush(t.Context()))
		for _, disk := range []*crashfs.Disk{b.disk, b.disk.Crash(crashfs.Variant{})} {
			store, err := lifecycle.OpenOn(disk.FS(), simOptions)
			require.NoError(t, err)
			st, _, err := store.Read(b.id)
			require.NoError(t, err)
			require.Equal(t, 78, st.Header().TurnCount)
			r, err := store.Verify(b.id)
			require.NoError(t, err)
			require.Equal(t, repair.Intact, r.Condition)
		}
	}
}

// The same happens while the writer makes the whole State durable that its record is to
// name. This State does not replace the one that its successor's record of that number
// names.
func TestFault40SnapshotOfAWriterThatLostItsLock(t *testing.T) {
	t.Parallel()
	for _, call := range []string{"create", "write", "rename"} {
		b := newBed(t, crashfs.Ext4)
		taken := b.takeOver(t, named(call, "/history/"), func(s *lifecycle.Session) {
			for s.State().Header().TurnCount < 3 { // up to the number that the writer's record would have, and beyond
				require.NoError(t, s.Change(session.TriggerPaused, bulky(s.State().Header().TurnCount+1)))
				require.NoError(t, s.Sync(t.Context()))
			}
		})
		accepted(t, b.save(6<<10))
		err := b.sync()
		require.Equal(t, "fenced", lifecycle.ClassOf(err).String(), "%s: %v", call, err)
		require.NoError(t, (*taken).Change(session.TriggerPaused, turns(78)))
		require.NoError(t, (*taken).Flush(t.Context()))
		for _, disk := range []*crashfs.Disk{b.disk, b.disk.Crash(crashfs.Variant{})} {
			store, err := lifecycle.OpenOn(disk.FS(), simOptions)
			require.NoError(t, err)
			st, last, err := store.Read(b.id)
			require.NoError(t, err)
			require.Equal(t, 78, st.Header().TurnCount)
			for seq := uint64(3); seq < last; seq++ {
				_, err := store.ReadAt(b.id, seq)
				require.NoError(t, err, "record %d", seq)
			}
			r, err := store.Verify(b.id)
			require.NoError(t, err)
			require.Equal(t, repair.Intact, r.Condition, "%v", r.Faults)
		}
	}
}

// A whole State was written and its record was not; a smaller change took the number.
func TestFault35SnapshotOfARecordThatFailed(t *testing.T) {
	t.Parallel()
	b := newBed(t, crashfs.Ext4)
	b.fail(named("write", "journal-"), errnoOf(syscall.ENOSPC))
	accepted(t, b.sess.Change(session.TriggerStepCompleted, bulky(66)))
	pausedBy(t, b.sess.Sync(t.Context()), lifecycle.ClassNoSpace, syscall.ENOSPC)
	b.fail(nil)
	accepted(t, b.sess.Change(session.TriggerStepCompleted, func(e *session.Edit) error {
		e.Header().TurnCount, e.Header().Data = 67, nil // what was to be large is gone
		return nil
	}))
	require.NoError(t, b.sess.Unpause(t.Context()))
	require.NoError(t, b.sess.Change(session.TriggerStepCompleted, turns(68)))
	require.NoError(t, b.sess.Flush(t.Context()))
	st, err := b.store.ReadAt(b.id, 3)
	require.NoError(t, err)
	require.Equal(t, 67, st.Header().TurnCount)
	require.NoError(t, b.close())
	state, err := b.disk.FS().Sub(".lopen/sessions/" + b.id.String())
	require.NoError(t, err)
	require.NoError(t, state.Remove("state.json"))
	r, err := b.store.Recover(t.Context(), b.id.String(), "", true)
	require.NoError(t, err)
	require.Equal(t, 68, r.State().Header().TurnCount)
	require.NotContains(t, r.Base, "1-3.json.zst")
}

func TestFault32RemovedWhileRunning(t *testing.T) {
	t.Parallel()
	for name, what := range map[string]string{"the session": "sessions/auth-20260214-1", "all sessions": "sessions", "the store": "."} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := initStore(t)
			sess := create(t, store, "auth")
			require.NoError(t, sess.Change(session.TriggerStepCompleted, turns(1)))
			require.NoError(t, sess.Flush(t.Context())) // or a publication races with the removal
			require.NoError(t, os.RemoveAll(path(store, what)))

			accepted(t, sess.Change(session.TriggerStepCompleted, turns(2)))
			err := sess.Sync(t.Context())
			require.Error(t, err, "before anything is acknowledged")
			require.Equal(t, lifecycle.ClassRemoved, lifecycle.ClassOf(err), "%v", err)
			require.ErrorContains(t, err, sess.ID().String())
			raised := <-sess.Critical()
			require.Equal(t, lifecycle.ClassRemoved, lifecycle.ClassOf(raised))
			_, err = os.Stat(path(store, "sessions", sess.ID().String()))
			require.ErrorIs(t, err, fs.ErrNotExist)

			require.NoError(t, sess.Unpause(t.Context()))
			require.NoError(t, sess.Change(session.TriggerStepCompleted, turns(3)))
			require.NoError(t, sess.Flush(t.Context()))
			other, err := lifecycle.Open(filepath.Dir(store.Path()), lifecycle.Options{Now: clock()})
			require.NoError(t, err)
			st, _, err := other.Read(sess.ID())
			require.NoError(t, err)
			require.Equal(t, 3, st.Header().TurnCount)
			_, err = other.Open(sess.ID())
			require.ErrorIs(t, err, lifecycle.ErrBusy, "the lease was made again, too")
			next := made(t, other, "auth")
			require.EqualValues(t, 2, next.Counter, "the ID is not given again")
			require.NoError(t, sess.Close(t.Context()))
			again, err := other.Open(sess.ID())
			require.NoError(t, err)
			require.Equal(t, 3, again.State().Header().TurnCount)
			require.NoError(t, other.Close(t.Context()))
		})
	}
}

// The folder vanishes while the readable files are replaced, during the commits.
func TestFault32RemovedWhilePublishing(t *testing.T) {
	t.Parallel()
	for _, call := range []string{"create", "rename", "syncdir"} {
		b := newBed(t, crashfs.Ext4)
		var done atomic.Bool
		b.watch(func(op crashfs.Op) crashfs.Fault {
			if op.Call == call && !done.Swap(true) {
				require.NoError(t, b.disk.FS().RemoveAll(".lopen/sessions"))
			}
			return crashfs.Fault{}
		})
		accepted(t, b.save(10))
		err := b.flush()
		require.Equal(t, lifecycle.ClassRemoved, lifecycle.ClassOf(err), "%s: %v", call, err)
		b.watch(nil)
		require.NoError(t, b.unpause(), call)
		require.Equal(t, 2, b.acked.state)
		require.NoError(t, b.close())
		store, err := lifecycle.OpenOn(b.disk.Crash(crashfs.Variant{}).FS(), simOptions)
		require.NoError(t, err)
		st, _, err := store.Read(b.id)
		require.NoError(t, err)
		require.Equal(t, image(b.states[2]), image(st))
	}
}

// Somebody removed a part of the session's folder, with lock and journal. The rest is
// quarantined, and Unpause makes the session again.
func TestFault32RemovedInPart(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	sess := create(t, store, "auth")
	require.NoError(t, sess.Change(session.TriggerStepCompleted, turns(1)))
	require.NoError(t, sess.Flush(t.Context()))
	dir := path(store, "sessions", sess.ID().String())
	for _, name := range []string{".lock", "journal-1-1.jsonl", "metrics.json"} {
		require.NoError(t, os.Remove(filepath.Join(dir, name)))
	}
	accepted(t, sess.Change(session.TriggerStepCompleted, turns(2)))
	require.Equal(t, lifecycle.ClassRemoved, lifecycle.ClassOf(sess.Sync(t.Context())))
	require.NoError(t, sess.Unpause(t.Context()))
	require.NoError(t, sess.Close(t.Context()))
	st, _, err := store.Read(sess.ID())
	require.NoError(t, err)
	require.Equal(t, 2, st.Header().TurnCount)
	left, err := filepath.Glob(path(store, "corrupted", sess.ID().String()+"-*Z", "state.json"))
	require.NoError(t, err)
	require.Len(t, left, 1, "what was left is moved aside")
}
