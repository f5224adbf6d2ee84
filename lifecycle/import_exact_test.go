package lifecycle_test

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/carry"
	"github.com/lopen-dev/lopen/lifecycle/folder"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer/crashfs"
)

// continued is a session as a store has it, and as it is after it was continued in another one.
func continued(t *testing.T, here *lifecycle.Store) (id session.ID, less, more *loaded, lines []string) {
	t.Helper()
	sess, _ := agentWorked(t, here, "auth")
	require.NoError(t, sess.Close(t.Context()))
	id = sess.ID()
	less = gather(t, here, id)
	there := initStore(t)
	_, err := there.Import(t.Context(), carry.Exact{Source: less.again(nil)})
	require.NoError(t, err)
	sess, err = there.Open(id)
	require.NoError(t, err)
	require.NoError(t, sess.Append(&session.Message{ID: "there", Role: session.RoleUser, Content: session.Text("hello")}))
	require.NoError(t, sess.Change(session.TriggerTaskCompleted, turns(77)))
	require.NoError(t, sess.Close(t.Context()))
	return id, less, gather(t, there, id), logOf(t, there, id)
}

// The log of a session that is continued stays byte for byte, and what is appended to it continues it.
func TestImportExact(t *testing.T) {
	t.Parallel()
	here := initStore(t)
	id, less, more, lines := continued(t, here)
	first := logOf(t, here, id)
	require.Equal(t, first, lines[:len(first)])

	for name, c := range map[string]struct {
		from *loaded
		over bool
		had  bool // the store has an older copy
		as   bool // it gets its own ID
		want []string
	}{
		"into an empty store":       {more, false, false, true, lines},
		"into an empty one, over":   {more, true, false, true, lines},
		"over an older copy":        {more, true, true, true, lines},
		"over a newer copy":         {less, true, true, true, first},
		"beside an older copy":      {more, false, true, false, nil},
		"beside a copy that is new": {less, false, true, true, first},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := initStore(t)
			if c.had {
				_, err := store.Import(t.Context(), carry.Exact{Source: less.again(nil)})
				require.NoError(t, err)
				require.Equal(t, first, logOf(t, store, id))
			}
			r, err := store.Import(t.Context(), carry.Exact{Source: c.from.again(nil), Over: c.over})
			require.NoError(t, err)
			got, err := session.ParseID(r.Sessions[0].ID)
			require.NoError(t, err)
			require.Equal(t, c.as, got == id)
			requireIntact(t, store, id, got)
			if c.as {
				require.Equal(t, c.want, logOf(t, store, id))
			} else {
				require.Equal(t, first, logOf(t, store, id))
			}
			for _, name := range visible(t, store) {
				require.NotContains(t, name, ".import-")
				require.NotContains(t, name, "replaced")
			}
			sess, err := store.Open(id)
			require.NoError(t, err)
			require.NoError(t, sess.Change(session.TriggerTaskCompleted, turns(99)))
			require.NoError(t, sess.Close(t.Context()))
			now := logOf(t, store, id)
			if c.as {
				require.Equal(t, c.want, now[:len(c.want)])
				require.Greater(t, len(now), len(c.want))
			}
			require.NotEqual(t, id, made(t, store, "auth"), "its ID is not given again")
		})
	}
}

// A session that somebody has open does not make way.
func TestImportOverABusySession(t *testing.T) {
	t.Parallel()
	here := initStore(t)
	id, _, more, _ := continued(t, here)
	sess, err := here.Open(id)
	require.NoError(t, err)
	before := visible(t, here)
	_, err = here.Import(t.Context(), carry.Exact{Source: more.again(nil), Over: true})
	require.ErrorIs(t, err, lifecycle.ErrBusy)
	require.Equal(t, before, visible(t, here))
	require.NoError(t, sess.Change(session.TriggerTaskCompleted, turns(5)))
	require.NoError(t, sess.Close(t.Context()))
	requireIntact(t, here, id)
}

// onDisk is a store on a simulated disk that has a session, and what continues it.
func onDisk(t *testing.T) (disk *crashfs.Disk, store *lifecycle.Store, id session.ID, more *loaded, old, lines []string) {
	t.Helper()
	disk = crashfs.New(crashfs.Ext4)
	store, err := lifecycle.InitOn(disk.FS(), simOptions)
	require.NoError(t, err)
	id, _, more, lines = continued(t, store)
	return disk, store, id, more, logOf(t, store, id), lines
}

