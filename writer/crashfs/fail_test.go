package crashfs

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFailedSync(t *testing.T) {
	for _, call := range []string{"sync", "datasync"} {
		for _, mode := range []Mode{Ext4, XFS} {
			t.Run(call+" "+mode.String(), func(t *testing.T) {
				d := New(mode)
				putSynced(t, d.FS(), "a", "old")
				f := open(t, d.FS(), "a", os.O_RDWR)
				sync := f.Sync
				if call == "datasync" {
					sync = f.Datasync
				}
				_, err := f.WriteAt([]byte("NEW!"), 0)
				require.NoError(t, err)
				d.SetHook(failCall(call, syscall.EIO))
				require.ErrorIs(t, sync(), syscall.EIO)
				d.SetHook(nil)
				require.NoError(t, sync(), "the second one says that all is well")
				if mode == XFS {
					require.Equal(t, "old", read(t, d.FS(), "a"))
					require.Equal(t, map[string]string{"old": "nothing unsynced"}, outcomes(t, d, "a", 50))
					return
				}
				require.Equal(t, "NEW!", read(t, d.FS(), "a"))
				require.Equal(t, "old", read(t, nothing(d).FS(), "a"))
				found := outcomes(t, d, "a", 0)
				require.Equal(t, map[string]string{"old": "nothing unsynced", "NEW!": "all"}, found)

				// Only what is written again becomes durable.
				_, err = f.WriteAt([]byte("x"), 1)
				require.NoError(t, err)
				require.NoError(t, sync())
				require.Equal(t, "NxW!", read(t, d.FS(), "a"))
				require.Equal(t, "oxd", read(t, nothing(d).FS(), "a"))
				require.Equal(t, "NxW!", read(t, all(t, d).FS(), "a"))
				_, err = f.WriteAt([]byte("NEW!"), 0)
				require.NoError(t, err)
				require.NoError(t, sync())
				require.Equal(t, map[string]string{"NEW!": "nothing unsynced"}, outcomes(t, d, "a", 50))
			})
		}
	}
}

func TestFailedSyncOfNewFile(t *testing.T) {
	d := New(Ext4)
	putFile(t, d.FS(), "a", "data")
	f := open(t, d.FS(), "a", os.O_WRONLY)
	d.SetHook(failCall("sync", syscall.EIO))
	require.Error(t, f.Sync())
	d.SetHook(nil)
	require.NoError(t, f.Sync())
	require.NoError(t, d.FS().SyncDir("."))
	require.Equal(t, "", read(t, nothing(d).FS(), "a"))
	_, err := f.WriteAt([]byte("+"), 6)
	require.NoError(t, err)
	require.NoError(t, f.Sync())
	require.Equal(t, "\x00\x00\x00\x00\x00\x00+", read(t, nothing(d).FS(), "a"), "a hole")

	x := New(XFS)
	putFile(t, x.FS(), "a", "data")
	f = open(t, x.FS(), "a", os.O_WRONLY)
	x.SetHook(failCall("sync", syscall.EIO))
	require.Error(t, f.Sync())
	require.Equal(t, "", read(t, x.FS(), "a"))
}

// A truncation is metadata: a later sync writes it, and not the data that was lost
// after it.
func TestFailedSyncAfterTruncate(t *testing.T) {
	d := New(Ext4)
	putSynced(t, d.FS(), "a", "older")
	putFile(t, d.FS(), "a", "new")
	f := open(t, d.FS(), "a", os.O_WRONLY)
	d.SetHook(failCall("sync", syscall.EIO))
	require.Error(t, f.Sync())
	require.Equal(t, "older", read(t, nothing(d).FS(), "a"))
	d.SetHook(nil)
	require.NoError(t, f.Sync())
	require.Equal(t, "", read(t, nothing(d).FS(), "a"))
	require.Equal(t, "new", read(t, all(t, d).FS(), "a"))
	require.NoError(t, open(t, d.FS(), "a", os.O_WRONLY|os.O_TRUNC).Sync())
	require.Equal(t, map[string]string{"": "nothing unsynced"}, outcomes(t, d, "a", 20))
}

func TestFailedSyncDir(t *testing.T) {
	d := New(Ext4)
	dir := d.FS()
	putSynced(t, dir, "old", "")
	putFile(t, dir, "a", "")
	d.SetHook(failCall("syncdir", syscall.EIO))
	require.ErrorIs(t, dir.SyncDir("."), syscall.EIO)
	d.SetHook(nil)
	require.NoError(t, dir.SyncDir("."))
	require.Equal(t, []string{"a", "old"}, names(t, dir, "."))
	require.Equal(t, []string{"old"}, names(t, nothing(d).FS(), "."), "the second sync does nothing")
	require.NoError(t, dir.Remove("old"))
	require.NoError(t, dir.SyncDir("."))
	require.Equal(t, []string{"a"}, names(t, nothing(d).FS(), "."), "a change makes all of the folder pending again")
}

