package main

import (
	"context"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/loop"
	"github.com/lopen-dev/lopen/lifecycle/fleet/pgtest"
)

// What a hostile row may cost a command that meets it, beyond what the command takes without it.
const (
	rowMemory = 64 << 20
	rowTime   = time.Second
	rowFile   = 2 << 20 // the largest file that it may leave
)

// hostileRow is a database that somebody wrote into, and what the commands say of it; "" is nothing in particular.
type hostileRow struct {
	sql             string
	list, run, pull string
}

var hostileRows = map[string]hostileRow{
	"nothing":                     {list: "auth-", run: "goes on", pull: "from"},
	"a plan of 100 MB":            {sql: `UPDATE lopen_data.plans SET bytes = convert_to(repeat('- [ ] task' || chr(10), 9100000), 'UTF8')`, run: `the plan of auth in the fleet, revision [0-9]+ by .*: it has 100100000 bytes`, pull: "has 100100000 bytes: a plan in a fleet has at most"},
	"a plan of many lines":        {sql: `UPDATE lopen_data.plans SET bytes = convert_to('- [ ] a' || repeat(chr(10), 20001), 'UTF8')`, pull: "has 20008 bytes: a plan in a fleet has at most 524288 bytes, 20000 lines and 10000 tasks"},
	"a plan as large as may be":   {sql: `UPDATE lopen_data.plans SET bytes = convert_to(repeat('- [ ] a' || chr(10) || chr(10) || '# h' || chr(10) || chr(10), 4900), 'UTF8')`},
	"a plan of many tasks":        {sql: `UPDATE lopen_data.plans SET bytes = convert_to((SELECT string_agg('- [ ] t' || i || chr(10), '') FROM generate_series(1, 10000) i), 'UTF8')`},
	"a plan with NUL":             {sql: `UPDATE lopen_data.plans SET bytes = '\x2d205b205d206100620a'`, run: "line 1: a NUL byte", pull: "line 1: a NUL byte"},
	"a plan with front matter":    {sql: `UPDATE lopen_data.plans SET bytes = convert_to('---' || chr(10) || 'priority: [' || chr(10) || '---' || chr(10) || '- [ ] a' || chr(10), 'UTF8')`, pull: "the plan of auth in the fleet, revision [0-9]+ by .*: read front matter: .* not found.*1 [|] ---"},
	"a summary of 20 MB":          {sql: `UPDATE lopen_data.sessions SET summary = jsonb_build_object('name', repeat('x', 20000000))`, list: "the summary of session auth-.* has more than 8192 bytes"},
	"a summary that is packed":    {sql: `UPDATE lopen_data.sessions SET summary = jsonb_build_object('name', repeat('x', 300000))`, list: "the summary of session auth-.* has more than 8192 bytes"},
	"a host of 20 MB":             {sql: `UPDATE lopen_data.sessions SET host = E'\x1b[2J\n\rlopen: owned' || repeat('x', 20000000)`, list: `\\x1b\[2J\\n\\rlopen: ownedx`},
	"a host that holds it":        {sql: `UPDATE lopen_data.sessions SET host = E'\x1b[2J\nlopen: owned', holder = 'x', lease_until = now() + interval '1 minute'`, run: `runs on \\x1b\[2J\\nlopen: owned`, pull: `runs on \\x1b\[2J\\nlopen: owned`},
	"words of a terminal":         {sql: `UPDATE lopen_data.sessions SET status = E'\x1b[2Jx\ny', summary = jsonb_build_object('name', E'\x1b[2J\nlopen: owned\u202e', 'phase', E'\x1b\n', 'component', E'\x1b\n', 'exitReason', E'\nx', 'activeTask', E'\r')`},
	"times without end":           {sql: `UPDATE lopen_data.sessions SET lease_until = 'infinity', updated = 'infinity'; UPDATE lopen_data.plans SET lease_until = '-infinity', updated = 'infinity'`, list: "auth-"},
	"numbers below 0":             {sql: `UPDATE lopen_data.sessions SET head_seq = -5, base_seq = -7, bytes = -1; UPDATE lopen_data.plans SET revision = -3, open = -4, total = -2147483648`, list: "auth-", pull: "nothing of it is in the fleet yet"},
	"a record of 20 MB":           {sql: `UPDATE lopen_data.records SET bytes = decode(repeat('41', 20000000), 'hex') WHERE seq = 2`, pull: "record 2 has 20000000 bytes, and one has at most"},
	"a record of 8 MB":            {sql: `UPDATE lopen_data.records SET bytes = decode(repeat('41', 8000000), 'hex') WHERE seq = 2; UPDATE lopen_data.sessions SET bytes = 10000000`, pull: "what follows record 1 is no record"},
	"more than all":               {sql: `UPDATE lopen_data.sessions SET bytes = 1000`, pull: "have more than the 1000 bytes of all"},
	"more than there is room for": {sql: `UPDATE lopen_data.sessions SET bytes = 1000000000000000`, pull: "are free"},
	"a chunk of 20 MB":            {sql: `UPDATE lopen_data.chunks SET bytes = decode(repeat('41', 20000000), 'hex')`, pull: "the fleet has another content under its hash"},
	"chunks of nothing":           {sql: `UPDATE lopen_data.chunks SET bytes = ''; UPDATE lopen_data.objects SET size = 1000000000`, pull: "the fleet has another content under its hash|are free"},
	"a sum of 20 MB":              {sql: `UPDATE lopen_data.sessions SET head_sum = decode(repeat('41', 20000000), 'hex')`, pull: "do not add up"},
	"a checkpoint of 20 MB":       {sql: `UPDATE lopen_data.checkpoints SET lines = decode(repeat('41', 20000000), 'hex')`, pull: "checkpoint [0-9a-f]+: its lines have more than"},
	"many files":                  {sql: `INSERT INTO lopen_data.session_objects SELECT session, 'output/' || lpad(i::text, 9, '0'), 1, hash FROM generate_series(1, 101000) i, (SELECT session, hash FROM lopen_data.session_objects LIMIT 1) o`, pull: "more than 100000 in the fleet"},
	"many sessions":               {sql: `INSERT INTO lopen_data.sessions (project, id, incarnation, module, term, host, lease_until, head_seq, summary) SELECT project, 'auth-20200101-' || i, '00', 'auth', 0, repeat('h', 255), now(), 5, jsonb_build_object('name', repeat('n', 1300), 'origin', 'run') FROM lopen_data.sessions, generate_series(1, 15000) i`, list: "more than 10000 sessions|together"},
	"many that are none":          {sql: `INSERT INTO lopen_data.sessions (project, id, incarnation, module, term, host, lease_until) SELECT project, E'au\x1b[2J' || i, repeat('z', 2000), 'auth', 0, '', now() FROM lopen_data.sessions, generate_series(1, 2000) i`, list: "a session of the fleet is left out", pull: "from"},
	"a session of another module": {sql: `INSERT INTO lopen_data.sessions (project, id, incarnation, module, term, host, lease_until, head_seq, summary) SELECT project, 'evil-20260101-1', '00', 'auth', 0, '', now(), 5, '{"origin":"run"}' FROM lopen_data.sessions`, run: "left out", pull: "from"},
	"a row that is none":          {sql: `ALTER TABLE lopen_data.sessions ALTER host DROP NOT NULL; UPDATE lopen_data.sessions SET host = NULL`, list: "table sessions: it has a row that is none of lopen", run: "cannot be asked"},
	"an error of 20 MB":           {sql: `ALTER TABLE lopen_data.sessions RENAME TO was; CREATE FUNCTION lopen_data.boom() RETURNS text LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION '%', repeat('x', 20000000); END $$; CREATE VIEW lopen_data.sessions AS SELECT session, project, id, incarnation, module, term, holder, lopen_data.boom() AS host, lease_until, base_seq, head_seq, head_sum, bytes, status, summary, created, updated FROM lopen_data.was; ALTER VIEW lopen_data.sessions OWNER TO lopen; GRANT ALL ON ALL TABLES IN SCHEMA lopen_data TO lopen`, list: "says more at once than anything", run: "cannot be asked"},
	"an error of a terminal":      {sql: `ALTER TABLE lopen_data.sessions RENAME TO was; CREATE FUNCTION lopen_data.boom() RETURNS text LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION E'\x1b[2J\nlopen: owned%', repeat('x', 100000); END $$; CREATE VIEW lopen_data.sessions AS SELECT session, project, id, incarnation, module, term, holder, lopen_data.boom() AS host, lease_until, base_seq, head_seq, head_sum, bytes, status, summary, created, updated FROM lopen_data.was; ALTER VIEW lopen_data.sessions OWNER TO lopen; GRANT ALL ON ALL TABLES IN SCHEMA lopen_data TO lopen`, list: `\\x1b\[2J lopen: ownedx`, run: "cannot be asked"},
	"functions of its own":        {sql: `CREATE SCHEMA evil; GRANT USAGE ON SCHEMA evil TO public; CREATE FUNCTION evil.left(text, integer) RETURNS text LANGUAGE sql AS 'SELECT repeat(chr(27), 4000000)'; DO $$ BEGIN EXECUTE 'ALTER DATABASE ' || current_database() || ' SET search_path = evil, pg_catalog'; END $$`, list: "auth-", run: "goes on|tasks done", pull: "from"},
}

