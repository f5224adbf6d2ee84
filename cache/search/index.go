package search

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/lopen-dev/lopen/cache/internal/shelf"
	"github.com/lopen-dev/lopen/cache/sqlite"
	"github.com/lopen-dev/lopen/writer"
)

// version is of the tables, of what is in them and of what a word is. An index of another
// version is dropped.
const version = 2

// folder is where an index is in a store.
const folder = "cache/search"

// The words are in two tables. In small are those of few new documents: FTS5 merges what each update
// adds. In big are those of the many that are read at once: these are written once, a
// segment for each 100 MB or so of text, since merging takes longer than all else.
const schema = `
CREATE TABLE IF NOT EXISTS source (id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, version TEXT NOT NULL, mark INTEGER NOT NULL, sign TEXT NOT NULL, tail TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS run (first INTEGER PRIMARY KEY, last INTEGER NOT NULL UNIQUE, source INTEGER NOT NULL, newest INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS doc (id INTEGER PRIMARY KEY, number INTEGER NOT NULL, piece INTEGER NOT NULL, time INTEGER NOT NULL,
	kind TEXT NOT NULL, role TEXT NOT NULL, tool TEXT NOT NULL, files TEXT NOT NULL, text TEXT NOT NULL);
CREATE VIRTUAL TABLE IF NOT EXISTS small USING fts5(text, content='', columnsize=0, detail=none, tokenize='ascii');
CREATE VIRTUAL TABLE IF NOT EXISTS big USING fts5(text, content='', columnsize=0, detail=none, tokenize='ascii');
INSERT INTO big(big, rank) VALUES ('automerge', 0), ('crisismerge', 1999), ('hashsize', 67108864);
CREATE VIRTUAL TABLE IF NOT EXISTS smallwords USING fts5vocab(small, row);
CREATE VIRTUAL TABLE IF NOT EXISTS bigwords USING fts5vocab(big, row);
PRAGMA user_version = `

// An Index is an open index. It is used by one goroutine.
type Index struct {
	dir  string
	file string
	db   *sql.DB
	wait time.Duration
}

// Open opens the index below the store's folder, and makes it if there is none or it cannot be
// used. wait is how long it waits for a process that writes in it.
func Open(store string, wait time.Duration) (*Index, error) {
	ix := &Index{dir: filepath.Join(store, filepath.FromSlash(folder)), wait: wait}
	if err := makeDir(store); err != nil {
		return nil, fmt.Errorf("open search index: %w", err)
	}
	err := ix.open()
	// SQLite waits for another process's statement, but not for one that is opening the database first.
	for begun := time.Now(); sqlite.Busy(err) && time.Since(begun) < wait; err = ix.open() {
		time.Sleep(busyPause)
	}
	if err != nil && !sqlite.Busy(err) && !sqlite.Unavailable(err) && !errors.Is(err, errNoRoom) {
		err = ix.renew()
	}
	if sqlite.Full(err) {
		ix.giveBack()
	}
	if err != nil {
		return nil, err
	}
	return ix, nil
}

// busyPause is how long a busy database is left alone.
const busyPause = 5 * time.Millisecond

// makeDir makes the folder. A symbolic link in the place of it, or of the one that it is in, is
// not followed.
func makeDir(store string) error {
	root, err := writer.OpenFS(store)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := shelf.MakeDir(root, folder); err != nil {
		return err
	}
	for _, dir := range [...]string{path.Dir(folder), folder} {
		if info, err := root.Lstat(dir); err != nil || !info.IsDir() {
			return errors.Join(fmt.Errorf("%s is no folder", dir), err)
		}
	}
	return nil
}

// errOther says that an index is of another version.
var errOther = errors.New("the index is of another version, or most of it is gone")

// Each index has a name of its own: one that is dropped while another process uses it stays
// that process's, with its log, and what is made anew has nothing of it.
func name(n int) string { return fmt.Sprintf("v%d-%d.db", version, n) }

