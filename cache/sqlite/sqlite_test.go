package sqlite

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func index(t *testing.T, path string) *sql.DB {
	t.Helper()
	db, err := OpenIndex(path, time.Second)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

func exec(t *testing.T, db *sql.DB, statement string, args ...any) {
	t.Helper()
	_, err := db.Exec(statement, args...)
	require.NoError(t, err)
}

func count(db *sql.DB, query string) (n int, err error) {
	err = db.QueryRow(query).Scan(&n)
	return n, err
}

func TestIndexHasFullText(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a b%20?#.db")
	db := index(t, path)
	exec(t, db, `CREATE VIRTUAL TABLE f USING fts5(text)`)
	exec(t, db, `INSERT INTO f VALUES ('a red house'), ('a blue house')`)
	n, err := count(index(t, path), `SELECT count(*) FROM f WHERE f MATCH 'red'`)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.FileExists(t, path)
}

// Nobody but their owner may read the files of an index, whatever the umask is.
func TestIndexIsPrivate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := index(t, filepath.Join(dir, "x.db"))
	exec(t, db, `CREATE TABLE t (a); INSERT INTO t VALUES (1)`)
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 3)
	for _, e := range entries {
		info, err := e.Info()
		require.NoError(t, err)
		require.Zero(t, info.Mode().Perm()&0o077, e.Name())
	}
}

// A byte that changed in any page is noticed when that page is read.
func TestEveryFlippedPageIsNoticed(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "x.db")
	db, err := OpenIndex(path, time.Second)
	require.NoError(t, err)
	exec(t, db, `CREATE TABLE t (a)`)
	for i := range 64 {
		exec(t, db, `INSERT INTO t VALUES (?)`, fmt.Sprintf("%04000d", i))
	}
	require.NoError(t, db.Close())
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	const page = pageSize
	require.Greater(t, len(whole), 20*page)
	require.Zero(t, len(whole)%page)
	for at := page + 17; at < len(whole); at += page {
		damaged := append([]byte(nil), whole...)
		damaged[at] ^= 1
		require.NoError(t, os.WriteFile(path, damaged, 0o600))
		db, err := OpenIndex(path, time.Second)
		if err == nil {
			_, err = count(db, `SELECT sum(length(a)) FROM t`)
			require.NoError(t, db.Close())
		}
		require.True(t, Damaged(err), "page %d: %v", at/page, err)
	}
	swapped := append([]byte(nil), whole...)
	copy(swapped[8*page:], whole[9*page:10*page])
	copy(swapped[9*page:], whole[8*page:9*page])
	require.NoError(t, os.WriteFile(path, swapped, 0o600))
	db, err = OpenIndex(path, time.Second)
	require.NoError(t, err)
	_, err = count(db, `SELECT sum(length(a)) FROM t`)
	require.True(t, Damaged(err), "a page is not where it was written: %v", err)
	require.NoError(t, db.Close())
	require.NoError(t, os.WriteFile(path, []byte("no database at all, but long enough to be read as one, which takes a hundred bytes and some more"), 0o600))
	_, err = OpenIndex(path, time.Second)
	require.True(t, Damaged(err), "%v", err)
}

func TestWritersWaitForEachOther(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "x.db")
	first := index(t, path)
	exec(t, first, `CREATE TABLE t (a); INSERT INTO t VALUES (1)`)
	tx, err := first.Begin()
	require.NoError(t, err)
	_, err = tx.Exec(`INSERT INTO t VALUES (2)`)
	require.NoError(t, err)
	second, err := OpenIndex(path, time.Millisecond)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, second.Close()) })
	n, err := count(second, `SELECT count(*) FROM t`)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	_, err = second.Exec(`INSERT INTO t VALUES (3)`)
	require.True(t, Busy(err), "%v", err)
	require.NoError(t, tx.Commit())
	exec(t, second, `INSERT INTO t VALUES (3)`)
}

// An index does not take the last room of a disk.
func TestIndexLeavesRoom(t *testing.T) { // not parallel: it changes what is free
	path := filepath.Join(t.TempDir(), "x.db")
	db := index(t, path)
	exec(t, db, `CREATE TABLE t (a); PRAGMA wal_autocheckpoint = 100`)
	exec(t, db, `INSERT INTO t VALUES (zeroblob(4000000))`)
	free := uint64(leaves) + 5<<20
	was := freeBytes
	defer func() { freeBytes = was }()
	freeBytes = func(string) (uint64, error) {
		free -= lookEvery
		return free, nil
	}
	_, err := db.Exec(`INSERT INTO t VALUES (zeroblob(40000000))`)
	require.True(t, Full(err), "%v", err)
	require.True(t, Unavailable(err))
	require.ErrorContains(t, Room(filepath.Dir(path)), "MiB are for sessions")
	n, err := count(db, `SELECT count(*) FROM t`)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	freeBytes = func(string) (uint64, error) { return 0, errors.ErrUnsupported }
	exec(t, db, `INSERT INTO t VALUES (zeroblob(40000000))`)
}

// stranger makes a database as another program would, its last rows in the log.
func stranger(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "theirs.db")
	db := index(t, path)
	exec(t, db, `CREATE TABLE t (a); CREATE VIEW v AS SELECT a FROM t; INSERT INTO t VALUES (1), (2)`)
	to := filepath.Join(t.TempDir(), "copy.db")
	for _, suffix := range []string{"", "-wal"} {
		data, err := os.ReadFile(path + suffix)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(to+suffix, data, 0o600))
	}
	return to
}

func TestCopyIsReadAndNotTrusted(t *testing.T) {
	t.Parallel()
	path := stranger(t)
	db, err := OpenCopy(path)
	require.NoError(t, err)
	defer db.Close()
	n, err := count(db, `SELECT count(*) FROM t`)
	require.NoError(t, err)
	require.Equal(t, 2, n, "the rows of the log as well")
	_, err = count(db, `SELECT count(*) FROM v`)
	require.ErrorContains(t, err, "view")
	_, err = db.Exec(`INSERT INTO t VALUES (3)`)
	require.Error(t, err)
	_, err = db.Exec(`ATTACH 'other.db' AS o`)
	require.Error(t, err)
	_, err = count(db, fmt.Sprintf(`SELECT length(randomblob(%d))`, MaxValue+1))
	require.ErrorContains(t, err, "too big")
	require.NoFileExists(t, path+"-shm")
}

func TestOnlyRegularFilesAreOpened(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, err := OpenCopy(filepath.Join(dir, "missing.db"))
	require.Error(t, err)
	require.NoFileExists(t, filepath.Join(dir, "missing.db"))
	target := filepath.Join(dir, "target.db")
	index(t, target)
	for _, suffix := range []string{"", "-journal", "-wal", "-shm"} {
		link := filepath.Join(dir, "link"+suffix+".db")
		if os.Symlink(target, link+suffix) != nil {
			t.Skip("no symbolic links here")
		}
		_, err := OpenIndex(link, 0)
		require.ErrorContains(t, err, "no regular file")
	}
}