// Whoever may write to the database, and its owner, cost who reads it little; what is wrong is named, and nothing is left
// that stops the next run.
func TestHostileRows(t *testing.T) {
	t.Parallel()
	pgtest.Need(t)
	if testing.Short() {
		t.Skip("it makes a database for each of some thirty cases")
	}
	owner, work := pgtest.Database(t), t.TempDir()
	c, err := pgx.ParseConfig(owner)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(work, "pgpass"), []byte("*:*:*:*:"+c.Password+"\n"), 0o600))
	origin := filepath.Join(work, "origin")
	write(t, filepath.Join(origin, "docs/requirements/auth/SPECIFICATION.md"), "# Auth\n\n## Acceptance Criteria\n\n- [ ] one\n- [ ] two\n- [ ] three\n")
	write(t, filepath.Join(origin, "agent.sh"), "cat >/dev/null\necho \"$LOPEN_TASK\" >>work.txt\n")
	gitInit(t, origin)
	clone := func(name, database string) string {
		dir := filepath.Join(work, name)
		gitIn(t, work, "clone", "-q", origin, dir)
		gitIn(t, dir, "config", "user.email", "b@example.org")
		gitIn(t, dir, "config", "user.name", "B")
		u, err := url.Parse(owner)
		require.NoError(t, err)
		u.User, u.Path = url.User(u.User.Username()), "/"+database
		u.RawQuery += "&passfile=" + filepath.Join(work, "pgpass")
		must(t, dir, "fleet", "join", u.String(), "--yes")
		return dir
	}
	here := clone("here", c.Database)
	_, _ = command(t, here, "run", "auth", "--check", "true", "--max-iterations", "1", "--", "sh", "agent.sh").CombinedOutput() // exit 2: more is left
	attack := func(t *testing.T, row hostileRow, n string) measured {
		name := c.Database + "_" + n
		super(t, owner, "postgres", "CREATE DATABASE "+name+" TEMPLATE "+c.Database+" OWNER "+pgtest.Owner)
		t.Cleanup(func() { super(t, owner, "postgres", "DROP DATABASE "+name+" WITH (FORCE)") })
		there := clone(n, name)
		super(t, owner, name, row.sql)
		m := measured{
			list: runLimited(t, 0, there, "session", "list", "--fleet"),
			pull: runLimited(t, 0, there, "session", "pull", "auth"),
		}
		// One that has the session, and a plan of its own.
		write(t, filepath.Join(there, ".lopen/modules/auth/plan.md"), "# auth\n\n- [ ] one\n")
		m.run = runLimited(t, 0, there, "run", "auth", "--check", "true", "--max-iterations", "1", "--", "sh", "agent.sh")
		m.next = runLimited(t, 0, there, "run", "auth", "--no-resume", "--check", "true", "--max-iterations", "1", "--", "sh", "agent.sh")
		m.work = runLimited(t, 0, there, "work", "--fleet", "--dry-run")
		requireSmall(t, there)
		return m
	}
	n, base := 0, attack(t, hostileRows["nothing"], "nothing")
	for name, row := range hostileRows {
		n++
		id := fmt.Sprint("n", n)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := attack(t, row, id)
			require.Regexp(t, row.list, m.list.stdout+m.list.stderr)
			require.Regexp(t, row.pull, m.pull.stdout+m.pull.stderr)
			require.Regexp(t, row.run, m.run.stdout+m.run.stderr)
			require.Contains(t, []int{0, loop.ExitUser}, m.next.exit, m.next.stderr)
			m.compare(t, base)
		})
	}
}