// newest is the number of the newest index of this version, 0 without one, and all other files.
func (ix *Index) newest() (n int, others []string, err error) {
	entries, err := os.ReadDir(ix.dir)
	if err != nil {
		return 0, nil, err
	}
	for _, e := range entries {
		n = max(n, number(e.Name()))
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), name(n)) && !strings.HasPrefix(e.Name(), tooLittle) {
			others = append(others, e.Name())
		}
	}
	return n, others, nil
}

// number is that of a database's name, 0 if it is none.
func number(file string) int {
	text, ok := strings.CutPrefix(strings.TrimSuffix(file, ".db"), fmt.Sprintf("v%d-", version))
	if n, err := strconv.Atoi(text); ok && err == nil && n > 0 && file == name(n) {
		return n
	}
	return 0
}

// open opens the newest index, or makes the first one, and removes others.
func (ix *Index) open() error {
	n, others, err := ix.newest()
	if err != nil {
		return fmt.Errorf("open search index: %w", err)
	}
	ix.remove(others)
	ix.file = filepath.Join(ix.dir, name(max(n, 1)))
	if info, err := os.Lstat(ix.file); err != nil || info.Size() == 0 {
		if err := ix.room(); err != nil {
			return err
		}
	}
	if ix.db, err = sqlite.OpenIndex(ix.file, ix.wait); err != nil {
		return err
	}
	var have int
	if err = ix.db.QueryRow(`PRAGMA user_version`).Scan(&have); err == nil && have == 0 {
		if err = ix.inTx(context.Background(), func(tx *sql.Tx) error { _, err := tx.Exec(schema + strconv.Itoa(version)); return err }); err == nil {
			have = version
		}
	}
	if err == nil && have != version {
		err = errOther
	}
	if err != nil {
		_ = ix.db.Close()
		return err
	}
	return nil
}

// renew gives an index up that cannot be used, and opens a new one.
func (ix *Index) renew() error {
	if err := ix.drop(); err != nil {
		return fmt.Errorf("open search index: %w", err)
	}
	return ix.open()
}

// drop gives an index up: the next one has another name, and whoever opens it removes this one.
func (ix *Index) drop() error {
	_ = ix.Close()
	n, _, err := ix.newest()
	if err != nil || filepath.Join(ix.dir, name(n)) != ix.file { // another process was faster
		return err
	}
	f, err := os.OpenFile(filepath.Join(ix.dir, name(n+1)), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

// Close closes the index.
func (ix *Index) Close() error {
	if ix.db == nil {
		return nil
	}
	return ix.db.Close()
}

func (ix *Index) inTx(ctx context.Context, fn func(*sql.Tx) error) error {
	tx, err := ix.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := fn(tx); err != nil {
		_ = tx.Rollback()
		return err
	}
	return tx.Commit()
}

// Usage is what an index takes.
type Usage = shelf.Usage

// Use says what an index takes.
func Use(store string) (u Usage, err error) {
	err = each(store, func(info fs.FileInfo) error {
		u.Entries, u.Bytes = u.Entries+1, u.Bytes+info.Size()
		if u.Oldest.IsZero() || info.ModTime().Before(u.Oldest) {
			u.Oldest = info.ModTime()
		}
		return nil
	})
	return u, err
}

// Clear removes an index. Processes that use it keep what they have open.
func Clear(store string) (u Usage, err error) {
	if u, err = Use(store); err != nil {
		return u, err
	}
	return u, each(store, func(info fs.FileInfo) error { return os.Remove(filepath.Join(store, folder, info.Name())) })
}

// each calls fn with the files of an index. A symbolic link is not followed.
func each(store string, fn func(fs.FileInfo) error) error {
	dir := filepath.Join(store, filepath.FromSlash(folder))
	for _, d := range [...]string{filepath.Dir(dir), dir} {
		if info, err := os.Lstat(d); err != nil || !info.IsDir() {
			return nil // there is none
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil { // else it is gone
			if err := fn(info); err != nil {
				return err
			}
		}
	}
	return nil
}
