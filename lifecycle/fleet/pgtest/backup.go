package pgtest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// A Backup is a copy of a server's data folder, with its roles and their passwords.
type Backup struct {
	dir      string
	password *string
}

// Backup copies the data folder. A server that runs is stopped for that and started again.
func (s *Server) Backup() Backup {
	s.t.Helper()
	b := Backup{password: s.password.Load()}
	s.do(func() error {
		s.backups++
		b.dir = filepath.Join(s.dir, fmt.Sprintf("backup-%d", s.backups))
		return s.stopped(func() error { return copyFolder(s.data, b.dir) })
	})
	return b
}

// RestoreFrom puts the state of a backup back: what was committed since is gone. A server that runs
// is stopped for that and started again. The backup may be another server's of this test, and
// can be used more than once.
func (s *Server) RestoreFrom(b Backup) {
	s.t.Helper()
	s.do(func() error {
		return s.stopped(func() error {
			if err := sweep(s.data); err != nil { // of a killed server
				return err
			}
			if err := os.RemoveAll(s.data); err != nil {
				return err
			}
			s.password.Store(b.password)
			return copyFolder(b.dir, s.data)
		})
	})
}

// stopped does work while the server is stopped. Afterwards the server runs if it ran before.
func (s *Server) stopped(work func() error) error {
	ran := s.running()
	if err := s.stop(); err != nil {
		return err
	}
	err := work()
	if ran {
		err = errors.Join(err, s.launch())
	}
	return err
}

// copyFolder copies a folder with owners and modes, as the servers' user.
func copyFolder(from, to string) error {
	cmd := exec.Command("cp", "-a", from, to)
	if err := isolate(cmd); err != nil {
		return err
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("copy %s: %w: %s", from, err, out)
	}
	return nil
}
