package fusedisk

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// serveEnv tells a process of this program that it is a disk, and which.
const serveEnv = "FUSEDISK"

// A Disk is a folder whose fsyncs are counted and can be held back, for everybody who
// writes below it.
type Disk struct {
	Dir   string
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines *bufio.Scanner
}

// Mount starts a disk that ends with the test, when nothing below Dir may be open. It takes Linux, root and /dev/fuse: without
// them the test is skipped.
func Mount(tb testing.TB) *Disk {
	tb.Helper()
	d, err := mount(tb.TempDir())
	if err != nil {
		tb.Skipf("no FUSE here: %v", err)
	}
	tb.Cleanup(func() {
		if err := errors.Join(d.in.Close(), d.cmd.Wait()); err != nil {
			tb.Errorf("unmount: %v", err)
		}
	})
	return d
}

func mount(under string) (*Disk, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	mount, backing := filepath.Join(under, "mount"), filepath.Join(under, "backing")
	if err := errors.Join(os.Mkdir(mount, 0o700), os.Mkdir(backing, 0o700)); err != nil {
		return nil, err
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), serveEnv+"="+mount+string(filepath.ListSeparator)+backing)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	d := &Disk{Dir: mount, cmd: cmd, in: in, lines: bufio.NewScanner(out)}
	if !d.lines.Scan() {
		return nil, errors.Join(errors.New("the disk did not start"), in.Close(), cmd.Wait())
	}
	return d, nil
}

// Main ends this process with what tests returned, or runs it as a disk if it was started
// as one. The TestMain of every package that calls Mount calls it.
func Main(tests func() int) {
	mount, backing, ok := strings.Cut(os.Getenv(serveEnv), string(filepath.ListSeparator))
	if !ok {
		os.Exit(tests())
	}
	if err := serve(mount, backing, os.Stdin, os.Stdout); err != nil {
		panic(err)
	}
}

// Counts are the fsyncs, of files and folders, and the bytes written so far.
type Counts struct{ Fsyncs, Bytes int64 }

func (d *Disk) ask(format string, args ...any) (c Counts, err error) {
	if _, err := fmt.Fprintf(d.in, format+"\n", args...); err != nil {
		return c, err
	}
	if !d.lines.Scan() {
		return c, errors.New("the disk ended")
	}
	_, err = fmt.Sscan(d.lines.Text(), &c.Fsyncs, &c.Bytes)
	return c, err
}

// Counts asks for what was counted.
func (d *Disk) Counts() (Counts, error) { return d.ask("counts") }

// Hold makes each fsync from now on late.
func (d *Disk) Hold(late time.Duration) error {
	_, err := d.ask("hold %s", late)
	return err
}

// Stall answers no fsync for a time, then all of them.
func (d *Disk) Stall(wait time.Duration) error {
	_, err := d.ask("stall %s", wait)
	return err
}
