package fleet_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/fleet"
	"github.com/lopen-dev/lopen/lifecycle/fleet/pgtest"
	"github.com/lopen-dev/lopen/lifecycle/folder"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/journal"
)

// Every run has the same examples; -rapid.seed 0 draws others, and -rapid.checks more.
func init() {
	_ = flag.Set("rapid.seed", "1")
	_ = flag.Set("rapid.checks", "30")
}

// TestModel has three machines work on one session, at random: they save, with and without a network
// that cuts, are killed, take the session over, continue without having it, and pull it; leases end,
// somebody deletes it, and the database falls back to an older backup. It holds that
//
//   - what the database has of the session only grows, unless it was deleted or restored: nothing is
//     shipped over;
//   - it is at any time a beginning of the log of one machine, line by line;
//   - who has the lease is the last who shipped, and nobody takes a session while another one has it;
//   - when Replicated returns nil, it has the whole log of then;
//   - it can be fetched and loaded;
//   - each message that a Sync acknowledged is in the fleet, or in a session or a fork that the machine
//     lists.
func TestModel(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	var proxies [3]*pgtest.Proxy
	for i := range proxies {
		proxies[i] = pgtest.NewProxy(t, addr(t, url))
	}
	_, err := open(t, "first", url).Migrate(t.Context())
	require.NoError(t, err)
	db := connect(t, url)
	temp, examples := memory(t), 0
	rapid.Check(t, func(t *rapid.T) {
		examples++
		m := &model{t: t, db: db, url: url, project: fmt.Sprint("p", examples), temp: filepath.Join(temp, fmt.Sprint(examples))}
		defer m.end()
		for i, p := range proxies {
			p.Heal()
			m.machines = append(m.machines, &host{model: m, name: fmt.Sprint("m", i), proxy: p, url: p.URL(url), texts: map[string]bool{}})
		}
		m.begin()
		t.Repeat(m.steps())
		m.finish()
	})
}

