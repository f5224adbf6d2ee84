package pgtest

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// writeFile writes a file that only the servers' user can read.
func writeFile(name string, data []byte) error {
	if err := os.WriteFile(name, data, 0o600); err != nil {
		return err
	}
	return chown(name)
}

// command is a program of PostgreSQL, or one with a path, run as the servers' user.
func command(program string, args ...string) (*exec.Cmd, error) {
	if !filepath.IsAbs(program) {
		program = filepath.Join(binaries(), program)
	}
	cmd := exec.Command(program, args...)
	cmd.Dir = "/" // that user may not be able to enter the folder of the tests
	// Variables of the tests, PGDATA and PGPORT for example, do not reach it.
	cmd.Env = []string{"LC_ALL=C", "TZ=UTC", "PATH=" + os.Getenv("PATH")}
	return cmd, isolate(cmd)
}

// run runs a program of PostgreSQL to its end.
func run(program string, args ...string) error {
	cmd, err := command(program, args...)
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
