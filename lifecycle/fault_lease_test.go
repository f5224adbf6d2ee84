package lifecycle_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer/crashfs"
)

// The lease is lost while the readable files lag behind the journal. What is
// published from then on would overwrite what the next holder shows.
func TestFault25LockReplacedBeforeAPublication(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	sess := create(t, store, "auth")
	require.NoError(t, sess.Change(session.TriggerStepCompleted, func(e *session.Edit) error {
		e.Header().Data = []byte(`{"x":"` + strings.Repeat("x", 1<<20-8) + `"}`)
		return nil
	}))
	require.NoError(t, sess.Flush(t.Context()))
	require.NoError(t, sess.Change(session.TriggerStepCompleted, turns(2)))
	require.NoError(t, sess.Sync(t.Context()))
	dir := path(store, "sessions", sess.ID().String())
	lock := filepath.Join(dir, ".lock")
	require.NoError(t, os.Rename(lock, lock+".stolen"))
	other, err := lifecycle.Open(filepath.Dir(store.Path()), lifecycle.Options{Now: clock()})
	require.NoError(t, err)
	defer other.Close(t.Context())
	taken, err := other.Open(sess.ID())
	require.NoError(t, err)
	require.Equal(t, 2, taken.State().Header().TurnCount, "what was acknowledged")
	require.NoError(t, taken.Change(session.TriggerStepCompleted, turns(77)))
	require.NoError(t, taken.Flush(t.Context()))
	before := tree(t, dir)
	require.Equal(t, "fenced", lifecycle.ClassOf(sess.Flush(t.Context())).String())
	require.Equal(t, before, tree(t, dir), "nothing was written")
}

// The lock file is replaced between the moment in which an opener opens it and the
// one in which it has the flock: what it holds then keeps nobody out.
func TestFault25LockReplacedWhileItIsTaken(t *testing.T) {
	t.Parallel()
	b := newBed(t, crashfs.Ext4)
	require.NoError(t, b.close())
	replaced, locked := false, false
	b.disk.SetHook(func(op crashfs.Op) crashfs.Fault {
		if !strings.HasSuffix(op.Name, b.id.String()+"/.lock") || replaced {
			return crashfs.Fault{}
		}
		if locked { // the first look at the name since
			replaced = true
			dir, err := b.disk.FS().Sub(".lopen/sessions/" + b.id.String())
			require.NoError(t, err)
			require.NoError(t, dir.Rename(".lock", ".lock.old"))
			f, err := dir.OpenFile(".lock", os.O_CREATE|os.O_RDWR, 0o600)
			require.NoError(t, err)
			require.NoError(t, f.Close())
		}
		locked = op.Call == "lock"
		return crashfs.Fault{}
	})
	sess, err := b.store.Open(b.id)
	require.NoError(t, err)
	require.True(t, replaced, "or this test proves nothing")
	b.disk.SetHook(nil)
	other, err := lifecycle.OpenOn(b.disk.FS(), simOptions)
	require.NoError(t, err)
	_, err = other.Open(b.id)
	require.ErrorIs(t, err, lifecycle.ErrBusy, "two hold one session")
	require.NoError(t, sess.Change(session.TriggerPaused, turns(5)))
	require.NoError(t, sess.Close(t.Context()))
}
