package pgtest

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A home is the folder of all servers of this process, with the reaper that removes it.
type home struct {
	dir    string
	reaper *exec.Cmd

	mu      sync.Mutex
	in      io.WriteCloser // the reaper's standard input
	out     io.Reader      // its standard error
	folders int
}

// theHome makes the folder and starts the reaper once.
var theHome = sync.OnceValues(func() (*home, error) {
	parent, err := roomy()
	if err != nil {
		return nil, err
	}
	h := &home{dir: filepath.Join(parent, "pgtest-"+strings.ToLower(rand.Text()[:12]))}
	if h.reaper, h.in, h.out, err = startReaper(); err != nil {
		return nil, fmt.Errorf("start the reaper: %w", err)
	}
	started.Store(h)
	return h, h.make(h.dir)
})

// started is the home if there is one.
var started atomic.Pointer[home]

// end lets the reaper end all servers, and waits for it.
func end() error {
	h := started.Load()
	if h == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.in.Close(); err != nil {
		return err
	}
	why, _ := io.ReadAll(h.out)
	if err := h.reaper.Wait(); err != nil {
		return fmt.Errorf("reap the servers: %w: %s", err, why)
	}
	if s := sharedRunning.Load(); s != nil {
		<-s.exited
	}
	return nil
}

// make makes a folder of which the reaper knows before it exists.
func (h *home) make(dir string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, err := fmt.Fprintln(h.in, dir); err != nil {
		return fmt.Errorf("tell the reaper of %s: %w", dir, err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	return chown(dir)
}

// name is a new name for a server. It has the name of the home, so that a kill of all processes
// of that name is one of all servers. All names are of one length: none begins with another.
func (h *home) name() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.folders++
	return fmt.Sprintf("%s-%05d", filepath.Base(h.dir), h.folders)
}

// Folder is a fresh folder that the servers' user can reach, which a folder of
// [testing.T.TempDir] need not be. A test can mount a small disk on it and give it as
// [Options.Folder]. It is removed when the test ends.
func Folder(t testing.TB) string {
	t.Helper()
	Need(t)
	h, err := theHome()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(h.dir, h.name())
	if err := h.make(dir); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// maxParent is how long a folder's name may be: that of a Unix socket in it has at most 107 bytes.
const maxParent = 40

// roomy is a folder for the home. One in memory is preferred, since a server writes 30 MB
// before it does anything.
func roomy() (string, error) {
	const enough = 2 << 30
	if free("/dev/shm") >= enough && reachable("/dev/shm") {
		return "/dev/shm", nil
	}
	for _, dir := range []string{os.TempDir(), "/tmp", "/var/tmp"} {
		if len(dir) <= maxParent && reachable(dir) {
			return dir, nil
		}
	}
	return "", errors.New("find a folder for PostgreSQL: its user can reach no temporary folder")
}

// reachable says whether every user can enter a folder, or this process runs servers as itself.
func reachable(dir string) bool {
	if os.Geteuid() != 0 {
		return true
	}
	for {
		info, err := os.Stat(dir)
		if err != nil || info.Mode()&0o001 == 0 {
			return false
		}
		if up := filepath.Dir(dir); up != dir {
			dir = up
			continue
		}
		return true
	}
}

// patience is how long anything may take. It is long: machines that run tests are slow.
const patience = time.Minute

// poll waits until done says so. It asks less and less often: some answers take a look at all processes.
func poll(what string, done func() (bool, error)) error { return pollFor(patience, what, done) }

func pollFor(most time.Duration, what string, done func() (bool, error)) error {
	late := time.NewTimer(most)
	defer late.Stop()
	for pause := time.Millisecond; ; pause = min(2*pause, 32*time.Millisecond) {
		ok, err := done()
		if ok || err != nil {
			return err
		}
		again := time.NewTimer(pause)
		select {
		case <-again.C:
		case <-late.C:
			again.Stop()
			return fmt.Errorf("wait for %s: it did not come in %s", what, most)
		}
	}
}
