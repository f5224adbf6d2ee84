package fleet

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// A Check is what Doctor found of one thing.
type Check struct {
	Name  string `json:"name"`
	Found string `json:"found"`
	OK    bool   `json:"ok"`
	Mend  string `json:"mend,omitempty"` // what to do, if it is not OK
}

// CheckFailover is the name of the check of what a failover would cost.
const CheckFailover = "failover"

// Doctor looks at the database: whether it can be reached, its version, the tables, this user's
// rights, and what a failover would cost.
func (f *Fleet) Doctor(ctx context.Context) []Check {
	var all []Check
	add := func(name string, ok bool, mend, found string, args ...any) {
		c := Check{Name: name, Found: fmt.Sprintf(found, args...), OK: ok}
		if !ok {
			c.Mend = mend
		}
		all = append(all, c)
	}
	begun := time.Now()
	err := f.call(ctx, func(ctx context.Context, c *pgxpool.Conn) error {
		return f.look(ctx, c, begun, add)
	})
	if err != nil {
		add("connection", false, "is the server up, and may this machine reach it?", "%s: %s", f.Where(), Explain(err))
	}
	return all
}

// needed are the rights of a runner: names, and what it needs of each.
var needed = func() (n [2][]string) {
	add := func(right string, names ...string) {
		for _, name := range names {
			n[0], n[1] = append(n[0], name), append(n[1], right)
		}
	}
	tables := []string{"sessions", "records", "objects", "chunks", "links", "session_objects", "checkpoints", "tasks", "iterations", "plans"}
	add("SELECT", tables...)
	add("INSERT", tables...)
	add("UPDATE", "tasks", "iterations", "plans")
	add("DELETE", "tasks", "iterations")
	add("EXECUTE", "take_session(bigint, text, text, bigint, text, bigint)", "take_module(text, text[], text[], text, text, bigint)", "delete_session(bigint, bigint)", "sweep()")
	return n
}()

// leastServer is the oldest version of PostgreSQL that is known to work.
const leastServer = 130000

func (f *Fleet) look(ctx context.Context, c *pgxpool.Conn, begun time.Time, add func(name string, ok bool, mend, found string, args ...any)) error {
	var version, user, commit, standbys string
	var number int
	var there, writes bool
	var now time.Time
	err := c.QueryRow(ctx, `SELECT pg_catalog.left(current_setting('server_version'), 100), current_setting('server_version_num')::int, current_user::text,
		pg_catalog.left(current_setting('synchronous_commit'), 100), pg_catalog.left(current_setting('synchronous_standby_names'), 100), clock_timestamp(),
		to_regclass('lopen_data.schema') IS NOT NULL, NOT pg_is_in_recovery()`).Scan(&version, &number, &user, &commit, &standbys, &now, &there, &writes)
	if err != nil {
		return err
	}
	took := time.Since(begun)
	add("connection", true, "", "%s as %s, answered after %s", f.Where(), user, took.Round(time.Millisecond))
	add("server", number >= leastServer, "version 13 is the oldest that is tested", "PostgreSQL %s", version)
	add("primary", writes, "name all hosts in the URL: the one that can be written is found", "%s", map[bool]string{true: "it can be written", false: "it is a standby"}[writes])
	way, kept := f.Encryption()
	add("encryption", kept, MendEncryption, "%s", way)
	off := now.Sub(begun.Add(took / 2)).Abs()
	add("clock", true, "", "%s away from this machine's; only the clock of the database counts", off.Round(time.Millisecond))
	if !there {
		add("tables", false, "lopen fleet join makes them, or somebody else with lopen fleet sql", "there are none")
		return nil
	}
	s, err := readSchema(ctx, c, "")
	if err != nil {
		add("tables", false, "GRANT lopen_runner or lopen_reader TO "+user+": lopen fleet sql --roles", "they cannot be read: %s", Explain(err))
		return nil
	}
	err = s.usable()
	add("tables", err == nil, "lopen fleet join, or a newer lopen", "version %d, and this lopen knows %d", s.Version, SchemaVersion)
	var may []string
	rows, err := c.Query(ctx, `SELECT r.name || ' ' || r."right" FROM unnest($1::text[], $2::text[]) AS r(name, "right")
		WHERE NOT CASE r."right" WHEN 'EXECUTE' THEN has_function_privilege('lopen_data.' || r.name, r."right") WHEN 'DELETE' THEN has_table_privilege('lopen_data.' || r.name, r."right")
			ELSE has_any_column_privilege('lopen_data.' || r.name, r."right") END`, needed[0], needed[1])
	if err == nil {
		may, err = pgx.CollectRows(rows, pgx.RowTo[string])
	}
	if err != nil {
		return err
	}
	add("rights", len(may) == 0, "enough to look, not to ship: GRANT lopen_runner TO "+user+": lopen fleet sql --roles", "%s", map[bool]string{true: "all that a runner needs", false: "without " + strings.Join(may[:min(len(may), 4)], ", ")}[len(may) == 0])
	sync := standbys != ""
	add(CheckFailover, sync, "set synchronous_standby_names, else a failover may lose what was replicated last",
		"%s", map[bool]string{true: "a commit waits for " + standbys, false: "a commit waits for no standby"}[sync])
	return nil
}
