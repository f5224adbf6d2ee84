package pgtest

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

func TestPausedServerContinues(t *testing.T) {
	t.Parallel()
	s := Start(t, Options{})
	c, cut := connect(t, s.URL("postgres")), connect(t, s.URL("postgres"))
	s.Pause()
	_, err := cut.Exec(impatient(t), "select 1")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	_, err = pgx.Connect(impatient(t), s.URL("postgres"))
	require.ErrorIs(t, err, context.DeadlineExceeded)
	s.Resume()
	require.NoError(t, c.Ping(t.Context()))
	s.Pause()
	s.Stop()
	_, err = pgx.Connect(t.Context(), s.URL("postgres"))
	require.ErrorContains(t, err, "connection refused")
}

func TestSettings(t *testing.T) {
	t.Parallel()
	s := Start(t, Options{Settings: map[string]string{"work_mem": "1234kB", "application_name": `it's \ quoted`}})
	c := connect(t, s.URL("postgres"))
	require.Equal(t, "1234kB", ask[string](t, c, "show work_mem"))
	require.Equal(t, `it's \ quoted`, ask[string](t, connect(t, Admin(s.URL("postgres"))), "select reset_val from pg_settings where name = 'application_name'"))
	s.Set("work_mem", "2345kB")
	require.Equal(t, "2345kB", ask[string](t, connect(t, s.URL("postgres")), "show work_mem"))
	s.Set("max_connections", "33")
	require.Equal(t, "200", ask[string](t, connect(t, s.URL("postgres")), "show max_connections"))
	s.Restart()
	require.Error(t, c.Ping(t.Context()))
	require.Equal(t, "33", ask[string](t, connect(t, s.URL("postgres")), "show max_connections"))
	s.Stop()
	s.Set("work_mem", "3456kB")
	s.Start()
	require.Equal(t, "3456kB", ask[string](t, connect(t, s.Socket("postgres")), "show work_mem"))
}

func TestAStartThatFailsShowsTheLog(t *testing.T) {
	t.Parallel()
	s := Start(t, Options{})
	s.Set("shared_buffers", "many")
	s.Stop()
	require.ErrorContains(t, s.launch(), `invalid value for parameter "shared_buffers"`)
	s.Set("shared_buffers", "16MB")
	s.Start()
	require.ErrorContains(t, s.launch(), "it runs")
}

func TestPasswordAndBackup(t *testing.T) {
	t.Parallel()
	s := Start(t, Options{Folder: Folder(t), Fresh: true})
	other := Start(t, Options{})
	const id = "select system_identifier from pg_control_system()"
	require.NotEqual(t, ask[int](t, connect(t, Admin(s.URL("postgres"))), id), ask[int](t, connect(t, Admin(other.URL("postgres"))), id))
	old := s.Create("rows")
	c := connect(t, old)
	execute(t, c, "create table rows (n int)")
	execute(t, c, "insert into rows values (1)")
	backup := s.Backup()
	require.Error(t, c.Ping(t.Context()))
	s.SetPassword("it's new")
	_, err := pgx.Connect(t.Context(), old)
	require.ErrorContains(t, err, "28P01")
	for range 2 {
		c = connect(t, s.URL("rows"))
		execute(t, c, "insert into rows values (2)")
		require.Equal(t, 2, ask[int](t, c, "select count(*) from rows"))
		s.RestoreFrom(backup)
		require.Equal(t, old, s.URL("rows"))
		require.Equal(t, 1, ask[int](t, connect(t, old), "select count(*) from rows"))
	}
	other.RestoreFrom(backup)
	require.Equal(t, 1, ask[int](t, connect(t, other.URL("rows")), "select count(*) from rows"))
	s.Kill()
	s.RestoreFrom(backup)
	_, err = pgx.Connect(t.Context(), old)
	require.ErrorContains(t, err, "connection refused")
}

func TestTLS(t *testing.T) {
	t.Parallel()
	s := Start(t, Options{TLS: true})
	url := s.Create("rows")
	require.True(t, ask[bool](t, connect(t, url), "select ssl from pg_stat_ssl where pid = pg_backend_pid()"))
	require.True(t, ask[bool](t, connect(t, NewProxy(t, s.Addr()).URL(url)), "select ssl from pg_stat_ssl where pid = pg_backend_pid()"))
	_, err := pgx.Connect(t.Context(), url+"&sslmode=disable")
	require.ErrorContains(t, err, "28000")
	other := &Server{dir: Folder(t)}
	require.NoError(t, other.certify())
	_, err = pgx.Connect(t.Context(), url+"&sslrootcert="+other.certificate())
	require.ErrorContains(t, err, "certificate")
}

func TestCPU(t *testing.T) {
	t.Parallel()
	s := Start(t, Options{})
	c := connect(t, s.URL("postgres"))
	before := s.CPU()
	execute(t, c, "do $$ begin while clock_timestamp() < now() + interval '200 ms' loop end loop; end $$")
	used := s.CPU()
	require.Greater(t, used, before+20*time.Millisecond) // a share of 200 ms: others compute as well
	s.Kill()
	require.GreaterOrEqual(t, s.CPU(), used)
	s.Start()
	s.Restart()
	require.Greater(t, s.CPU(), used)
}

// TestPromotedStandbyHasWhatWasAcknowledged kills the primary while rows are inserted.
func TestPromotedStandbyHasWhatWasAcknowledged(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short")
	}
	primary := Start(t, Options{TLS: true})
	url := primary.Create("rows")
	execute(t, connect(t, url), "create table rows (worker int, n int)")
	standby := primary.Standby(t)
	standby.Synchronous()
	const workers, enough = 4, 100
	var last [workers]int // acknowledged
	var all sync.WaitGroup
	var many sync.WaitGroup
	for w := range workers {
		c := connect(t, url)
		many.Add(1)
		all.Go(func() {
			for n := 1; ; n++ {
				if _, err := c.Exec(context.Background(), "insert into rows values ($1, $2)", w, n); err != nil {
					if n <= enough {
						many.Done()
					}
					return
				}
				last[w] = n
				if n == enough {
					many.Done()
				}
			}
		})
	}
	many.Wait()
	primary.Kill()
	all.Wait()
	_, err := connect(t, standby.URL("rows")).Exec(t.Context(), "insert into rows values (0, 0)")
	require.ErrorContains(t, err, "25006", "a standby takes no writes")
	standby.Promote()
	c := connect(t, standby.URL("rows"))
	for w, n := range last {
		require.Equal(t, n, ask[int](t, c, fmt.Sprintf("select count(*) from rows where worker = %d and n <= %d", w, n)))
	}
	execute(t, c, "insert into rows values (0, 0)")
}

func TestSynchronousCommitWaitsForTheStandby(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short")
	}
	primary := Start(t, Options{})
	url := primary.Create("rows")
	c := connect(t, url)
	execute(t, c, "create table rows (n int)")
	standby := primary.Standby(t)
	standby.Synchronous()
	standby.Kill()
	_, err := c.Exec(impatient(t), "insert into rows values (1)")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	standby.Start()
	execute(t, connect(t, url), "insert into rows values (2)")
	c = connect(t, standby.URL("rows"))
	require.NoError(t, poll("the row at the standby, which has it before it shows it", func() (there bool, err error) {
		err = c.QueryRow(t.Context(), "select exists (select from rows where n = 2)").Scan(&there)
		return there, err
	}))
}
