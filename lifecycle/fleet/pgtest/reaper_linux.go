package pgtest

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
)

// reaperVar makes a test binary the reaper of another process of it.
const reaperVar = "LOPEN_PGTEST_REAPER"

// init turns the process into the reaper before it does anything else: a TestMain that does not
// call Main must not run the tests a second time.
func init() {
	if os.Getenv(reaperVar) == "" {
		return
	}
	if err := reap(os.Stdin); err != nil {
		fmt.Fprint(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// startReaper starts this program as the reaper. in takes the folders of servers, one a line;
// out has what failed.
func startReaper() (cmd *exec.Cmd, in io.WriteCloser, out io.Reader, err error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, nil, nil, err
	}
	cmd = exec.Command(exe)
	cmd.Dir = "/"
	// The race detector waits a second before a process ends.
	cmd.Env = append(os.Environ(), reaperVar+"=1", "GORACE=atexit_sleep_ms=0")
	// A session of its own: no signal of the terminal, and no kill of the tests' group, reaches it.
	// It has none of the tests' outputs: go test waits until these are closed.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if in, err = cmd.StdinPipe(); err != nil {
		return nil, nil, nil, err
	}
	if out, err = cmd.StderrPipe(); err != nil {
		return nil, nil, nil, err
	}
	return cmd, in, out, cmd.Start()
}

// reap reads the folders of servers until the other end is closed. Then it ends the servers
// and removes the folders, the last first.
func reap(in io.Reader) error {
	signal.Ignore(syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM)
	var dirs []string
	for lines := bufio.NewScanner(in); lines.Scan(); {
		dirs = append(dirs, lines.Text())
	}
	var failed error
	for _, dir := range slices.Backward(dirs) {
		if err := remove(dir); err != nil {
			failed = err
		}
	}
	return failed
}

// remove ends what runs in a server's folder and removes it, and a disk that a killed test has
// left mounted there.
func remove(dir string) error {
	if err := quit(filepath.Base(dir), filepath.Join(dir, "data")); err != nil {
		return err
	}
	if err := sweep(filepath.Join(dir, "data")); err != nil {
		return err
	}
	_ = syscall.Unmount(dir, syscall.MNT_DETACH) // it fails where nothing is mounted
	// A child of a killed initdb may write until it notices.
	return poll("the removal of "+dir, func() (bool, error) { return os.RemoveAll(dir) == nil, nil })
}
