package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/driver"
	"github.com/ncruces/go-sqlite3/ext/fts5"
)

// Bounds of a connection, in bytes.
const (
	indexHeap = 512 << 20
	copyHeap  = 512 << 20
	// MaxValue is the largest text, blob or row that is read or written. Another one
	// ends its statement with an error.
	MaxValue = 128 << 20
)

// OpenIndex opens a database of ours for reading and writing, and makes it when it is
// missing. wait is how long a statement waits for another process that writes.
func OpenIndex(path string, wait time.Duration) (*sql.DB, error) {
	return open(path, "mode=rwc&vfs="+unmappedVFS, func(c *sqlite3.Conn) error {
		if err := errors.Join(c.BusyTimeout(wait), guard(c, indexHeap), fts5.Register(c), c.EnableChecksums("main")); err != nil {
			return err
		}
		return c.Exec(`PRAGMA journal_mode=wal; PRAGMA synchronous=normal; PRAGMA cache_size=-32768; PRAGMA temp_store=memory; PRAGMA secure_delete=on; PRAGMA cell_size_check=on; PRAGMA journal_size_limit=16777216`)
	})
}

// OpenCopy opens a private copy of another program's database for reading. Its
// write-ahead log, copied beside it under the name with "-wal", is taken over into the
// copy. Nothing that its schema names is executed: views and triggers do not exist.
func OpenCopy(path string) (*sql.DB, error) {
	return open(path, "mode=rw", func(c *sqlite3.Conn) error {
		if err := guard(c, copyHeap); err != nil {
			return err
		}
		c.Limit(sqlite3.LIMIT_ATTACHED, 0)
		// The shared memory of a log is for several processes: an exclusive lock does without.
		return c.Exec(`PRAGMA locking_mode=exclusive; PRAGMA cell_size_check=on; PRAGMA mmap_size=0; PRAGMA temp_store=memory; PRAGMA query_only=on`)
	})
}

// open opens a regular file of one connection. The first statement is executed, so that
// an error of the file is one of open.
func open(path, parameters string, prepare func(*sqlite3.Conn) error) (*sql.DB, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	// SQLite would follow a symbolic link, and waits at a pipe.
	for _, suffix := range [...]string{"", "-journal", "-wal", "-shm"} {
		if info, err := os.Lstat(path + suffix); err == nil && !info.Mode().IsRegular() {
			return nil, fmt.Errorf("open database: %s is no regular file", path+suffix)
		}
	}
	name := url.URL{Scheme: "file", OmitHost: true, Path: slashed(path), RawQuery: parameters}
	db, err := driver.Open(name.String(), prepare)
	if err != nil {
		return nil, fmt.Errorf("open database %s: %w", path, err)
	}
	db.SetMaxOpenConns(1)
	if err := db.PingContext(context.Background()); err != nil {
		return nil, errors.Join(fmt.Errorf("open database %s: %w", path, err), db.Close())
	}
	var tables int
	if err := db.QueryRowContext(context.Background(), `SELECT count(*) FROM sqlite_schema`).Scan(&tables); err != nil {
		return nil, errors.Join(fmt.Errorf("open database %s: %w", path, err), db.Close())
	}
	return db, nil
}

// slashed is a path as a URI has it: a drive of Windows stands behind a slash.
func slashed(path string) string {
	path = filepath.ToSlash(path)
	if path[0] != '/' {
		return "/" + path
	}
	return path
}

// guard takes from a connection what a hostile file could use.
func guard(c *sqlite3.Conn, heap int64) error {
	c.HardHeapLimit(heap)
	c.Limit(sqlite3.LIMIT_LENGTH, MaxValue)
	for op, on := range map[sqlite3.DBConfig]bool{
		sqlite3.DBCONFIG_DEFENSIVE:      true,
		sqlite3.DBCONFIG_TRUSTED_SCHEMA: false,
		sqlite3.DBCONFIG_ENABLE_TRIGGER: false,
		sqlite3.DBCONFIG_ENABLE_VIEW:    false,
	} {
		if _, err := c.Config(op, on); err != nil {
			return err
		}
	}
	return nil
}

// Damaged says that the error comes of what is in a file: it is no database, or a page of
// it is not as it was written.
func Damaged(err error) bool {
	return errors.Is(err, sqlite3.CORRUPT) || errors.Is(err, sqlite3.NOTADB) || errors.Is(err, sqlite3.FORMAT) ||
		errors.Is(err, sqlite3.IOERR_DATA) || errors.Is(err, sqlite3.IOERR_CORRUPTFS) || errors.Is(err, sqlite3.IOERR_SHORT_READ)
}

// Busy says that another process held the database for longer than was waited.
func Busy(err error) bool {
	return errors.Is(err, sqlite3.BUSY) || errors.Is(err, sqlite3.LOCKED)
}

// Unavailable says that the error is not of what is in a file: there is no room, no right to
// write, no memory, or the disk fails.
func Unavailable(err error) bool {
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) {
		return true
	}
	for _, code := range [...]sqlite3.ErrorCode{sqlite3.FULL, sqlite3.READONLY, sqlite3.CANTOPEN, sqlite3.PERM, sqlite3.NOMEM, sqlite3.IOERR} {
		if errors.Is(err, code) {
			return !Damaged(err)
		}
	}
	return false
}
