package fleet_test

import (
	"context"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/fleet"
	"github.com/lopen-dev/lopen/lifecycle/fleet/pgtest"
)

// Of a session that is being shipped nothing comes into tables that need a newer client, or a newer
// version; it comes when they can be used again.
func TestSchemaOfAnotherVersion(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		set  string
		want error
	}{
		"newer":                                {"version = 9, least_client = 9", fleet.ErrNewSchema},
		"older":                                {"version = -1", fleet.ErrOldSchema},
		"a newer one that this client may use": {"version = 9", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := pgtest.Database(t)
			o, log := logged()
			a := newMachineWith(t, "a", url, o)
			sess := a.create(t, "auth")
			say(t, sess, "1")
			arrives(t, sess)
			execute(t, url, "UPDATE lopen_data.schema SET "+c.set)
			say(t, sess, "2")
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			err := sess.Replicated(ctx)
			if c.want == nil {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, c.want)
			require.ErrorIs(t, sess.Err(), c.want)
			require.Contains(t, log.String(), c.want.Error())
			require.Equal(t, []string{"1"}, textsOf(t, there(t, url, sess.ID(), sess.Incarnation())))
			requireNoWrite(t, a, c.want)

			execute(t, url, "UPDATE lopen_data.schema SET version = 1, least_client = 1")
			arrives(t, sess)
			requireSame(t, url, a, sess.ID())
			require.NoError(t, sess.Err())
		})
	}
}

// requireNoWrite requires that all that writes into the tables refuses, and that reading does not.
func requireNoWrite(t *testing.T, m *machine, want error) {
	t.Helper()
	ctx := t.Context()
	all, err := m.List(ctx, "")
	require.NoError(t, err)
	require.Len(t, all, 1)
	plans(t, m, "other")
	_, err = m.PushPlan(ctx, m.store, "other", false)
	require.ErrorIs(t, err, want)
	_, _, err = m.Claim(ctx, nil, nil)
	require.ErrorIs(t, err, want)
	_, err = m.Pull(ctx, m.store, &all[0])
	require.ErrorIs(t, err, want)
	require.ErrorIs(t, m.Delete(ctx, &all[0]), want)
	_, _, err = m.Sweep(ctx)
	require.ErrorIs(t, err, want)
}

// plans writes a plan of a module with one task.
func plans(t *testing.T, m *machine, module string) {
	t.Helper()
	require.NoError(t, m.store.CreatePlan(module, []byte("# "+module+"\n\n- [ ] one\n")))
}

func TestMigrateAtOnce(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	const many = 4
	errs, was := make([]error, many), make([]fleet.Schema, many)
	var wg sync.WaitGroup
	for i := range many {
		f := open(t, "a", url)
		wg.Go(func() { was[i], errs[i] = f.Migrate(t.Context()) })
	}
	wg.Wait()
	first := 0
	for i, err := range errs {
		require.NoError(t, err)
		if was[i].Version == 0 {
			first++
		}
	}
	require.Equal(t, 1, first)
	s, err := open(t, "a", url).Schema(t.Context())
	require.NoError(t, err)
	require.Equal(t, fleet.Schema{Version: fleet.SchemaVersion, LeastClient: 1}, s)
}

// A role that may not make tables changes nothing, and is told so; one that only reads looks, one with
// the rights of a runner ships.
func TestRights(t *testing.T) {
	t.Parallel()
	s := pgtest.Start(t, pgtest.Options{})
	owner := s.Create("fleet")
	admin := pgtest.Admin(owner)
	execute(t, admin, "CREATE ROLE nobody LOGIN PASSWORD 'secret'")
	as := func(user string) string {
		u, err := url.Parse(owner)
		require.NoError(t, err)
		u.User = url.UserPassword(user, "secret")
		return u.String()
	}
	nobody := open(t, "a", as("nobody"))
	_, err := nobody.Migrate(t.Context())
	require.ErrorContains(t, err, "permission denied")
	require.Contains(t, fleet.Explain(err), "lopen fleet sql --roles")
	require.False(t, ask[bool](t, owner, "SELECT to_regclass('lopen_data.schema') IS NOT NULL"))

	a := newMachine(t, "a", owner)
	sess := a.create(t, "auth")
	arrives(t, sess)
	require.NoError(t, sess.Close(t.Context()))
	execute(t, admin, fleet.SQL(true))
	execute(t, admin, "CREATE ROLE reader LOGIN PASSWORD 'secret' IN ROLE lopen_reader; CREATE ROLE runner LOGIN PASSWORD 'secret' IN ROLE lopen_runner")
	_, err = nobody.List(t.Context(), "")
	require.ErrorContains(t, err, "permission denied")
	reader := open(t, "b", as("reader"))
	x, err := reader.Find(t.Context(), "auth")
	require.NoError(t, err)
	reads(t, reader, "auth")
	require.ErrorContains(t, reader.Delete(t.Context(), &x), "permission denied")
	b := &machine{dir: t.TempDir(), Fleet: open(t, "b", as("runner"))}
	b.store, _, err = lifecycle.Init(b.dir, lifecycle.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.store.Close(context.Background())) })
	p := b.pull(t, "auth")
	sess = b.resume(t, p.ID)
	say(t, sess, "runner")
	arrives(t, sess)
	requireSame(t, owner, b, p.ID)
	require.NoError(t, sess.Close(t.Context()))
	require.NoError(t, b.Delete(t.Context(), ptr(find(t, b, "auth"))))
	_, _, err = b.Sweep(t.Context())
	require.NoError(t, err)
}

func ptr[T any](v T) *T { return &v }

func find(t *testing.T, m *machine, name string) fleet.Found {
	t.Helper()
	x, err := m.Find(t.Context(), name)
	require.NoError(t, err)
	return x
}

// A password that changed is read again from its file, without a restart.
func TestPasswordChanges(t *testing.T) {
	t.Parallel()
	s := pgtest.Start(t, pgtest.Options{})
	u, err := url.Parse(s.Create("fleet"))
	require.NoError(t, err)
	password, _ := u.User.Password()
	file := filepath.Join(t.TempDir(), "pgpass")
	write := func(password string) {
		require.NoError(t, os.WriteFile(file, []byte(u.Host+":*:*:"+password+"\n"), 0o600))
	}
	write(password)
	u.User = url.User(u.User.Username())
	q := u.Query()
	q.Set("passfile", file)
	u.RawQuery = q.Encode()
	o, log := logged()
	a := newMachineWith(t, "a", u.String(), o)
	sess := a.create(t, "auth")
	say(t, sess, "1")
	arrives(t, sess)

	s.SetPassword("another one")
	s.Restart() // so that no connection is left
	say(t, sess, "2")
	until(t, "the shipper is refused", func() bool { return sess.Err() != nil && strings.Contains(sess.Err().Error(), "28P01") })
	require.Contains(t, fleet.Explain(sess.Err()), "PGPASSFILE")
	write("another one")
	arrives(t, sess)
	requireSame(t, s.URL("fleet"), a, sess.ID())
	require.NotContains(t, log.String(), password)
	require.NotContains(t, log.String(), "another one")
}
