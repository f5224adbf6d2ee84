package fleet_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/fleet/pgtest"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

// TestForeignDatabase changes what the database has of a session as somebody does who may write to it:
// nothing of it comes in, nothing outside of the store is touched, and what is here stays.
func TestForeignDatabase(t *testing.T) {
	t.Parallel()
	for name, sql := range map[string]string{
		"a line":                `UPDATE lopen_data.records SET bytes = set_byte(bytes, 60, 88) WHERE seq = 2`,
		"a line is missing":     `DELETE FROM lopen_data.records WHERE seq = 3`,
		"another line":          `UPDATE lopen_data.records SET bytes = (SELECT bytes FROM lopen_data.records WHERE seq = 2) WHERE seq = 3`,
		"a line that is none":   `UPDATE lopen_data.records SET bytes = '\x00ff0a' WHERE seq = 2`,
		"the sum":               `UPDATE lopen_data.sessions SET head_sum = '\x00'`,
		"the head":              `UPDATE lopen_data.sessions SET head_seq = head_seq - 1`,
		"a head beyond":         `UPDATE lopen_data.sessions SET head_seq = head_seq + 1`,
		"the base":              `UPDATE lopen_data.sessions SET base_seq = 3`,
		"a content":             `UPDATE lopen_data.chunks SET bytes = 'x'`,
		"a content is missing":  `DELETE FROM lopen_data.chunks WHERE n = 0`,
		"a huge content":        `UPDATE lopen_data.objects SET size = 4611686018427387904`,
		"a name that leads out": `INSERT INTO lopen_data.session_objects SELECT session, '../../../out', 1, (SELECT hash FROM lopen_data.objects LIMIT 1) FROM lopen_data.sessions`,
		"an absolute name":      `INSERT INTO lopen_data.session_objects SELECT session, '/tmp/lopen-out', 1, (SELECT hash FROM lopen_data.objects LIMIT 1) FROM lopen_data.sessions`,
		"a lock":                `INSERT INTO lopen_data.session_objects SELECT session, '.lock', 1, (SELECT hash FROM lopen_data.objects LIMIT 1) FROM lopen_data.sessions`,
		"a segment":             `INSERT INTO lopen_data.session_objects SELECT session, 'journal-9-1.jsonl', 1, (SELECT hash FROM lopen_data.objects LIMIT 1) FROM lopen_data.sessions`,
		"a checkpoint's lines":  `UPDATE lopen_data.checkpoints SET lines = 'x' || lines`,
		"a checkpoint's root":   `UPDATE lopen_data.checkpoints SET root = NULL, rules = NULL`,
		"an ID":                 `UPDATE lopen_data.sessions SET id = '../../etc-20260101-1'`,
		"an incarnation":        `UPDATE lopen_data.sessions SET incarnation = 'ffffffffffffffff'`,
		"the summary":           `UPDATE lopen_data.sessions SET summary = '[1]'`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := pgtest.Database(t)
			a, b := newMachine(t, "a", url), newMachine(t, "b", url)
			a.write(t, "main.go", "package main\n")
			s, err := a.store.Create(t.Context(), "auth")
			require.NoError(t, err)
			sess, err := a.Ship(a.store, s)
			require.NoError(t, err)
			for _, id := range []string{"one", "two", "three"} {
				task(t, sess, id, session.TaskComplete)
				require.NoError(t, sess.Sync(t.Context()))
			}
			_, _, err = sess.Checkpoint(t.Context(), checkpoint.Manual, "")
			require.NoError(t, err)
			require.NoError(t, sess.Replicated(t.Context()))
			require.NoError(t, sess.Close(t.Context()))
			c, err := pgx.Connect(t.Context(), url)
			require.NoError(t, err)
			defer c.Close(t.Context())
			_, err = c.Exec(t.Context(), sql, pgx.QueryExecModeSimpleProtocol)
			require.NoError(t, err)

			x, err := b.Find(t.Context(), "")
			if err == nil {
				_, err = b.Pull(t.Context(), b.store, &x)
			}
			if name != "the summary" { // nothing is decided by it
				require.Error(t, err)
			}
			infos, listErr := b.store.List()
			require.NoError(t, listErr)
			if err != nil {
				require.Empty(t, infos)
				left, readErr := filepath.Glob(filepath.Join(b.dir, ".lopen", ".import-*"))
				require.NoError(t, readErr)
				require.Empty(t, left)
			}
			_, err = os.Lstat("/tmp/lopen-out")
			require.ErrorIs(t, err, os.ErrNotExist)
			_, err = os.Lstat(filepath.Join(b.dir, "out"))
			require.ErrorIs(t, err, os.ErrNotExist)
			_, err = lifecycle.Open(b.dir, lifecycle.Options{})
			require.NoError(t, err)
		})
	}
}