// Two folders share a rename that a failed sync of one lost.
func TestFailedSyncDirOfSharedRename(t *testing.T) {
	d := New(XFS)
	dir := d.FS()
	require.NoError(t, dir.Mkdir("x", 0o700))
	require.NoError(t, dir.Mkdir("y", 0o700))
	putFile(t, dir, "x/f", "")
	for _, name := range []string{".", "x"} {
		require.NoError(t, dir.SyncDir(name))
	}
	require.NoError(t, dir.Rename("x/f", "y/f"))
	require.NoError(t, dir.Remove("y/f"))
	d.SetHook(failCall("syncdir", syscall.EIO))
	require.Error(t, dir.SyncDir("x"))
	d.SetHook(nil)
	require.NoError(t, dir.SyncDir("x"))
	require.Equal(t, []string{"f"}, names(t, nothing(d).FS(), "x"))
	require.NoError(t, dir.SyncDir("y"), "its removal is pending, and takes the rename with it")
	require.Empty(t, names(t, nothing(d).FS(), "x"))
	require.Empty(t, names(t, nothing(d).FS(), "y"))
}

func TestPartialWrite(t *testing.T) {
	d := New(Ext4)
	f := open(t, d.FS(), "a", os.O_CREATE|os.O_RDWR)
	d.SetHook(func(op Op) Fault {
		require.Equal(t, Op{N: 2, Call: "write", Name: "a", Bytes: 5}, op)
		return Fault{Partial: 2}
	})
	n, err := f.Write([]byte("12345"))
	require.NoError(t, err)
	require.Equal(t, 2, n)
	d.SetHook(func(Op) Fault { return Fault{Err: syscall.EIO, Partial: 1} })
	n, err = f.Write([]byte("345"))
	require.ErrorIs(t, err, syscall.EIO)
	require.Equal(t, 1, n)
	d.SetHook(func(Op) Fault { return Fault{Err: syscall.EIO} })
	n, err = f.WriteAt([]byte("345"), 0)
	require.ErrorIs(t, err, syscall.EIO)
	require.Zero(t, n)
	require.ErrorIs(t, f.Close(), syscall.EIO)
	require.ErrorIs(t, f.Close(), os.ErrClosed, "it was closed all the same")
	d.SetHook(nil)
	require.Equal(t, "123", read(t, d.FS(), "a"))
}

func TestCapacity(t *testing.T) {
	d := New(Ext4)
	dir := d.FS()
	d.Capacity(10, 2)
	putFile(t, dir, "a", "123456")
	f := open(t, dir, "b", os.O_CREATE|os.O_WRONLY)
	n, err := f.Write([]byte("123456"))
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.Equal(t, 4, n)
	_, err = f.WriteAt([]byte("over"), 0)
	require.NoError(t, err, "what is there can be written over")
	_, err = dir.OpenFile("c", os.O_CREATE|os.O_WRONLY, 0o600)
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.ErrorIs(t, dir.Mkdir("c", 0o700), syscall.ENOSPC)
	require.ErrorIs(t, dir.Symlink("a", "c"), syscall.ENOSPC)
	require.ErrorIs(t, dir.Link("a", "c"), syscall.ENOSPC)
	s := d.Snapshot()
	require.ErrorIs(t, s.FS().Mkdir("c", 0o700), syscall.ENOSPC)

	require.NoError(t, dir.Remove("b"))
	require.ErrorIs(t, dir.Mkdir("c", 0o700), syscall.ENOSPC, "it is still open")
	require.NoError(t, f.Close())
	require.NoError(t, dir.Mkdir("c", 0o700))
	require.NoError(t, dir.RemoveAll("c"))
	putFile(t, dir, "b", "1234")
	putFile(t, dir, "b", "4321")
	require.NoError(t, dir.Rename("a", "b"))
	putFile(t, dir, "a", "1234")
	require.Equal(t, 10, d.usedBytes)
	require.Equal(t, 2, d.usedInodes)
	require.Equal(t, 10, d.Snapshot().usedBytes)
	require.Equal(t, 10, all(t, d).usedBytes)
	require.Zero(t, nothing(d).usedInodes)
}

func TestHookOps(t *testing.T) {
	d := New(Ext4)
	var got []string
	d.SetHook(func(op Op) Fault {
		if op.N > 0 {
			require.Equal(t, len(got)+1, op.N)
			got = append(got, op.Call+" "+op.Name)
		} else {
			require.Contains(t, []string{"lstat", "read", "readdir", "open", "close", "sub", "stat", "readlink"}, op.Call)
		}
		d.Snapshot() // it does not lock up
		return Fault{}
	})
	dir := d.FS()
	require.NoError(t, dir.Mkdir("x", 0o700))
	sub, err := dir.Sub("x")
	require.NoError(t, err)
	putFile(t, sub, "a", "1")
	putFile(t, sub, "a", "2")
	require.Equal(t, "2", read(t, sub, "a"))
	f := open(t, sub, "a", os.O_RDWR)
	require.NoError(t, f.Chmod(0o644))
	require.NoError(t, f.Sync())
	require.NoError(t, f.Datasync())
	require.NoError(t, f.Close())
	require.NoError(t, sub.Link("a", "b"))
	require.NoError(t, sub.Symlink("a", "s"))
	require.NoError(t, sub.Rename("b", "c"))
	require.NoError(t, sub.Remove("c"))
	require.NoError(t, sub.SyncDir("."))
	require.NoError(t, dir.RemoveAll("x"))
	require.Equal(t, strings.Split("mkdir x,create x/a,write x/a,close x/a,truncate x/a,write x/a,close x/a,"+
		"open x/a,chmod x/a,sync x/a,datasync x/a,close x/a,link x/b,symlink x/s,rename x/c,remove x/c,syncdir x,removeall x", ","), got)
}
