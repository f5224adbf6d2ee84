package find

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3/driver"
	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/cache/search"
	"github.com/lopen-dev/lopen/lifecycle/agents"
)

// An opencode is a database of opencode as a test has it.
type opencode struct {
	*Agents
	t    *testing.T
	path string
	last int64
}

func newOpencode(t *testing.T) *opencode {
	t.Helper()
	home := t.TempDir()
	o := &opencode{Agents: &Agents{Home: home, Getenv: func(string) string { return "" }, Cache: t.TempDir()}, t: t,
		path: filepath.Join(home, ".local/share/opencode/opencode.db"), last: time.Now().Add(-time.Minute).UnixMilli()}
	require.NoError(t, os.MkdirAll(filepath.Dir(o.path), 0o700))
	o.exec(`CREATE TABLE session (id text PRIMARY KEY, project_id text, parent_id text, directory text, title text, time_created integer, time_updated integer);
CREATE TABLE message (id text PRIMARY KEY, session_id text, time_created integer, time_updated integer, data text);
CREATE TABLE part (id text PRIMARY KEY, message_id text, session_id text, time_created integer, time_updated integer, data text);`)
	o.exec(fmt.Sprintf(`INSERT INTO session VALUES ('ses_1', 'p', NULL, '/some/project', 'title', %d, %[1]d)`, o.last))
	return o
}

func (o *opencode) exec(statement string) {
	o.t.Helper()
	db, err := driver.Open((&url.URL{Scheme: "file", OmitHost: true, Path: o.path}).String())
	require.NoError(o.t, err)
	_, err = db.Exec(statement)
	require.NoError(o.t, err)
	require.NoError(o.t, db.Close())
	old := time.Now().Add(-time.Minute) // a database that was written just now is waited for
	require.NoError(o.t, os.Chtimes(o.path, old, old))
}

// say adds a message with one text. An answer is not complete.
func (o *opencode) say(id, role, text string) {
	o.t.Helper()
	o.last++
	o.exec(fmt.Sprintf(`INSERT INTO message VALUES ('%s', 'ses_1', %d, %[2]d, '{"role":"%s","time":{}}');
INSERT INTO part VALUES ('prt_%[1]s', '%[1]s', 'ses_1', %[2]d, %[2]d, '{"type":"text","text":"%[4]s"}')`, id, o.last, role, text))
}

// found is how many hits there are, with the index and without.
func (o *opencode) found(text string) int {
	o.t.Helper()
	find := func(scan bool) []Hit {
		o.Temp = o.t.TempDir()
		page, err := o.Find(context.Background(), Query{Text: text, NoIndex: scan})
		require.NoError(o.t, err)
		require.Empty(o.t, page.Notes)
		return page.Hits
	}
	hits := find(false)
	require.Equal(o.t, find(true), hits)
	return len(hits)
}

// opencode writes an answer while it comes, and removes what is undone, without a note in its session.
func TestOpencodeChangesMessages(t *testing.T) {
	t.Parallel()
	o := newOpencode(t)
	o.say("msg_1", "user", "please walrus")
	o.say("msg_2", "assistant", "half narwhal")
	require.Equal(t, 1, o.found("walrus"))
	require.Zero(t, o.found("narwhal"), "it is being written")
	o.say("msg_3", "user", "another walrus")
	require.Equal(t, 1, o.found("narwhal"))
	o.exec(`UPDATE part SET data = '{"type":"text","text":"half narwhal whole beluga"}' WHERE message_id = 'msg_2';
INSERT INTO part VALUES ('prt_tool', 'msg_2', 'ses_1', 1, 1, '{"type":"tool","tool":"bash","callID":"c","state":{"status":"running","input":{"command":"lionfish"}}}')`)
	require.Equal(t, 1, o.found("beluga"))
	require.Equal(t, 1, o.found("lionfish"))
	o.say("msg_4", "user", "stingray")
	require.Equal(t, 1, o.found("stingray"))
	o.exec(`DELETE FROM message WHERE id = 'msg_4'`)
	require.Zero(t, o.found("stingray"), "the last one is gone")
	o.exec(`DELETE FROM message WHERE id = 'msg_1'`)
	require.Equal(t, 1, o.found("walrus"))
	o.exec(`DELETE FROM message`)
	require.Zero(t, o.found("walrus"))
}

// A session of opencode is looked at by each search for a day, and once more behind that.
func TestOpencodeSettles(t *testing.T) {
	t.Parallel()
	source := func(age time.Duration) search.Source {
		c := &corpus{of: map[string]Hit{}}
		c.histories(nil, []agents.History{{Agent: agents.OpenCode, ID: "ses_1", Modified: time.Now().Add(-age).Truncate(time.Millisecond)}})
		return c.sources[0]
	}
	young, old := source(unsettled-time.Minute), source(unsettled+time.Minute)
	require.True(t, young.Grows)
	require.False(t, old.Grows)
	require.Zero(t, young.Mark%1000)
	require.EqualValues(t, 1, old.Mark%1000, "another mark than it had")
}

// The agent opens a hit in its folder. Where that is gone, or what is noted cannot be typed, lopen takes the session in.
func TestHistoriesAreOpened(t *testing.T) {
	t.Parallel()
	o := newOpencode(t)
	o.say("msg_1", "user", "walrus")
	o.Open = func(agent, session string) []string { return []string{agent, "--session", session} }
	open := func() Hit {
		o.Temp = t.TempDir()
		page, err := o.Find(context.Background(), Query{Text: "walrus"})
		require.NoError(t, err)
		require.Len(t, page.Hits, 1)
		return page.Hits[0]
	}
	imported := "lopen session import --from opencode " + o.path
	require.Equal(t, imported, open().Open)
	require.Equal(t, "/some/project", open().Cwd)
	dir := t.TempDir()
	o.exec("UPDATE session SET directory = '" + dir + "'")
	require.Equal(t, "cd "+dir+" && opencode --session ses_1", open().Open)
	o.exec("UPDATE session SET id = '--yolo'; UPDATE message SET session_id = '--yolo'")
	require.Equal(t, imported, open().Open)
	o.exec("UPDATE session SET directory = '.'")
	require.Equal(t, imported, open().Open)
}
