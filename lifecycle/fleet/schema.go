package fleet

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

//go:embed schema/*.sql
var schemaFiles embed.FS

// A migration brings the tables from the version before to its own. What it adds an older client
// does not use; what it takes away no client from least on uses any more.
type migration struct {
	file  string
	least int // the least version that a client that writes has to know afterwards
}

// migrations are all, in order: the first one makes version 1.
var migrations = []migration{{"0001_begin.sql", 1}}

// SchemaVersion is the version of the tables that this lopen makes and knows.
var SchemaVersion = len(migrations)

// rolesFile has the roles, which only a person makes.
const rolesFile = "roles.sql"

// migrationLock is the advisory lock of a migration. It ends with the transaction.
const migrationLock = 0x6c6f70656e // "lopen"

// SQL returns the statements that make the tables, for a database in which lopen may not, and
// with roles those that make the roles.
func SQL(roles bool) string {
	var b strings.Builder
	if roles {
		data, _ := schemaFiles.ReadFile("schema/" + rolesFile) // it is embedded
		return string(data)
	}
	b.WriteString("BEGIN;\n")
	for i, m := range migrations {
		data, _ := schemaFiles.ReadFile("schema/" + m.file) // it is embedded
		b.Write(data)
		fmt.Fprintf(&b, "\n%s;\n", m.note(i+1))
	}
	b.WriteString("COMMIT;\n")
	return b.String()
}

// note is the statement that records a migration.
func (m migration) note(version int) string {
	return fmt.Sprintf(`INSERT INTO lopen_data.schema (version, least_client) VALUES (%[1]d, %[2]d)
ON CONFLICT (one) DO UPDATE SET version = %[1]d, least_client = %[2]d, at = now()`, version, m.least)
}

// A Schema is the version of the tables in a database.
type Schema struct {
	Version     int // 0 if there are none
	LeastClient int // a client that knows less may not write
}

// Schema returns the version of the tables.
func (f *Fleet) Schema(ctx context.Context) (s Schema, err error) {
	err = f.call(ctx, func(ctx context.Context, c *pgxpool.Conn) (err error) {
		s, err = readSchema(ctx, c, "")
		return err
	})
	return s, err
}

// readSchema reads the version, and evaluates an expression with it, for its effect.
func readSchema(ctx context.Context, q interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}, expression string) (s Schema, err error) {
	err = q.QueryRow(ctx, `SELECT version, least_client, `+cmp.Or(expression, "NULL")+`::text FROM lopen_data.schema`).Scan(&s.Version, &s.LeastClient, nil)
	var pg *pgconn.PgError
	if errors.As(err, &pg) && (pg.Code == "42P01" || pg.Code == "3F000") || errors.Is(err, pgx.ErrNoRows) {
		return Schema{}, nil
	}
	return s, err
}

// usable returns an error unless this lopen may write into the tables.
func (s Schema) usable() error {
	switch {
	case s.Version == 0:
		return ErrNoSchema
	case s.Version < SchemaVersion:
		return fmt.Errorf("%w: version %d, and this lopen has version %d", ErrOldSchema, s.Version, SchemaVersion)
	case s.LeastClient > SchemaVersion:
		return fmt.Errorf("%w: one that knows version %d, and this one knows version %d", ErrNewSchema, s.LeastClient, SchemaVersion)
	}
	return nil
}

// Migrate brings the tables to SchemaVersion, all in one transaction, and returns the version that
// was there. Two at once wait for each other.
func (f *Fleet) Migrate(ctx context.Context) (was Schema, err error) {
	err = f.commit(ctx, func(ctx context.Context, tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SELECT `+confirmed); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1::bigint)`, int64(migrationLock)); err != nil {
			return err
		}
		// A statement that fails ends the transaction, so the table is looked for first.
		var there bool
		if err := tx.QueryRow(ctx, `SELECT to_regclass('lopen_data.schema') IS NOT NULL`).Scan(&there); err != nil {
			return err
		}
		if there {
			if was, err = readSchema(ctx, tx, ""); err != nil {
				return err
			}
		}
		for i := was.Version; i < len(migrations); i++ {
			data, err := schemaFiles.ReadFile("schema/" + migrations[i].file)
			if err != nil {
				return err
			}
			for _, sql := range []string{string(data), migrations[i].note(i + 1)} {
				if _, err := tx.Exec(ctx, sql, pgx.QueryExecModeSimpleProtocol); err != nil {
					return fmt.Errorf("%s: %w", migrations[i].file, err)
				}
			}
		}
		return nil
	})
	return was, err
}
