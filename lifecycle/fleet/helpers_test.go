package fleet_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/fleet"
	"github.com/lopen-dev/lopen/lifecycle/folder"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/wire"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/journal"
)

// patience is how long a test waits for what has to happen. Nothing takes that long.
const patience = 60 * time.Second

// quick is a lease and the time of a call that a test can wait for.
const quick = 2 * time.Second

// until polls until something is so.
func until(t *testing.T, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !so(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			require.FailNow(t, "it does not happen: "+what)
		}
	}
}

// logsNothing are the options of a store.
var logsNothing lifecycle.Options

// newMachineWith is newMachine with a store of some options.
func newMachineWith(t *testing.T, host, url string, o lifecycle.Options) *machine {
	t.Helper()
	m := &machine{dir: t.TempDir()}
	var err error
	m.store, _, err = lifecycle.Init(m.dir, o)
	require.NoError(t, err)
	t.Cleanup(func() {
		if err := m.store.Close(context.Background()); lifecycle.ClassOf(err) != lifecycle.ClassFenced {
			require.NoError(t, err)
		}
	})
	m.Fleet = open(t, host, url)
	m.Hasten(fleet.Lease, quick)
	_, err = m.Migrate(t.Context())
	require.NoError(t, err)
	return m
}

// hasty is newMachine with short times, the lease included.
func hasty(t *testing.T, host, url string) *machine {
	t.Helper()
	m := newMachineWith(t, host, url, lifecycle.Options{})
	m.Hasten(quick, quick)
	return m
}

// create makes a session and ships it.
func (m *machine) create(t *testing.T, module string) *fleet.Session {
	t.Helper()
	s, err := m.store.Create(t.Context(), module)
	require.NoError(t, err)
	return m.ship(t, s)
}

func (m *machine) ship(t *testing.T, s *lifecycle.Session) *fleet.Session {
	t.Helper()
	sess, err := m.Ship(m.store, s)
	require.NoError(t, err)
	t.Cleanup(func() { _ = sess.Close(context.Background()) }) // most tests close it before
	return sess
}

// resume opens a session that is here and ships it.
func (m *machine) resume(t *testing.T, id session.ID) *fleet.Session {
	t.Helper()
	s, err := m.store.Open(id)
	require.NoError(t, err)
	return m.ship(t, s)
}

// pull pulls a session by its name.
func (m *machine) pull(t *testing.T, name string) fleet.Pulled {
	t.Helper()
	x, err := m.Find(t.Context(), name)
	require.NoError(t, err)
	p, err := m.Pull(t.Context(), m.store, &x)
	require.NoError(t, err)
	return p
}

// say appends messages, and waits until they are on the disk.
func say(t *testing.T, s *fleet.Session, texts ...string) {
	t.Helper()
	for _, text := range texts {
		require.NoError(t, s.Append(message(text)))
	}
	require.NoError(t, s.Sync(t.Context()))
}

// arrives waits until all is replicated. It asks again and again, so that the next try is soon.
func arrives(t *testing.T, s *fleet.Session) {
	t.Helper()
	until(t, "all is replicated", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := s.Replicated(ctx)
		require.False(t, err != nil && ctx.Err() == nil, "%v", err)
		return err == nil
	})
}

// connect connects to a database until the test ends.
func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	c, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

// ask returns the one value that a query gives.
func ask[T any](t *testing.T, url, sql string, args ...any) (v T) {
	t.Helper()
	c := connect(t, url)
	defer func() { _ = c.Close(context.Background()) }()
	require.NoError(t, c.QueryRow(t.Context(), sql, args...).Scan(&v))
	return v
}

func execute(t *testing.T, url, sql string, args ...any) {
	t.Helper()
	c := connect(t, url)
	defer func() { _ = c.Close(context.Background()) }()
	_, err := c.Exec(t.Context(), sql, args...)
	require.NoError(t, err)
}

