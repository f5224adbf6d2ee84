package pgtest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

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
	cmd, err := command("postgres", "-D", s.data, "-c", "cluster_name="+s.name)
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
// It waits for its standbys to have everything, so that none of them may be paused.
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
