package writer

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// The test binary is also the other process: with modeEnv set it runs no tests but does
// what modeEnv says, in the folder dirEnv.
const (
	modeEnv = "WRITER_TEST_MODE"
	dirEnv  = "WRITER_TEST_DIR"
	rounds  = 40 // of each contender
)

func TestMain(m *testing.M) {
	if mode := os.Getenv(modeEnv); mode != "" {
		if err := other(mode); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

func other(mode string) error {
	dir, err := OpenFS(os.Getenv(dirEnv))
	if err != nil {
		return err
	}
	switch mode {
	case "contend":
		for range rounds {
			if err := turn(dir); err != nil {
				return err
			}
		}
		return nil
	case "hold":
		if _, err := TryLock(dir, ".lock", OwnerOf(os.Getpid(), "hold for a test")); err != nil {
			return err
		}
		fmt.Println("held")
		_, err = bufio.NewReader(os.Stdin).ReadByte() // until this process is killed or the test ends
		return err
	}
	return errors.New("unknown mode " + mode)
}

// turn takes the lock and adds one to a counter. It fails, or an addition is lost, when
// another process holds the lock at the same time.
func turn(dir FS) error {
	l, err := LockWait(context.Background(), dir, ".lock", OwnerOf(os.Getpid(), "contend"))
	if err != nil {
		return err
	}
	inside := filepath.Join(dir.Name(), "inside")
	f, err := os.OpenFile(inside, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("two hold the lock: %w", err)
	}
	f.Close()
	counter := filepath.Join(dir.Name(), "counter")
	data, err := os.ReadFile(counter)
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		return err
	}
	if err := os.WriteFile(counter, []byte(strconv.Itoa(n+1)), 0o600); err != nil {
		return err
	}
	if err := l.Check(dir, ".lock"); err != nil {
		return err
	}
	if err := os.Remove(inside); err != nil {
		return err
	}
	return l.Unlock()
}

// process returns the command that runs the test binary as another process.
func process(t *testing.T, dir FS, mode string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), modeEnv+"="+mode, dirEnv+"="+dir.Name())
	cmd.Stderr = os.Stderr
	return cmd
}
