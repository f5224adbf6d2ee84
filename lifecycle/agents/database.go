package agents

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/lopen-dev/lopen/cache/sqlite"
	"github.com/lopen-dev/lopen/writer/documents"
	"github.com/lopen-dev/lopen/writer/mount"
)

// A database is a copy of one of opencode's.
type database struct {
	path    string // of the original
	copy    string
	*sql.DB // nil until the copy is open
}

const (
	databaseName = "opencode"
	databaseExt  = ".db"
	// settled is how long ago a file was written last when its copy is begun: a write during the
	// copy then gives the file another time, however coarse the times of the file system are.
	settled = 30 * time.Millisecond
	copies  = 20
)

// openDatabases copies the databases that paths are, or that are in them, and lists their sessions.
func openDatabases(ctx context.Context, temp string, paths []string) (*Library, error) {
	l := &Library{}
	for _, path := range paths {
		found, err := databasesIn(path)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("find histories of %s: %w", OpenCode, err), l.Close())
		}
		for _, name := range found {
			db, err := openDatabase(ctx, temp, name)
			l.take(ctx, name, db, err)
		}
		db, err := openStorage(ctx, temp, path, l)
		l.take(ctx, path, db, err)
		if ctx.Err() != nil {
			return nil, errors.Join(context.Cause(ctx), l.Close())
		}
	}
	slices.SortStableFunc(l.Histories, func(a, b History) int { return a.Modified.Compare(b.Modified) })
	return l, nil
}

// take lists the sessions of a database, or notes why it cannot be read.
func (l *Library) take(ctx context.Context, path string, db *database, err error) {
	if db != nil {
		l.databases = append(l.databases, db)
		if err = db.list(ctx, l); err != nil {
			err = damaged(err)
		}
	}
	if err != nil {
		l.Left = append(l.Left, fmt.Errorf("%s: %w", path, err))
	}
}

// databasesIn returns the databases in a folder, or the one that a path is.
func databasesIn(path string) ([]string, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil || !info.IsDir() {
		return []string{path}, err
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), databaseName) && filepath.Ext(e.Name()) == databaseExt && e.Type().IsRegular() {
			found = append(found, filepath.Join(path, e.Name()))
		}
	}
	return found, nil
}

// openDatabase copies a database and opens the copy.
func openDatabase(ctx context.Context, temp, path string) (*database, error) {
	return newCopy(temp, path, func(d *database) (err error) {
		if err = d.take(ctx); err == nil {
			if d.DB, err = sqlite.OpenCopy(d.copy); err != nil {
				err = damaged(err)
			}
		}
		return err
	})
}

// newCopy returns a database that fill copies into a new folder below temp, and opens.
func newCopy(temp, path string, fill func(*database) error) (*database, error) {
	dir, err := os.MkdirTemp(temp, "opencode-")
	if err != nil {
		return nil, err
	}
	d := &database{path: path, copy: filepath.Join(dir, "copy"+databaseExt)}
	if err := fill(d); err != nil {
		return nil, errors.Join(err, d.close())
	}
	return d, nil
}

func damaged(err error) error {
	return fmt.Errorf("damaged, or not a database of %s: %w", OpenCode, err)
}

func (d *database) close() error {
	var err error
	if d.DB != nil {
		err = d.Close()
	}
	return errors.Join(err, mount.RemoveAll(filepath.Dir(d.copy)))
}

// take copies the database and its log as they are at one moment: again, until neither was written
// but for what was added to the log. Its owner is not asked, and may hold it.
func (d *database) take(ctx context.Context) error {
	for try := range copies {
		ok, err := d.try()
		if ok || err != nil {
			return err
		}
		select {
		case <-time.After(settled * time.Duration(try+1)):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return errors.New("it is written all the time: try again when opencode has less to do")
}

func (d *database) try() (bool, error) {
	before, err := look(d.path)
	if err != nil {
		return false, err
	}
	if before.journal || time.Since(before.written) < settled {
		return false, nil
	}
	if err := copyFile(d.path, d.copy); err != nil {
		return false, err
	}
	_ = os.Remove(d.copy + "-wal") // of the try before
	if err := copyFile(d.path+"-wal", d.copy+"-wal"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	after, err := look(d.path)
	if err != nil {
		return false, err
	}
	return before == after && logHeader(d.copy) == after.log, nil
}

// walHeader is the size of the header of a log in bytes. It has salts that change when the log is
// begun anew.
const walHeader = 32

// A look is what shows that a database was written, but for what is added to its log.
type looked struct {
	size    int64
	written time.Time
	log     string // the header of its log
	journal bool   // a transaction of another kind is under way
}

func look(path string) (l looked, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return l, err
	}
	l.size, l.written, l.log = info.Size(), info.ModTime(), logHeader(path)
	_, err = os.Stat(path + "-journal")
	l.journal = err == nil
	return l, nil
}

// logHeader returns the header of a database's log, or "" if there is none.
func logHeader(path string) string {
	f, err := documents.OpenFile(path + "-wal")
	if err != nil {
		return ""
	}
	defer f.Close()
	header := make([]byte, walHeader)
	n, _ := io.ReadFull(f, header) // a shorter one is empty
	return string(header[:n])
}

func copyFile(from, to string) error {
	src, err := documents.OpenFile(from)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(dst, src)
	return errors.Join(err, dst.Close())
}

// maxNested bounds how deep sessions that tools started are nested.
const maxNested = 64

// list adds the sessions of a database to a library. Those that a tool started belong to the
// session that it worked for.
func (d *database) list(ctx context.Context, l *Library) error {
	const query = `WITH RECURSIVE below (id, root, depth) AS (
	SELECT id, id, 0 FROM session WHERE coalesce(parent_id, '') NOT IN (SELECT id FROM session)
	UNION ALL SELECT session.id, root, depth + 1 FROM below JOIN session ON parent_id = below.id WHERE depth < ?)
SELECT id, root, coalesce(project_id, ''), directory, title, time_updated FROM below JOIN session USING (id) ORDER BY time_created, id`
	rows, err := d.QueryContext(ctx, query, maxNested)
	if err != nil {
		return err
	}
	defer rows.Close()
	var order []*History
	histories := map[string]*History{}
	for rows.Next() {
		var root string
		var head Head
		var updated int64
		f := file{path: d.path, db: d}
		if err := rows.Scan(&f.name, &root, &head.Root, &head.Cwd, &head.Title, &updated); err != nil {
			return err
		}
		h := histories[root]
		if h == nil {
			h = &History{Agent: OpenCode, ID: root, Path: d.path}
			histories[root], order = h, append(order, h)
		}
		if head.Title = oneLine(head.Title); f.name == root {
			h.head = &head
		} else {
			f.thread = bounded(f.name)
		}
		h.files = append(h.files, f)
		if at := time.UnixMilli(updated).UTC(); at.After(h.Modified) {
			h.Modified = at
		}
	}
	for _, h := range order {
		l.Histories = append(l.Histories, *h)
	}
	return rows.Err()
}
