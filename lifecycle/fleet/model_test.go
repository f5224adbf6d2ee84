package fleet_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
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
	lossy     bool       // the database was restored, or the session deleted
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
	h.f.Hasten(fleet.Lease, quick)
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

func (m *model) steps() map[string]func(*rapid.T) {
	some := func(fn func(h *host)) func(*rapid.T) {
		return func(t *rapid.T) {
			m.t = t
			fn(m.machines[rapid.IntRange(0, len(m.machines)-1).Draw(t, "machine")])
		}
	}
	return map[string]func(*rapid.T){
		"":           func(t *rapid.T) { m.t = t; m.check() },
		"say":        some((*host).say),
		"save":       some((*host).saves),
		"save more":  some((*host).saves),
		"replicate":  some((*host).replicates),
		"cut":        some((*host).cuts),
		"heal":       some((*host).heals),
		"lose reply": some((*host).losesReply),
		"cut in the middle": some(func(h *host) {
			h.proxy.CutAfter(rapid.Int64Range(0, 20_000).Draw(m.t, "bytes"))
		}),
		"kill":      some((*host).kill),
		"close":     some((*host).close),
		"continue":  some((*host).continues),
		"take over": some((*host).takes),
		"take":      some(func(h *host) { m.leaseEnds(); h.takes() }),
		"lease":     func(t *rapid.T) { m.t = t; m.leaseEnds() },
		"delete":    some((*host).deletes),
		"restore":   func(t *rapid.T) { m.t = t; m.restore() },
	}
}

// say appends messages, and does not wait.
func (h *host) say() {
	if h.sess == nil {
		return
	}
	for range rapid.IntRange(1, 3).Draw(h.t, "messages") {
		h.n++
		text := fmt.Sprintf("%s says %d", h.name, h.n)
		if h.sess.Append(message(text)) == nil {
			h.said = append(h.said, text)
		}
	}
	_ = h.sess.Change(session.TriggerTaskCompleted, func(e *session.Edit) error { // a paused session says so to Sync
		e.Header().TurnCount = h.n
		return nil
	})
}

// saves waits for the disk as well. Only a session that is fenced refuses.
func (h *host) saves() {
	h.say()
	h.syncs()
}

func (h *host) syncs() bool {
	if h.sess == nil {
		return false
	}
	said := h.said
	err := h.sess.Sync(context.Background())
	if err != nil {
		require.Equal(h.t, lifecycle.ClassFenced, lifecycle.ClassOf(err), "%v", err)
		return false
	}
	h.said = nil
	for _, text := range said {
		h.texts[text] = true
	}
	return true
}

// replicates saves something and waits for the database, which must have all then. What was replicated
// before may have been deleted or lost since.
func (h *host) replicates() {
	h.say()
	if !h.syncs() || h.cut {
		return
	}
	log := h.log()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	err := h.sess.Replicated(ctx)
	var fenced *fleet.FencedError
	switch {
	case errors.As(err, &fenced), lifecycle.ClassOf(err) == lifecycle.ClassFenced, errors.Is(err, fleet.ErrGone):
	case err != nil:
		require.NoError(h.t, err)
	default:
		lines := h.lines()
		require.GreaterOrEqual(h.t, len(lines), len(log))
		require.True(h.t, slices.Equal(log, lines[:len(log)]), "it was replicated")
	}
}

func (h *host) cuts() {
	h.proxy.Drop()
	h.cut = true
}

func (h *host) heals() {
	h.proxy.Heal()
	h.cut = false
}

// losesReply has the next commit be without an answer.
func (h *host) losesReply() { h.proxy.CutReply("commit") }

// kill ends the process at once, and starts another one: with the files as they are, and nobody to
// give the lease back. The folder moves, since its locks are this process's.
func (h *host) kill() {
	h.proxy.Drop()
	if h.sess != nil {
		h.syncs()
		_ = h.sess.Flush(context.Background()) // what is being written could be copied in two halves
	}
	to := h.folder()
	require.NoError(h.t, copyFolder(h.dir, to))
	h.drop()
	require.NoError(h.t, os.RemoveAll(h.dir))
	h.said, h.dir = nil, to
	h.start()
	if !h.cut {
		h.proxy.Heal()
	}
}

