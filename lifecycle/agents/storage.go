package agents

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/lopen-dev/lopen/cache/sqlite"
	"github.com/lopen-dev/lopen/writer/documents"
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

// storageRows make a row of a file: of its folder, its name, when it was written, and what it has. A damaged one is
// reported when it is taken.
var storageRows = map[string]string{
	"session": `INSERT INTO session SELECT ?2, of ->> 'parentID', ?1, coalesce(of ->> 'directory', ''), coalesce(of ->> 'title', ''),
coalesce(CAST(of ->> '$.time.created' AS INTEGER), ?3), max(coalesce(CAST(of ->> '$.time.updated' AS INTEGER), 0), ?3)
FROM (SELECT iif(json_valid(?4), ?4, '{}') AS of)`,
	"message": `INSERT INTO message SELECT ?2, ?1, coalesce(CAST(iif(json_valid(?4), ?4, '{}') ->> '$.time.created' AS INTEGER), ?3), ?3,
iif(json_valid(?4), json(?4), ?4)`,
	"part": `INSERT INTO part SELECT ?2, ?1, iif(json_valid(?4), json(?4), ?4)`,
}

// openStorage copies the sessions that a folder has as files and the library does not have from a database. It returns
// nil if there are none.
func openStorage(ctx context.Context, temp, folder string, l *Library) (*database, error) {
	known := map[string]bool{}
	for _, h := range l.Histories {
		for _, f := range h.files {
			known[f.name] = true
		}
	}
	var sessions []string
	for _, dir := range [...]string{folder, filepath.Join(folder, storageFolder)} {
		for _, name := range storedIn(dir, "session/*") {
			if id := strings.TrimSuffix(path.Base(name), storageExt); !known[id] {
				known[id] = true
				sessions, folder = append(sessions, name), dir
			}
		}
	}
	if len(sessions) == 0 {
		return nil, nil
	}
	return newCopy(temp, folder, func(d *database) (err error) {
		if d.DB, err = sqlite.OpenIndex(d.copy, 0); err == nil {
			err = d.fill(ctx, sessions, l)
		}
		return err
	})
}

// storedIn returns the files in the folders below dir that a pattern matches.
func storedIn(dir, pattern string) []string {
	found, _ := fs.Glob(os.DirFS(dir), pattern+"/*"+storageExt) // there are none of a name that is no pattern
	return found
}

// fill copies sessions with their messages and parts. What cannot be read is noted in the library.
func (d *database) fill(ctx context.Context, names []string, l *Library) error {
	tx, err := d.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // after a commit there is nothing to take back
	if _, err := tx.ExecContext(ctx, storageSchema); err != nil {
		return err
	}
	for ; len(names) > 0; names = names[1:] {
		data, written, err := readStored(filepath.Join(d.path, filepath.FromSlash(names[0])))
		if err != nil {
			l.Left = append(l.Left, err)
			continue
		}
		parts := strings.Split(strings.TrimSuffix(names[0], storageExt), "/")
		kind, above, id := parts[0], parts[1], parts[2]
		if _, err := tx.ExecContext(ctx, storageRows[kind], above, id, written, string(data)); err != nil {
			return err
		}
		if below := map[string]string{"session": "message/", "message": "part/"}[kind]; below != "" {
			names = append(names, storedIn(d.path, below+id)...)
		}
	}
	return tx.Commit()
}

// readStored reads a file, and when it was written, in milliseconds. One that is too long is spaces, which are reported
// as that when the record is taken.
func readStored(name string) (data []byte, written int64, err error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, 0, err
	}
	if info.Size() <= maxLine {
		data, err = documents.ReadFile(name, maxLine)
	} else {
		data = bytes.Repeat([]byte(" "), maxLine+1)
	}
	return data, info.ModTime().UnixMilli(), err
}
