package pgtest

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5"
)

// Set changes a setting of the server. If it runs, Set returns when new connections have the
// value; open ones have it at their next statement. Some settings need [Server.Restart].
func (s *Server) Set(name, value string) {
	s.t.Helper()
	s.do(func() error { return s.set(name, value) })
}

func (s *Server) set(name, value string) error {
	s.settings[name] = value
	if !s.running() {
		return s.configure()
	}
	before, err := s.loaded()
	if err != nil {
		return err
	}
	if err := s.configure(); err != nil {
		return err
	}
	if err := s.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		return fmt.Errorf("reload the settings: %w", err)
	}
	return poll("the settings to be reloaded", func() (bool, error) {
		now, err := s.loaded()
		return now != before, err
	})
}

// loaded is when the postmaster read the settings: a new connection has that from it.
func (s *Server) loaded() (when string, err error) {
	err = s.asSuperuser("postgres", func(ctx context.Context, c *pgx.Conn) error {
		return c.QueryRow(ctx, "select pg_conf_load_time()::text").Scan(&when)
	})
	return when, err
}

// configure writes postgresql.conf and pg_hba.conf.
func (s *Server) configure() error {
	settings := map[string]string{
		"listen_addresses":            "127.0.0.1",
		"port":                        fmt.Sprint(s.port.Load()),
		"unix_socket_directories":     s.dir,
		"dynamic_shared_memory_type":  "mmap", // in the data folder: nothing of it survives that
		"fsync":                       "off",
		"full_page_writes":            "off",
		"max_connections":             "200",
		"max_wal_senders":             "5",
		"max_wal_size":                "64MB",
		"min_wal_size":                "5MB",
		"shared_buffers":              "16MB",
		"timezone":                    "UTC",
		"wal_retrieve_retry_interval": "100ms", // a standby finds a primary that is back
		"log_line_prefix":             "%m [%p] ",
	}
	if s.tls {
		settings["ssl"] = "on"
		settings["ssl_cert_file"] = s.certificate()
		settings["ssl_key_file"] = s.key()
	}
	maps.Copy(settings, s.settings)
	var conf bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		fmt.Fprintf(&conf, "%s = '%s'\n", name, strings.NewReplacer(`'`, `''`, `\`, `\\`).Replace(settings[name]))
	}
	host := "host"
	if s.tls {
		host = "hostssl"
	}
	hba := fmt.Sprintf("local all all scram-sha-256\n%[1]s all all 127.0.0.1/32 scram-sha-256\n%[1]s replication all 127.0.0.1/32 scram-sha-256\n", host)
	for name, text := range map[string]string{"postgresql.conf": conf.String(), "pg_hba.conf": hba} {
		if err := writeFile(filepath.Join(s.data, name), []byte(text)); err != nil {
			return err
		}
	}
	return nil
}

// writeFile writes a file that only the servers' user can read.
func writeFile(name string, data []byte) error {
	if err := os.WriteFile(name, data, 0o600); err != nil {
		return err
	}
	return own(name)
}

// command is a program of PostgreSQL, run as the servers' user.
func (s *Server) command(program string, args ...string) (*exec.Cmd, error) {
	cmd := exec.Command(filepath.Join(binaries(), program), args...)
	cmd.Dir = s.dir
	cmd.Env = []string{"LC_ALL=C", "TZ=UTC", "PATH=" + os.Getenv("PATH")} // no PGDATA, PGPORT and the like
	return cmd, isolate(cmd)
}

// run runs a program of PostgreSQL to its end.
func (s *Server) run(program string, args ...string) error {
	cmd, err := s.command(program, args...)
	if err != nil {
		return err
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("run %s: %w:\n%s", program, err, out)
	}
	return nil
}

func (s *Server) log() string { return filepath.Join(s.dir, "log") }

// tail is the end of a log, but nothing that was there at an earlier size.
func tail(file string, from int64) string {
	const most = 4 << 10
	data, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	data = data[min(from, int64(len(data))):]
	return string(data[max(0, len(data)-most):])
}

// status is what postmaster.pid says.
type status struct {
	pid    string
	memory string // the ID of its segment of shared memory
	state  string // "ready" if it takes connections, "standby" if these can only read
}

// pidFile reads postmaster.pid. What is not there yet is empty.
func pidFile(data string) (s status) {
	text, _ := os.ReadFile(filepath.Join(data, "postmaster.pid"))
	lines := append(strings.Split(string(text), "\n"), make([]string, 8)...)
	s.pid, s.state = strings.TrimSpace(lines[0]), strings.TrimSpace(lines[7])
	if key := strings.Fields(lines[6]); len(key) == 2 {
		s.memory = key[1]
	}
	return s
}

// freePort is a port on which nothing listens. It is none of those that the system gives to
// outgoing connections, so that it is still free when the server starts again.
func freePort() (int, error) {
	const first, count, tries = 10000, 20000, 100
	var err error
	for range tries {
		var b [2]byte
		_, _ = rand.Read(b[:])
		port := first + int(binary.BigEndian.Uint16(b[:]))%count
		var l net.Listener
		if l, err = net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			return port, l.Close()
		}
	}
	return 0, fmt.Errorf("find a free port: %w", err)
}
