package pgtest

import (
	"bytes"
	"context"
	"fmt"
	"maps"
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
