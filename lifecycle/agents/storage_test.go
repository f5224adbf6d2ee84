package agents_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/ncruces/go-sqlite3/driver"
	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle/agents"
)

// asFiles writes the sessions of a database as opencode stored them before version 1.2.
func asFiles(t *testing.T, path, dir string) {
	t.Helper()
	db, err := driver.Open(uri(path))
	require.NoError(t, err)
	defer db.Close()
	write := func(query string, below string, members string) {
		rows, err := db.QueryContext(t.Context(), query)
		require.NoError(t, err)
		defer rows.Close()
		for rows.Next() {
			var above, id, data string
			require.NoError(t, rows.Scan(&above, &id, &data))
			data = "{" + fmt.Sprintf(members, id, above) + strings.TrimPrefix(data, "{")
			var b bytes.Buffer
			require.NoError(t, json.Indent(&b, []byte(data), "", "  "))
			name := filepath.Join(dir, below, above, id+".json")
			require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o700))
			require.NoError(t, os.WriteFile(name, b.Bytes(), 0o600))
			settle(t, name)
		}
		require.NoError(t, rows.Err())
	}
	write(`SELECT project_id, id, json_object('parentID', parent_id, 'directory', directory, 'title', title,
		'time', json_object('created', time_created, 'updated', time_updated)) FROM session`, "session", `"id":%q,"projectID":%q,`)
	write(`SELECT session_id, id, data FROM message`, "message", `"id":%q,"sessionID":%q,`)
	write(`SELECT message_id, id, data FROM part`, "part", `"id":%q,"messageID":%q,`)
}

// What opencode stored as files of JSON is read as its database is, and a session that is in both counts once.
func TestOpencodesFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := filepath.Join(dir, "opencode.db")
	database(t, db)
	asFiles(t, db, filepath.Join(dir, "storage"))
	both, err := agents.Open(t.Context(), agents.OpenCode, t.TempDir(), dir)
	require.NoError(t, err)
	defer both.Close()
	require.Empty(t, both.Left)
	require.NoError(t, os.Remove(db))
	ids := regexp.MustCompile(`\{"id":"prt_\w+","messageID":"\w+",`)
	for _, path := range []string{dir, filepath.Join(dir, "storage")} {
		l, err := agents.Open(t.Context(), agents.OpenCode, t.TempDir(), path)
		require.NoError(t, err)
		defer l.Close()
		require.Empty(t, l.Left)
		require.Len(t, l.Histories, len(both.Histories))
		for i := range l.Histories {
			h, other := &l.Histories[i], &both.Histories[i]
			head, err := h.Head()
			require.NoError(t, err)
			want, err := other.Head()
			require.NoError(t, err)
			require.Equal(t, want, head)
			items, at, rep := read(t, h, agents.Position{})
			same, _, report := read(t, other, agents.Position{})
			require.Equal(t, same, strings.Split(ids.ReplaceAllString(strings.Join(items, "\n"), "{"), "\n"))
			require.Equal(t, report, rep)
			again, _, _ := read(t, other, at)
			require.Empty(t, again, "the database goes on where the files end")
		}
	}
}

func TestOpencodesFilesThatAreDamaged(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "[x]*")
	write := func(name, text string) {
		name = filepath.Join(dir, "storage", name)
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o700))
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
		settle(t, name)
	}
	write("session/global/ses_1.json", `{"directory":"/x","title":"one"}`)
	write("message/ses_1/msg_1.json", `{"role":"user","time":{"created":1}}`)
	write("part/msg_1/prt_1.json", `{"type":"text","text":"hello"}`)
	write("part/msg_1/prt_2.json", `{"type":"text","te`)
	write("message/ses_1/msg_2.json", `{"role":"us`)
	write("message/ses_1/msg_3.json", `{"role":"user","x":"`+strings.Repeat("x", 9<<20)+`"}`)
	h := open(t, agents.OpenCode, dir)
	require.Equal(t, "ses_1", h.ID)
	items, _, rep := read(t, h, agents.Position{})
	require.Contains(t, items[0], "hello")
	require.Equal(t, 3, rep.Bad)
	require.Equal(t, 1, rep.Messages)
}
