package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lopen-dev/lopen/writer"
)

// The test binary is also the command: with modeEnv set it does what that says, and no
// tests.
const modeEnv = "PROCESS_TEST_MODE"

// modes are what the command does besides, of some systems.
var modes = map[string]func() error{}

func TestMain(m *testing.M) {
	if mode := os.Getenv(modeEnv); mode != "" {
		if err := inherit(mode); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

func inherit(mode string) error {
	switch mode {
	case "exclusive": // makes the lock that it inherits exclusive
		if ok, err := tryFlock(os.NewFile(3, "lock")); !ok || err != nil {
			return fmt.Errorf("not exclusive: %t, %w", ok, err)
		}
		fmt.Println("exclusive")
		time.Sleep(time.Minute)
		return nil
	case "daemon": // starts a process in a group of its own, hands it the lock, and ends
		cmd := exec.Command("sleep", "60")
		detach(cmd)
		cmd.ExtraFiles = []*os.File{os.NewFile(3, "lock")}
		if err := cmd.Start(); err != nil {
			return err
		}
		fmt.Println(cmd.Process.Pid)
		return nil
	}
	if do, ok := modes[mode]; ok {
		return do()
	}
	return errors.New("unknown mode " + mode)
}

// process prepares the test binary as a command.
func process(t *testing.T, mode string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), modeEnv+"="+mode)
	cmd.Stderr = os.Stderr
	return cmd
}

func openTemp(t testing.TB) writer.FS {
	t.Helper()
	dir, err := writer.OpenFS(t.TempDir())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, dir.Close()) })
	return dir
}

func put(t require.TestingT, dir writer.FS, name, content string) {
	require.NoError(t, os.WriteFile(filepath.Join(dir.Name(), name), []byte(content), 0o600))
}

func get(t require.TestingT, dir writer.FS, name string) string {
	data, err := os.ReadFile(filepath.Join(dir.Name(), name))
	require.NoError(t, err)
	return string(data)
}