// memory is a folder in memory where there is one.
func memory(t *testing.T) string {
	dir, err := os.MkdirTemp("/dev/shm", "lopen-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return dir
}

type model struct {
	t        *rapid.T
	db       *pgx.Conn
	url      string
	project  string
	temp     string
	folders  int
	machines []*host

	id        session.ID
	was       []string   // the lines in the database when it was last looked at
	histories [][]string // logs that a machine had and that made way
	backups   []backup
	lossy     bool // the database was restored, or the session deleted
	n         int
}

// A host is a machine: one process at a time, and the folder that it leaves to the next one.
type host struct {
	*model
	name  string
	proxy *pgtest.Proxy
	url   string
	cut   bool
	dir   string

	f     *fleet.Fleet
	store *lifecycle.Store
	sess  *fleet.Session // nil if it has none open

	texts map[string]bool // of the messages that a Sync acknowledged
	said  []string        // of those that no Sync has acknowledged yet
}

func (m *model) begin() {
	require.NoError(m.t, os.Mkdir(m.temp, 0o700))
	for _, h := range m.machines {
		h.dir = h.folder()
		require.NoError(m.t, os.Mkdir(h.dir, 0o700))
		h.start()
	}
	h := m.machines[0]
	s, err := h.store.Create(context.Background(), "auth")
	require.NoError(m.t, err)
	m.id = s.ID()
	h.ship(s)
}

func (m *model) folder() string {
	m.folders++
	return filepath.Join(m.temp, fmt.Sprint(m.folders))
}

// start starts a process.
func (h *host) start() {
	var err error
	h.store, _, err = lifecycle.Init(h.dir, lifecycle.Options{})
	require.NoError(h.t, err)
	h.f, err = fleet.Open(fleet.Options{URL: h.url, Project: h.project, Host: h.name, Linger: time.Millisecond})
	require.NoError(h.t, err)
	h.f.Hasten(fleet.Lease, patience) // no call ends before the network does: the proxy resets, and never hangs
}

func (h *host) ship(s *lifecycle.Session) {
	var err error
	h.sess, err = h.f.Ship(h.store, s)
	require.NoError(h.t, err)
}

// end ends what is left of an example.
func (m *model) end() {
	for _, h := range m.machines {
		h.proxy.Drop()
		if h.f != nil {
			h.drop()
		}
		h.proxy.Heal()
	}
	require.NoError(m.t, os.RemoveAll(m.temp))
}

// drop ends the process without a word to the database, which the proxy keeps from it.
func (h *host) drop() {
	h.f.Close()
	if h.sess != nil {
		_ = h.sess.Session.Close(context.Background()) // of a folder at which nobody looks again
	}
	_ = h.store.Close(context.Background())
	h.f, h.sess, h.store = nil, nil, nil
}

// works reports whether a machine has the session open and may save it, as far as it knows.
func works(h *host) bool { return h.sess != nil && h.sess.Paused() == nil }

func idle(h *host) bool { return !works(h) }

func (m *model) steps() map[string]func(*rapid.T) {
	all := map[string]func(*rapid.T){
		"":        func(t *rapid.T) { m.t = t; m.check() },
		"lease":   func(t *rapid.T) { m.t = t; m.leaseEnds() },
		"restore": func(t *rapid.T) { m.t = t; m.restore() },
	}
	some := func(name string, fits func(*host) bool, fn func(h *host)) {
		all[name] = func(t *rapid.T) {
			m.t = t
			fit := slices.DeleteFunc(slices.Clone(m.machines), func(h *host) bool { return !fits(h) })
			if len(fit) == 0 {
				t.Skip("no machine can do that now")
			}
			fn(rapid.SampledFrom(fit).Draw(t, "machine"))
		}
	}
	connected := func(h *host) bool { return !h.cut }
	some("say", works, (*host).say)
	some("save", works, (*host).saves)
	some("save more", works, (*host).saves)
	some("replicate", func(h *host) bool { return works(h) && connected(h) }, (*host).replicates)
	some("cut", connected, (*host).cuts)
	some("heal", func(h *host) bool { return h.cut }, (*host).heals)
	some("lose reply", connected, (*host).losesReply)
	some("cut in the middle", connected, func(h *host) { h.proxy.CutAfter(rapid.Int64Range(0, 20_000).Draw(m.t, "bytes")) })
	some("kill", func(*host) bool { return true }, (*host).kill)
	some("close", func(h *host) bool { return h.sess != nil }, (*host).close)
	some("continue", func(h *host) bool { return idle(h) && h.store.Incarnation(m.id) != "" }, (*host).continues)
	some("take over", func(h *host) bool { return idle(h) && connected(h) }, (*host).takes)
	some("take", func(h *host) bool { return idle(h) && connected(h) }, func(h *host) {
		m.leaseEnds()
		h.takes()
	})
	some("delete", connected, (*host).deletes)
	return all
}

// leaseEnds is what a minute without a word of its holder does.
func (m *model) leaseEnds() {
	_, err := m.db.Exec(context.Background(), `UPDATE lopen_data.sessions SET lease_until = clock_timestamp() - interval '1 ms' WHERE project = $1`, m.project)
	require.NoError(m.t, err)
}

// deletes removes the session from the fleet, in one of some examples.
func (h *host) deletes() {
	if rapid.IntRange(0, 19).Draw(h.t, "delete") != 7 {
		h.t.Skip("it is not deleted")
	}
	x, err := h.f.Find(context.Background(), h.id.String())
	if err == nil {
		err = h.f.Delete(context.Background(), &x)
	}
	if h.lossy = h.lossy || err == nil || fleetDown(err); err != nil {
		var held *fleet.HeldError
		require.True(h.t, errors.As(err, &held) || errors.Is(err, fleet.ErrNotFound) || fleetDown(err) || strings.Contains(err.Error(), "has changed since"), "%v", err)
	}
}

// A backup is a row of the session as it once was.
type backup struct {
	key, term, head int64
	sum             []byte
	holder          *string
	host            string
	until           time.Time
}

// backsUp remembers the row.
func (m *model) backsUp() {
	var b backup
	err := m.db.QueryRow(context.Background(), `SELECT session, term, head_seq, head_sum, holder, lease_until, host FROM lopen_data.sessions WHERE project = $1`, m.project).
		Scan(&b.key, &b.term, &b.head, &b.sum, &b.holder, &b.until, &b.host)
	if errors.Is(err, pgx.ErrNoRows) {
		return
	}
	require.NoError(m.t, err)
	if n := len(m.backups); b.head > 0 && (n == 0 || m.backups[n-1].term != b.term || m.backups[n-1].head != b.head) {
		m.backups = append(m.backups, b)
	}
}

// restore makes the database that of an older backup: with fewer records, and with a holder and a term
// that were over.
func (m *model) restore() {
	if len(m.backups) == 0 || rapid.IntRange(0, 9).Draw(m.t, "restore") != 7 {
		m.t.Skip("it is not restored")
	}
	b := m.backups[rapid.IntRange(max(len(m.backups)-4, 0), len(m.backups)-1).Draw(m.t, "backup")]
	ctx := context.Background()
	tx, err := m.db.Begin(ctx)
	require.NoError(m.t, err)
	defer func() { _ = tx.Rollback(ctx) }() // after the commit it does nothing
	tag, err := tx.Exec(ctx, `UPDATE lopen_data.sessions SET term = $2, head_seq = $3, head_sum = $4, holder = $5, lease_until = $6, host = $7 WHERE session = $1 AND head_seq >= $3
		AND EXISTS (SELECT FROM lopen_data.records r WHERE r.session = $1 AND r.seq = $3 AND r.sum = $4)`, b.key, b.term, b.head, b.sum, b.holder, b.until, b.host)
	require.NoError(m.t, err)
	if tag.RowsAffected() == 0 {
		return // it was deleted since, or restored to before that
	}
	_, err = tx.Exec(ctx, `DELETE FROM lopen_data.records WHERE session = $1 AND seq > $2`, b.key, b.head)
	require.NoError(m.t, err)
	require.NoError(m.t, tx.Commit(ctx))
	m.lossy = true
	m.was = m.was[:min(len(m.was), int(b.head))]
}

// lines returns what the database has.
func (m *model) lines() (lines []string) {
	rows, err := m.db.Query(context.Background(), `SELECT r.bytes FROM lopen_data.records r JOIN lopen_data.sessions s USING (session) WHERE s.project = $1 ORDER BY s.session, r.seq`, m.project)
	require.NoError(m.t, err)
	all, err := pgx.CollectRows(rows, pgx.RowTo[[]byte])
	require.NoError(m.t, err)
	for _, line := range all {
		lines = append(lines, string(line))
	}
	return lines
}

// log returns the lines of the session here.
func (h *host) log() (lines []string) {
	if h.store.Incarnation(h.id) == "" {
		return nil
	}
	root, err := writer.OpenFS(h.store.Path())
	require.NoError(h.t, err)
	defer root.Close()
	dir, err := writer.OpenDir(root, folder.Path(h.id))
	require.NoError(h.t, err)
	defer dir.Close()
	log, err := journal.Read(dir, 0, true)
	require.NoError(h.t, err)
	require.NoError(h.t, log.Lines(log.Records, func(_ *journal.Ref, line []byte) error {
		lines = append(lines, string(line))
		return nil
	}))
	return lines
}

// check holds what holds at any time.
func (m *model) check() {
	lines := m.lines()
	if !(m.lossy && len(lines) == 0) {
		require.GreaterOrEqual(m.t, len(lines), len(m.was))
		require.True(m.t, slices.Equal(m.was, lines[:len(m.was)]), "something else was shipped over it")
	}
	m.was = lines
	m.backsUp()
	var holder, last string
	err := m.db.QueryRow(context.Background(), `SELECT coalesce(max(holder), ''), coalesce(max(host), '') FROM lopen_data.sessions WHERE project = $1`, m.project).Scan(&holder, &last)
	require.NoError(m.t, err)
	for _, h := range m.machines {
		require.False(m.t, h.f.Holder() == holder && last != h.name, "%s has the lease, and %s ships", h.name, last)
	}
	all := slices.Clone(m.histories)
	for _, h := range m.machines {
		all = append(all, h.log())
	}
	require.True(m.t, slices.ContainsFunc(all, func(log []string) bool { return len(log) >= len(lines) && slices.Equal(log[:len(lines)], lines) }),
		"the database has %d lines, and no machine had them", len(lines))
}

// finish ends all work. Every second time each machine pulls the session once more.
func (m *model) finish() {
	pulls := rapid.Bool().Draw(m.t, "pulls")
	for _, h := range m.machines {
		h.heals()
		h.close()
	}
	m.check()
	for _, h := range m.machines {
		came := !pulls
		for range 10 { // a connection that was cut fails once more
			if m.leaseEnds(); !came {
				came = h.pull()
			}
		}
		require.True(m.t, came || m.lossy || len(m.was) == 0)
	}
	inFleet := strings.Join(m.lines(), "")
	everywhere := map[string]bool{}
	for _, h := range m.machines {
		for text := range h.named() {
			everywhere[text] = true
		}
	}
	for _, h := range m.machines {
		named := h.named()
		for text := range h.texts {
			require.True(m.t, named[text] || strings.Contains(inFleet, fmt.Sprintf("%q", text)) || m.lossy && everywhere[text],
				"%q was acknowledged and is nowhere", text)
		}
	}
	if len(m.was) > 0 {
		m.loads()
	}
}

// named returns the texts in the sessions that a machine lists.
func (h *host) named() map[string]bool {
	texts := map[string]bool{}
	infos, err := h.store.List()
	require.NoError(h.t, err)
	for _, i := range infos {
		require.NoError(h.t, i.Err)
		for msg, err := range h.store.Messages(i.ID) {
			require.NoError(h.t, err)
			var text string
			require.NoError(h.t, json.Unmarshal(msg.Content, &text))
			require.False(h.t, texts[i.ID.String()+text], "it is there twice")
			texts[text], texts[i.ID.String()+text] = true, true
		}
	}
	return texts
}

// loads fetches the session and loads it.
func (m *model) loads() {
	f, err := fleet.Open(fleet.Options{URL: m.url, Project: m.project})
	require.NoError(m.t, err)
	defer f.Close()
	x, err := f.Find(context.Background(), m.id.String())
	require.NoError(m.t, err)
	name := m.folder()
	require.NoError(m.t, os.Mkdir(name, 0o700))
	dir, err := writer.OpenFS(name)
	require.NoError(m.t, err)
	defer dir.Close()
	ld, err := f.Fetch(context.Background(), &x, dir)
	require.NoError(m.t, err)
	require.EqualValues(m.t, len(m.was), ld.At.Seq)
}