// copyFolder copies a folder whose files may come and go.
func copyFolder(from, to string) error {
	return filepath.WalkDir(from, func(name string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(from, name)
		target := filepath.Join(to, rel)
		switch {
		case d.IsDir():
			return os.MkdirAll(target, 0o700)
		case d.Type()&fs.ModeSymlink != 0:
			link, err := os.Readlink(name)
			if err != nil {
				return nil //nolint:nilerr // it is gone
			}
			return os.Symlink(link, target)
		}
		data, err := os.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil {
			err = os.WriteFile(target, data, 0o600)
		}
		return err
	})
}

// close closes the session. What a fenced one had not saved is lost with it.
func (h *host) close() {
	if h.sess == nil {
		return
	}
	said := h.said
	err := h.sess.Close(context.Background())
	if err == nil {
		for _, text := range said {
			h.texts[text] = true
		}
	} else {
		require.Equal(h.t, lifecycle.ClassFenced, lifecycle.ClassOf(err), "%v", err)
	}
	h.sess, h.said = nil, nil
}

// continues opens the session as it is here, whoever has the lease.
func (h *host) continues() {
	if h.sess != nil && h.sess.Paused() != nil {
		h.close()
	}
	if h.sess != nil || h.store.Incarnation(h.id) == "" {
		return
	}
	s, err := h.store.Open(h.id)
	require.NoError(h.t, err)
	h.ship(s)
}

// takes takes the session from the fleet and continues it here.
func (h *host) takes() {
	if h.sess != nil && h.sess.Paused() == nil {
		return // it has it, or does not know better
	}
	h.close()
	if h.pull() {
		h.continues()
	}
}

// pull pulls the session, and reports whether it came.
func (h *host) pull() bool {
	had := []string(nil)
	if h.store.Incarnation(h.id) != "" {
		had = h.log()
	}
	x, err := h.f.Find(context.Background(), h.id.String())
	var p fleet.Pulled
	if err == nil {
		p, err = h.f.Pull(context.Background(), h.store, &x)
	}
	if had != nil {
		h.histories = append(h.histories, had)
	}
	var held *fleet.HeldError
	switch {
	case errors.As(err, &held), errors.Is(err, fleet.ErrNotFound):
		return false
	case err != nil && strings.Contains(err.Error(), "nothing of it is in the fleet yet"):
		return false
	case err != nil && fleetDown(err):
		return false
	}
	require.NoError(h.t, err)
	require.Equal(h.t, h.id, p.ID)
	require.Equal(h.t, p.Was == fleet.Diverged, p.Fork != session.ID{})
	return true
}

// fleetDown reports whether an error is of the network.
func fleetDown(err error) bool {
	text := err.Error()
	return slices.ContainsFunc([]string{"connect", "EOF", "reset", "closed", "broken pipe"}, func(s string) bool { return strings.Contains(text, s) })
}

// leaseEnds is what a minute without a word of its holder does.
func (m *model) leaseEnds() {
	_, err := m.db.Exec(context.Background(), `UPDATE lopen_data.sessions SET lease_until = clock_timestamp() - interval '1 ms' WHERE project = $1`, m.project)
	require.NoError(m.t, err)
}

// deletes removes the session from the fleet, in one of some examples.
func (h *host) deletes() {
	if rapid.IntRange(0, 9).Draw(h.t, "delete") != 0 {
		return
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

// restore makes the database that of an older backup.
func (m *model) restore() {
	if rapid.IntRange(0, 4).Draw(m.t, "restore") != 0 {
		return
	}
	ctx := context.Background()
	tx, err := m.db.Begin(ctx)
	require.NoError(m.t, err)
	defer func() { _ = tx.Rollback(ctx) }() // after the commit it does nothing
	var key, head int64
	err = tx.QueryRow(ctx, `SELECT session, head_seq FROM lopen_data.sessions WHERE project = $1 FOR UPDATE`, m.project).Scan(&key, &head)
	if errors.Is(err, pgx.ErrNoRows) || head < 2 {
		return
	}
	require.NoError(m.t, err)
	to := rapid.Int64Range(1, head-1).Draw(m.t, "record")
	_, err = tx.Exec(ctx, `DELETE FROM lopen_data.records WHERE session = $1 AND seq > $2`, key, to)
	require.NoError(m.t, err)
	_, err = tx.Exec(ctx, `UPDATE lopen_data.sessions SET head_seq = $2, head_sum = (SELECT sum FROM lopen_data.records WHERE session = $1 AND seq = $2) WHERE session = $1`, key, to)
	require.NoError(m.t, err)
	require.NoError(m.t, tx.Commit(ctx))
	m.lossy = true
	m.was = m.was[:min(len(m.was), int(to))]
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
