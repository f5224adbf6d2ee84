package agents

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/lopen-dev/lopen/cache/sqlite"
	"github.com/lopen-dev/lopen/writer/documents"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

// Before version 1.2 opencode kept its sessions as files of JSON in a folder, and later versions leave them there:
//
//	storage/session/{project}/{session}.json
//	storage/message/{session}/{message}.json
//	storage/part/{message}/{part}.json
//
// They are copied into a database with what is read of the tables that version 1.2 has.
const (
	storageFolder = "storage"
	storageExt    = ".json"
	storageSchema = `CREATE TABLE session (id, parent_id, project_id, directory, title, time_created, time_updated);
CREATE TABLE message (id, session_id, time_created, time_updated, data);
CREATE TABLE part (id, message_id, data);
CREATE INDEX of_session ON message (session_id, time_created, id);
CREATE INDEX of_message ON part (message_id, id)`
)

// A storedFile is what is read of a session's or a message's file.
type storedFile struct {
	Project   string `json:"projectID"`
	Parent    string `json:"parentID"`
	Directory string `json:"directory"`
	Title     string `json:"title"`
	Time      struct {
		Created int64 `json:"created"` // in milliseconds
		Updated int64 `json:"updated"`
	} `json:"time"`

	id   string
	data []byte
}

// openStorage copies the sessions that a folder has as files and the library does not have from a database. It returns
// nil if there are none.
func openStorage(ctx context.Context, temp, path string, l *Library) (*database, error) {
	known := map[string]bool{}
	for _, h := range l.Histories {
		for _, f := range h.files {
			known[f.name] = true
		}
	}
	var sessions []string
	for _, dir := range [...]string{path, filepath.Join(path, storageFolder)} {
		found, err := filepath.Glob(filepath.Join(quoteGlob(dir), "session", "*", "*"+storageExt))
		if err != nil {
			return nil, err
		}
		for _, file := range found {
			if id := strings.TrimSuffix(filepath.Base(file), storageExt); !known[id] {
				known[id] = true
				sessions, path = append(sessions, file), dir
			}
		}
	}
	if len(sessions) == 0 {
		return nil, nil
	}
	dir, err := os.MkdirTemp(temp, "opencode-")
	if err != nil {
		return nil, err
	}
	d := &database{path: path, copy: filepath.Join(dir, "copy"+databaseExt)}
	if d.DB, err = sqlite.OpenIndex(d.copy, 0); err == nil {
		err = d.fill(ctx, sessions, l)
	}
	if err != nil {
		return nil, errors.Join(err, d.close())
	}
	return d, nil
}

// quoteGlob returns a pattern that matches a path alone.
func quoteGlob(path string) string {
	return strings.NewReplacer(`[`, `[[]`, `*`, `[*]`, `?`, `[?]`).Replace(path)
}

// fill copies sessions with their messages and parts. What cannot be read is noted in the library.
func (d *database) fill(ctx context.Context, sessions []string, l *Library) error {
	tx, err := d.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // after a commit there is nothing to take back
	insert := func(statement string, values ...any) {
		if err == nil {
			_, err = tx.ExecContext(ctx, statement, values...)
		}
	}
	insert(storageSchema)
	for _, file := range sessions {
		s, why := readStored(file)
		if why != nil {
			l.Left = append(l.Left, why)
			continue
		}
		insert(`INSERT INTO session VALUES (?, ?, ?, ?, ?, ?, ?)`, s.id, s.Parent, s.Project, s.Directory, s.Title, s.Time.Created, s.Time.Updated)
		d.stored(l, "message", s.id, func(m storedFile) {
			insert(`INSERT INTO message VALUES (?, ?, ?, ?, ?)`, m.id, s.id, m.Time.Created, m.Time.Updated, string(m.data))
			d.stored(l, "part", m.id, func(p storedFile) {
				insert(`INSERT INTO part VALUES (?, ?, ?)`, p.id, m.id, string(p.data))
			})
		})
		if err != nil {
			return err
		}
	}
	return cmp.Or(err, tx.Commit())
}

// stored calls fn with each file of a session's messages, or of a message's parts.
func (d *database) stored(l *Library, kind, of string, fn func(storedFile)) {
	found, _ := filepath.Glob(filepath.Join(quoteGlob(d.path), kind, quoteGlob(of), "*"+storageExt)) // the pattern is right
	for _, file := range found {
		if s, err := readStored(file); err != nil {
			l.Left = append(l.Left, err)
		} else {
			fn(s)
		}
	}
}

// readStored reads a file. A time that it does not have is that of the file; one that is too long is spaces, which are
// reported as that when the record is taken.
func readStored(path string) (s storedFile, err error) {
	f, err := documents.OpenFile(path)
	if err != nil {
		return s, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return s, err
	}
	data := bytes.Repeat([]byte(" "), maxLine+1)
	if info.Size() <= maxLine {
		if data, err = documents.ReadFile(path, maxLine); err != nil {
			return s, fmt.Errorf("%s: %w", path, err)
		}
	}
	_ = strictjson.UnmarshalLenient(data, &s) // a torn message is reported when it is taken
	s.id, s.data = strings.TrimSuffix(filepath.Base(path), storageExt), data
	if compact, err := strictjson.AppendCompact(nil, data); err == nil {
		s.data = compact
	}
	written := info.ModTime().UnixMilli()
	s.Time.Created, s.Time.Updated = cmp.Or(s.Time.Created, written), max(s.Time.Updated, written)
	return s, nil
}
