package fleet_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/lopen-dev/lopen/lifecycle/fleet"
	"github.com/lopen-dev/lopen/lifecycle/fleet/pgtest"
)

// smallDisk mounts a disk that the servers' user can write to.
func smallDisk(t *testing.T, size string) string {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("mounting a tmpfs takes root")
	}
	dir := pgtest.Folder(t)
	info, err := os.Stat(dir)
	require.NoError(t, err)
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "mode=0700,size="+size); err != nil {
		t.Skipf("a tmpfs cannot be mounted here: %v", err)
	}
	t.Cleanup(func() { require.NoError(t, unix.Unmount(dir, unix.MNT_DETACH)) })
	var stat unix.Stat_t
	require.NoError(t, unix.Stat(filepath.Dir(dir), &stat))
	require.NoError(t, os.Chown(dir, int(stat.Uid), int(stat.Gid)))
	require.NoError(t, os.Chmod(dir, info.Mode()))
	return dir
}

// fill fills a disk but for some bytes; what it returns frees it.
func fill(t *testing.T, disk string, but int64) (free func()) {
	t.Helper()
	name := filepath.Join(disk, "filler")
	f, err := os.Create(name)
	require.NoError(t, err)
	var s unix.Statfs_t
	require.NoError(t, unix.Statfs(disk, &s))
	_, err = io.CopyN(f, endless{}, int64(s.Bavail)*s.Bsize-but)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	return func() { require.NoError(t, os.Remove(name)) }
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// A database whose disk is full takes nothing: the client says so, keeps its backlog, and goes on when
// there is room.
func TestFullDiskOfTheDatabase(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it starts a server")
	}
	disk := smallDisk(t, "40m")
	s := pgtest.Start(t, pgtest.Options{})
	first := s.Create("first")
	// The tables alone are on the small disk: when the disk of its log is full PostgreSQL ends.
	execute(t, pgtest.Admin(first), "CREATE TABLESPACE small OWNER lopen LOCATION '"+disk+"'")
	execute(t, pgtest.Admin(first), "CREATE DATABASE fleet OWNER lopen TABLESPACE small")
	fullDisk(t, s.URL("fleet"), fill(t, disk, 6<<20), func(err error) {
		require.Contains(t, err.Error(), "53100")
		require.Contains(t, fleet.Explain(err), "the disk of the database is full")
	}, func() {})
}

// A server that ends because the disk of its log is full is started again by somebody.
func TestFullDiskOfTheServer(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it starts a server")
	}
	disk := smallDisk(t, "80m")
	s := pgtest.Start(t, pgtest.Options{Folder: disk})
	url := s.Create("fleet")
	fullDisk(t, url, fill(t, disk, 6<<20), func(error) {}, func() {
		s.Kill() // what is left of it
		s.Start()
	})
}

func fullDisk(t *testing.T, url string, free func(), says func(error), mend func()) {
	t.Helper()
	o, log := logged()
	a := newMachineWith(t, "a", url, o)
	sess := a.create(t, "auth")
	say(t, sess, "small")
	arrives(t, sess)
	for i := 0; sess.Err() == nil; i++ {
		require.Less(t, i, 500, "the disk is not full")
		turn(t, sess, i)
		until(t, "it is shipped or not", func() bool { // the backlog has to fit on the disk afterwards
			acked, here := sess.Lag()
			return acked == here || sess.Err() != nil
		})
	}
	until(t, "the client says so", func() bool { return strings.Contains(log.String(), "the log keeps it") })
	says(sess.Err())
	say(t, sess, "meanwhile")
	acked, here := sess.Lag()
	require.Less(t, acked, here)
	free()
	mend()
	arrives(t, sess)
	requireSame(t, url, a, sess.ID())
	require.NoError(t, sess.Err())
	until(t, "the client says so", func() bool { return strings.Contains(log.String(), "shipped to the fleet again") })
	require.False(t, errors.Is(sess.Err(), fleet.ErrGone))
}
