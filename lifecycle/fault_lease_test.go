package lifecycle_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/crashfs"
)

// The session is taken over between the acknowledgement of a record and its
// publication. What the old holder published then would overwrite what the next one
// shows.
func TestFault25LeaseLostBeforeAPublication(t *testing.T) {
	t.Parallel()
	b := newBed(t, crashfs.Ext4)
	synced, confirmed := false, false
	var shown []byte
	read := func() []byte {
		dir, err := b.disk.FS().Sub(".lopen/sessions/" + b.id.String())
		require.NoError(t, err)
		data, err := writer.ReadFile(dir, "state.json", 1<<20)
		require.NoError(t, err)
		return data
	}
	var taken *lifecycle.Session
	b.disk.SetHook(serial(func(op crashfs.Op) crashfs.Fault {
		switch {
		case taken != nil:
		case op.Call == "datasync":
			synced = true
		case synced && !confirmed:
			confirmed = strings.HasSuffix(op.Name, "/.lock") // the look after the sync
		case confirmed: // whatever comes next
			taken = b.succeed(t)
			require.NoError(t, taken.Change(session.TriggerPaused, turns(77)))
			require.NoError(t, taken.Flush(t.Context()))
			shown = read()
		}
		return crashfs.Fault{}
	}))
	accepted(t, b.save(10))
	err := b.flush()
	require.Equal(t, "fenced", lifecycle.ClassOf(err).String(), "%v", err)
	require.NotNil(t, taken)
	require.Equal(t, string(shown), string(read()), "nothing was written")
	require.NoError(t, taken.Close(t.Context()))
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