// there returns the lines of a session in the database.
func there(t *testing.T, url string, id session.ID, incarnation string) (lines [][]byte) {
	t.Helper()
	c := connect(t, url)
	defer func() { _ = c.Close(context.Background()) }()
	rows, err := c.Query(t.Context(), `SELECT r.bytes FROM lopen_data.records r JOIN lopen_data.sessions s USING (session) WHERE s.id = $1 AND s.incarnation = $2 ORDER BY r.seq`, id.String(), incarnation)
	require.NoError(t, err)
	lines, err = pgx.CollectRows(rows, pgx.RowTo[[]byte])
	require.NoError(t, err)
	return lines
}

// here returns the lines of a session in a store.
func here(t *testing.T, m *machine, id session.ID) (lines [][]byte) {
	t.Helper()
	root, err := writer.OpenFS(m.store.Path())
	require.NoError(t, err)
	defer root.Close()
	dir, err := writer.OpenDir(root, folder.Path(id))
	require.NoError(t, err)
	defer dir.Close()
	log, err := journal.Read(dir, 0, true)
	require.NoError(t, err)
	require.NoError(t, log.Lines(log.Above(0), func(_ *journal.Ref, line []byte) error {
		lines = append(lines, bytes.Clone(line))
		return nil
	}))
	return lines
}

// requireSame requires that the database has the records of the log here and no others.
func requireSame(t *testing.T, url string, m *machine, id session.ID) {
	t.Helper()
	requireLines(t, here(t, m, id), there(t, url, id, m.store.Incarnation(id)))
}

func requireLines(t *testing.T, want, got [][]byte) {
	t.Helper()
	for i := range min(len(want), len(got)) {
		require.Equal(t, string(want[i]), string(got[i]), "line %d", i)
	}
	require.Len(t, got, len(want))
}

// textsOf returns the texts of the messages in some lines.
func textsOf(t *testing.T, lines [][]byte) (texts []string) {
	t.Helper()
	for _, line := range lines {
		rec, err := wire.DecodeRecord(line)
		require.NoError(t, err)
		if rec.Message == nil {
			continue
		}
		var m struct{ Content string }
		require.NoError(t, json.Unmarshal(rec.Message, &m), "%s", rec.Message)
		texts = append(texts, m.Content)
	}
	return texts
}

// reads fetches a session into a folder, loads it there, and returns what it has.
func reads(t *testing.T, f *fleet.Fleet, name string) *folder.Contents {
	t.Helper()
	x, err := f.Find(t.Context(), name)
	require.NoError(t, err)
	dir, err := writer.OpenFS(t.TempDir())
	require.NoError(t, err)
	defer dir.Close()
	_, err = f.Fetch(t.Context(), &x, dir)
	require.NoError(t, err)
	ld, err := folder.Load(dir, x.ID)
	require.NoError(t, err)
	require.Equal(t, x.Records, ld.At.Seq)
	return ld
}

// said returns the texts of a session's messages in a store, the inherited ones included.
func said(t *testing.T, m *machine, id session.ID) (texts []string) {
	t.Helper()
	for msg, err := range m.store.Messages(id) {
		require.NoError(t, err)
		var text string
		require.NoError(t, json.Unmarshal(msg.Content, &text))
		texts = append(texts, text)
	}
	return texts
}

// A lockedBuffer is a log that a test reads while it is written.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer // Guarded by mu.
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// logged returns options of a store with a log.
func logged() (lifecycle.Options, *lockedBuffer) {
	b := &lockedBuffer{}
	return lifecycle.Options{Logger: zerolog.New(b)}, b
}

// addr is the address of the server of a URL.
func addr(t *testing.T, of string) string {
	t.Helper()
	u, err := url.Parse(of)
	require.NoError(t, err)
	return u.Host
}

// pointer is how a stack shows a pointer.
func pointer(f *fleet.Fleet) string { return fmt.Sprintf("%p", f) }

// firstClaim claims a module; nil if there is none.
func firstClaim(t *testing.T, m *machine) *fleet.Claim {
	t.Helper()
	c, _, err := m.Claim(t.Context(), nil, nil)
	require.NoError(t, err)
	return c
}
