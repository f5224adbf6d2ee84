package pgtest

import (
	"fmt"
	"net"
	"net/url"
	"os/exec"
	"path/filepath"
	"testing"
)

// pooler is the path of PgBouncer, "" where it is not.
func pooler() string {
	for _, name := range []string{"pgbouncer", "/usr/sbin/pgbouncer"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// Pooler starts a PgBouncer in front of the server of a URL, and returns the URL through it. It pools
// transactions: each one of a client may be on another of its few connections to the server, and nothing
// else of a client's session stays. The test is skipped where there is no PgBouncer; it is ended with the
// test.
func Pooler(t testing.TB, to string, connections int) string {
	t.Helper()
	Need(t)
	if pooler() == "" {
		t.Skip("no PgBouncer here; on Debian: apt-get install pgbouncer")
	}
	through, err := startPooler(t, to, connections)
	if err != nil {
		t.Fatal(err)
	}
	return through
}

func startPooler(t testing.TB, to string, connections int) (through string, err error) {
	u, err := url.Parse(to)
	if err != nil {
		return "", err
	}
	port, err := freePort()
	if err != nil {
		return "", err
	}
	dir := Folder(t)
	if err := configurePooler(dir, u, port, connections); err != nil {
		return "", err
	}
	cmd, err := command(pooler(), "-q", filepath.Join(dir, "pgbouncer.ini"))
	if err != nil {
		return "", err
	}
	if err := cmd.Start(); err != nil {
		return "", fmt.Errorf("start PgBouncer: %w", err)
	}
	log, ended := filepath.Join(dir, "log"), make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // its log says why
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
		if t.Failed() {
			t.Logf("the log of PgBouncer:\n%s", tail(log, 0))
		}
	})
	u.Host = fmt.Sprintf("127.0.0.1:%d", port)
	return u.String(), poll("PgBouncer to take connections", func() (bool, error) {
		select {
		case <-ended:
			return false, fmt.Errorf("it has ended: %s", tail(log, 0))
		default:
		}
		c, err := net.Dial("tcp", u.Host)
		if err != nil {
			return false, nil
		}
		return true, c.Close()
	})
}

// configurePooler writes the files of a PgBouncer in front of the server of a URL.
func configurePooler(dir string, to *url.URL, port, connections int) error {
	password, _ := to.User.Password()
	users := filepath.Join(dir, "users")
	if err := writeFile(users, fmt.Appendf(nil, "%q %q\n", to.User.Username(), password)); err != nil {
		return err
	}
	return writeFile(filepath.Join(dir, "pgbouncer.ini"), fmt.Appendf(nil, `[databases]
* = host=%s port=%s
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = scram-sha-256
auth_file = %s
logfile = %s
pool_mode = transaction
default_pool_size = %d
max_client_conn = 1000
server_round_robin = 1
`, to.Hostname(), to.Port(), port, users, filepath.Join(dir, "log"), connections))
}