// TestImportOverOnABadDisk fails each call: the old session is there, or the new one is.
func TestImportOverOnABadDisk(t *testing.T) {
	t.Parallel()
	base, _, id, more, old, lines := onDisk(t)
	after, before := 0, 0
	for k, ended := uint64(1), false; !ended; k++ {
		disk := base.Snapshot()
		store, err := lifecycle.OpenOn(disk.FS(), simOptions)
		require.NoError(t, err)
		call, n := "", uint64(0)
		disk.SetHook(serial(func(op crashfs.Op) crashfs.Fault {
			if op.N == 0 || op.Call == "remove" || op.Call == "removeall" {
				return crashfs.Fault{}
			}
			if n++; n == k {
				call = op.Call + " " + op.Name
				return crashfs.Fault{Err: syscall.EIO}
			}
			return crashfs.Fault{}
		}))
		_, err = store.Import(t.Context(), carry.Exact{Source: more.again(nil), Over: true})
		disk.SetHook(nil)
		ended = call == ""
		requireIntact(t, store, id)
		switch got := logOf(t, store, id); {
		case len(got) == len(lines):
			after++
			require.Equal(t, lines, got)
		default:
			before++
			require.Equal(t, old, got, "%s: %v", call, err)
			require.Error(t, err)
		}
		for _, name := range visible(t, store) {
			require.NotContains(t, name, "replaced", call)
		}
		require.NoError(t, store.Close(t.Context()))
	}
	require.NotZero(t, after)
	require.NotZero(t, before)
}

// TestPowerCutWhileImportingOver cuts the power at every call: the old session is there, or the new one, each
// whole. Between the two renames there may be neither, and the import is made again.
func TestPowerCutWhileImportingOver(t *testing.T) {
	t.Parallel()
	disk, store, id, more, old, lines := onDisk(t)
	var points []*crashfs.Disk
	renames := 0
	var moved int
	disk.SetHook(serial(func(op crashfs.Op) crashfs.Fault {
		if op.N > 0 {
			points = append(points, disk.Snapshot())
		}
		if op.Call == "rename" && strings.HasSuffix(op.Name, "replaced/"+id.String()) {
			moved = len(points)
		}
		if op.Call == "rename" && op.Name == lifecycle.Dir+"/"+folder.Path(id) {
			renames++
		}
		return crashfs.Fault{}
	}))
	_, err := store.Import(t.Context(), carry.Exact{Source: more.again(nil), Over: true})
	require.NoError(t, err)
	disk.SetHook(nil)
	points = append(points, disk.Snapshot())
	require.NoError(t, store.Close(t.Context()))
	require.Equal(t, 1, renames)
	require.NotZero(t, moved)
	neither, was, is := 0, 0, 0
	for i, p := range points {
		near := i >= moved-2 && i <= moved+8 || i == len(points)-1
		if !*deep && !near && i%7 != 0 {
			continue
		}
		for k, v := range outcomes(p, i) {
			if !*deep && !near && k%3 != 0 {
				continue
			}
			crashStates.Add(1)
			after, err := lifecycle.OpenOn(p.Crash(v).FS(), simOptions)
			require.NoError(t, err)
			_, _, err = after.Read(id)
			switch {
			case errors.Is(err, lifecycle.ErrNotFound):
				neither++
				require.GreaterOrEqual(t, i, moved-1, v.Name)
				require.Less(t, i, len(points)-1, "it was acknowledged: %s", v.Name)
			case err != nil:
				require.NoError(t, err)
			default:
				requireIntact(t, after, id)
				got := logOf(t, after, id)
				if len(got) == len(lines) {
					is++
					require.Equal(t, lines, got)
				} else {
					was++
					require.Equal(t, old, got)
					require.Less(t, i, len(points)-1, "it was acknowledged: %s", v.Name)
				}
			}
			_, err = after.Import(t.Context(), carry.Exact{Source: more.again(nil), Over: true})
			require.NoError(t, err, v.Name)
			requireIntact(t, after, id)
			require.Equal(t, lines, logOf(t, after, id))
			for _, name := range visible(t, after) {
				require.NotContains(t, name, ".import-")
			}
			require.NoError(t, after.Close(t.Context()))
		}
	}
	t.Logf("the old one %d times, the new one %d times, neither %d times", was, is, neither)
	require.NotZero(t, was)
	require.NotZero(t, is)
}
