package pgtest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// Options says what a server is like. The zero value is one like the shared one.
type Options struct {
	Settings map[string]string // of postgresql.conf, in addition to those of every server
	Folder   string            // where the data folder is made: a small disk, say. See [Folder]
	TLS      bool              // clients must use TLS; URLs name the certificate
}

// A Server is one PostgreSQL server. Make one with [Start].
type Server struct {
	t       testing.TB // nil for the shared server, whose methods are not called
	name    string     // also its cluster_name, and its application_name at a primary
	dir     string     // has its log, its socket, its certificate, and data if no other folder is asked for
	data    string
	tls     bool
	primary *Server // of a standby

	port     atomic.Int32
	password atomic.Pointer[string] // of Owner

	mu       sync.Mutex // of what follows, and of each operation as a whole
	settings map[string]string
	cmd      *exec.Cmd     // nil before the first start
	exited   chan struct{} // closed when the postmaster has ended and was waited for
	spent    time.Duration // CPU time of earlier postmasters
	backups  int
}

// Start starts a server for the test. It is killed and removed when the test ends.
func Start(t testing.TB, o Options) *Server {
	t.Helper()
	Need(t)
	s, err := newServer(o)
	if err == nil {
		s.t = t
		t.Cleanup(s.close)
		err = s.found()
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// newServer makes the folders of a server, and nothing in them.
func newServer(o Options) (*Server, error) {
	h, err := theHome()
	if err != nil {
		return nil, err
	}
	s := &Server{name: h.name(), tls: o.TLS, settings: map[string]string{}}
	for name, value := range o.Settings {
		s.settings[name] = value
	}
	s.dir = filepath.Join(h.dir, s.name)
	if err := h.make(s.dir); err != nil {
		return nil, err
	}
	s.data = filepath.Join(s.dir, "data")
	if o.Folder != "" {
		dir := filepath.Join(o.Folder, s.name)
		if err := h.make(dir); err != nil {
			return nil, err
		}
		s.data = filepath.Join(dir, "data")
	}
	if s.tls {
		return s, s.certify()
	}
	return s, nil
}

// found makes the data folder, starts the server and makes its roles.
func (s *Server) found() error {
	secret := filepath.Join(s.dir, "password")
	if err := writeFile(secret, []byte(superuserPassword)); err != nil {
		return err
	}
	// Small segments: a server takes 30 MB instead of 60, and a small disk is full soon.
	if err := s.run("initdb", "--pgdata="+s.data, "--username="+Superuser, "--pwfile="+secret, "--auth=scram-sha-256",
		"--encoding=UTF8", "--no-locale", "--wal-segsize=1", "--no-sync"); err != nil {
		return err
	}
	if err := s.launchFirst(); err != nil {
		return err
	}
	return s.makeOwner()
}

// launchFirst starts the server on a port that is free.
func (s *Server) launchFirst() error {
	const tries = 10
	for n := 1; ; n++ {
		port, err := freePort()
		if err != nil {
			return err
		}
		s.port.Store(int32(port)) //nolint:gosec // below 1<<16
		err = s.launch()
		if n == tries || err == nil || !strings.Contains(err.Error(), "Address already in use") {
			return err
		}
	}
}

// launch starts the postmaster and waits until it takes connections.
func (s *Server) launch() error {
	if s.running() {
		return errors.New("start PostgreSQL: it runs")
	}
	if err := sweep(s.data); err != nil {
		return err
	}
	if err := s.configure(); err != nil {
		return err
	}
	log, err := os.OpenFile(s.log(), os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	info, err := log.Stat()
	if err != nil {
		return err
	}
	cmd, err := s.command("postgres", "-D", s.data, "-c", "cluster_name="+s.name)
	if err != nil {
		return err
	}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start PostgreSQL: %w", err)
	}
	exited := make(chan struct{})
	s.cmd, s.exited = cmd, exited
	go func() {
		defer close(exited)
		_ = cmd.Wait() // its log says why
	}()
	err = poll("PostgreSQL to take connections", func() (bool, error) {
		if !s.running() {
			return false, errors.New("it has ended")
		}
		status := pidFile(s.data)
		return status.pid == fmt.Sprint(cmd.Process.Pid) && (status.state == "ready" || status.state == "standby"), nil
	})
	if err != nil {
		return fmt.Errorf("start PostgreSQL: %w: its log:\n%s", err, tail(s.log(), info.Size()))
	}
	return nil
}

// running says whether there is a postmaster.
func (s *Server) running() bool {
	if s.cmd == nil {
		return false
	}
	select {
	case <-s.exited:
		return false
	default:
		return true
	}
}

// Start starts a server that was stopped or killed, or has crashed, on the same port and folder.
func (s *Server) Start() {
	s.t.Helper()
	s.do(s.launch)
}

// Stop ends the server in order: it breaks all connections and writes what it has to its folder.
func (s *Server) Stop() {
	s.t.Helper()
	s.do(s.stop)
}

func (s *Server) stop() error {
	if !s.running() {
		return nil
	}
	if err := thaw(s.name); err != nil {
		return err
	}
	if err := s.cmd.Process.Signal(syscall.SIGINT); err != nil {
		return fmt.Errorf("stop PostgreSQL: %w", err)
	}
	if err := poll("PostgreSQL to stop", func() (bool, error) { return !s.running(), nil }); err != nil {
		return fmt.Errorf("%w: its log:\n%s", err, tail(s.log(), 0))
	}
	s.spent += s.cmd.ProcessState.UserTime() + s.cmd.ProcessState.SystemTime()
	return nil
}

// Restart stops the server and starts it again.
func (s *Server) Restart() {
	s.t.Helper()
	s.do(func() error { return errors.Join(s.stop(), s.launch()) })
}

// Kill kills all processes of the server, as kill -9 does, and returns when none is left.
func (s *Server) Kill() {
	s.t.Helper()
	s.do(s.kill)
}

func (s *Server) kill() error {
	if s.cmd == nil {
		return nil
	}
	if s.running() {
		used, err := cpu(s.name)
		if err != nil {
			return err
		}
		s.spent += used
		_ = s.cmd.Process.Kill() // before its children: it starts no others, and its log has no crash
	}
	if err := killAll(s.name); err != nil {
		return err
	}
	<-s.exited
	return nil
}

// close kills and removes the server. It shows the end of the log of a test that has failed.
func (s *Server) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.t.Failed() {
		s.t.Logf("the log of PostgreSQL:\n%s", tail(s.log(), 0))
	}
	for _, err := range []error{remove(filepath.Dir(s.data)), remove(s.dir)} {
		if err != nil {
			s.t.Error(err)
		}
	}
	if s.cmd != nil {
		<-s.exited
	}
}

// Pause stops all processes of the server, as SIGSTOP does: connections stay open and the
// kernel takes new ones, but nothing answers.
func (s *Server) Pause() {
	s.t.Helper()
	s.do(func() error { return freeze(s.name) })
}

// Resume lets a paused server continue.
func (s *Server) Resume() {
	s.t.Helper()
	s.do(func() error { return thaw(s.name) })
}

// CPU is the time that all processes of the server have computed so far, those that have ended
// included, in steps of 10 ms. Children of a killed postmaster count as of the kill.
func (s *Server) CPU() time.Duration {
	s.t.Helper()
	var sum time.Duration
	s.do(func() error {
		used, err := cpu(s.name)
		sum = s.spent + used
		return err
	})
	return sum
}

// do is one operation on the server: it ends the test if it fails.
func (s *Server) do(operation func() error) {
	s.t.Helper()
	s.mu.Lock()
	err := operation()
	s.mu.Unlock()
	if err != nil {
		s.t.Fatal(err)
	}
}