// measured are the commands that met a hostile row.
type measured struct{ list, pull, run, next, work bounded }

func (m measured) compare(t *testing.T, base measured) {
	t.Helper()
	was := base.all()
	for i, b := range m.all() {
		requireHarmless(t, b.stdout+b.stderr)
		require.NotContains(t, b.stdout+b.stderr, "\nlopen: owned")
		if !underRace() {
			assert.Less(t, b.peak, was[i].peak+rowMemory, b.stderr[:min(len(b.stderr), 300)])
			assert.Less(t, b.cpu, was[i].cpu+rowTime, b.stderr[:min(len(b.stderr), 300)])
		}
	}
}

func (m measured) all() []bounded { return []bounded{m.list, m.pull, m.run, m.next, m.work} }

// super runs statements as the superuser.
func super(t *testing.T, of, database, sql string) {
	t.Helper()
	u, err := url.Parse(pgtest.Admin(of))
	require.NoError(t, err)
	u.Path = "/" + database
	ctx := context.Background() // also when the test has ended
	c, err := pgx.Connect(ctx, u.String())
	require.NoError(t, err)
	defer c.Close(ctx)
	_, err = c.Exec(ctx, sql, pgx.QueryExecModeSimpleProtocol)
	require.NoError(t, err, sql)
}

// requireSmall requires that no file below a folder is larger than what anything there needs.
func requireSmall(t *testing.T, dir string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			require.Less(t, info.Size(), int64(rowFile), path)
		}
		return err
	}))
}

func write(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}
