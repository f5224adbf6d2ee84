package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	// maxPeak is the resident set that a reading command may have, in bytes.
	maxPeak = 256 << 20
	// hardLimit is the memory that the kernel lets such a command have, so that one that
	// takes all there is ends and not the machine. The Go runtime prepares more than it
	// touches, and the stack of each thread counts in full, however many there happen to be.
	hardLimit = 2 * maxPeak
	// maxTime ends a command that hangs. What is quadratic in the tests' inputs takes
	// longer, and what is linear ends in seconds, on a busy machine too.
	maxTime = 60 * time.Second
)

// A bounded is a command that ran under bounds.
type bounded struct {
	exit   int // -1 where it was killed
	stdout string
	stderr string
	peak   int64 // the largest resident set, in bytes; 0 where it did not live to say so
	took   time.Duration
	cpu    time.Duration // of this, what the machine worked for it
}

// runBounded runs lopen in dir, as a process of its own that the kernel gives no more
// than hardLimit bytes, and requires that it ends within maxTime and was never above
// maxPeak. The race detector needs many times the memory: with it there is no limit, and
// nothing is printed about the peak.
func runBounded(t testing.TB, dir string, args ...string) bounded {
	t.Helper()
	limit := int64(hardLimit)
	if underRace() {
		limit = 0
	}
	b := runLimited(t, limit, dir, args...)
	printed := b.stderr[:min(len(b.stderr), 1000)]
	require.NotZero(t, b.peak, "lopen %s did not live to its end, after %v: exit %d, %s", strings.Join(args, " "), b.took, b.exit, printed)
	if limit > 0 {
		assert.LessOrEqual(t, b.peak, int64(maxPeak), "peak of lopen %s", strings.Join(args, " "))
	}
	t.Logf("lopen %s: exit %d, %d MiB, %v", strings.Join(args, " "), b.exit, b.peak>>20, b.took.Round(time.Millisecond))
	return b
}

// runLimited runs lopen in dir with so much memory, in bytes, 0 for all there is, and for
// maxTime at most.
func runLimited(t testing.TB, limit int64, dir string, args ...string) (b bounded) {
	t.Helper()
	self := command(t, dir, args...)
	script := `exec "$0" "$@"`
	if limit > 0 {
		script = "ulimit -d " + strconv.FormatInt(limit>>10, 10) + " && " + script
	}
	ctx, cancel := context.WithTimeout(context.Background(), maxTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", append([]string{"-c", script, self.Path}, args...)...)
	status := filepath.Join(t.TempDir(), "status")
	cmd.Dir, cmd.Env = dir, append(self.Env, "LOPEN_TEST_STATUS="+status)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	begun := time.Now()
	_ = cmd.Run() // ExitCode says it
	require.NotNil(t, cmd.ProcessState, "sh did not start")
	return bounded{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String(), peakOf(t, status), time.Since(begun), cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()}
}

// peakOf reads the peak from the copy of /proc/self/status that the command left when
// it ended. What wait4 says counts the parent's pages in: they were the child's until
// its exec.
func peakOf(t testing.TB, status string) int64 {
	t.Helper()
	data, err := os.ReadFile(status)
	if err != nil {
		return 0
	}
	m := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(data)
	require.NotNil(t, m, "%s", data)
	n, err := strconv.ParseInt(string(m[1]), 10, 64)
	require.NoError(t, err)
	return n << 10
}

func underRace() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// The limit holds, and the peak is told.
func TestRunBounded(t *testing.T) {
	t.Parallel()
	b := runBounded(t, t.TempDir(), "version")
	require.Zero(t, b.exit, b.stderr)
	require.Greater(t, b.peak, int64(1<<20))
	if !underRace() {
		b = runLimited(t, 1<<20, t.TempDir(), "version")
		require.NotZero(t, b.exit, "1 MiB is too little for any program of Go")
		require.Zero(t, b.peak)
	}
}
