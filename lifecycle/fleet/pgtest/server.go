package pgtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Options says what a server is like. The zero value is one like the shared one.
type Options struct {
	Settings map[string]string // of postgresql.conf, in addition to those of every server
	Folder   string            // where the data folder is made: a small disk, say. See [Folder]
	TLS      bool              // clients must use TLS; URLs name the certificate
	Fresh    bool              // initdb makes it, which takes half a second; the other servers of this process have one system identifier
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
		err = s.initialize(o.Fresh)
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

// initialize makes the data folder, starts the server and makes its roles.
func (s *Server) initialize(fresh bool) error {
	if fresh {
		if err := initdb(s.data); err != nil {
			return err
		}
	} else {
		pristine, err := template()
		if err != nil {
			return err
		}
		if err := copyFolder(pristine, s.data); err != nil {
			return err
		}
	}
	if err := s.launchFirst(); err != nil {
		return err
	}
	return s.makeOwner()
}

// template is the data folder of a server that never ran. A copy takes a tenth of initdb's time.
var template = sync.OnceValues(func() (string, error) {
	h, err := theHome()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(h.dir, h.name())
	return dir, initdb(dir)
})

// initdb makes a data folder.
func initdb(data string) error {
	secret := data + ".password"
	if err := writeFile(secret, []byte(superuserPassword)); err != nil {
		return err
	}
	defer os.Remove(secret)
	// Small segments: a server takes 30 MB instead of 60, and a small disk is full soon.
	return run("initdb", "--pgdata="+data, "--username="+Superuser, "--pwfile="+secret, "--auth=scram-sha-256",
		"--encoding=UTF8", "--no-locale", "--wal-segsize=1", "--no-sync")
}

// launchFirst starts the server on a port that is free.
func (s *Server) launchFirst() error {
	const tries = 10
	for n := 1; ; n++ {
		port, err := freePort()
		if err != nil {
			return err
		}
		s.port.Store(int32(port))
		err = s.launch()
		if n == tries || err == nil || !strings.Contains(err.Error(), "Address already in use") {
			return err
		}
	}
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
