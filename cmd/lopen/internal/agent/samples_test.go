package agent

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// noon is the time of the samples: that of the machine on which they were recorded, a
// little later, so that what they wait for lies ahead.
var noon = time.Date(2026, 11, 22, 13, 30, 0, 0, time.UTC)

// attempt is what came of one sample.
type attempt struct {
	Report
	shown    string
	hopeless []Problem
	events   int
	skipped  int
}

// run feeds a sample to an agent's reader in pieces of n bytes.
func run(t *testing.T, name string, data, stderr []byte, n int) (a attempt) {
	t.Helper()
	agent, _, err := Choose(name, nil, nil, "")
	require.NoError(t, err)
	var out bytes.Buffer
	r := agent.Read(&out, func() { a.events++ }, func(p Problem) { a.hopeless = append(a.hopeless, p) })
	r.now = func() time.Time { return noon }
	for len(data) > 0 {
		k := min(n, len(data))
		wrote, err := r.Write(data[:k])
		if err != nil || wrote != k || len(r.held) > maxLine {
			t.Fatalf("wrote %d of %d, held %d: %v", wrote, k, len(r.held), err)
		}
		data = data[k:]
	}
	require.NoError(t, r.Close())
	r.Stderr(stderr)
	a.Report, a.shown, a.skipped = r.Report(), out.String(), r.skipped
	return a
}

func read(t *testing.T, name, sample string) (stdout, stderr []byte) {
	t.Helper()
	base := filepath.Join("testdata", "samples", name, sample)
	stdout, err := os.ReadFile(base + ".jsonl")
	require.NoError(t, err)
	stderr, err = os.ReadFile(base + ".stderr")
	if err != nil {
		require.ErrorIs(t, err, os.ErrNotExist)
	}
	return stdout, stderr
}

func sample(t *testing.T, name, sample string) attempt {
	t.Helper()
	stdout, stderr := read(t, name, sample)
	return run(t, name, stdout, stderr, len(stdout)+1)
}

func lines(all ...string) string { return strings.Join(all, "\n") + "\n" }

// sane holds of the report of any output.
func sane(t *testing.T, a attempt) {
	t.Helper()
	require.False(t, a.Success && (!a.Final || a.Problem != nil || a.Error != ""))
	require.LessOrEqual(t, len(a.Error), maxText)
	require.LessOrEqual(t, len(a.Denied), maxDenied)
	require.LessOrEqual(t, len(a.hopeless), 1)
	for _, n := range []int64{a.Input, a.Output, a.Cached, int64(a.Turns), a.ContextWindow, int64(a.CostUSD)} {
		require.GreaterOrEqual(t, n, int64(0))
	}
	require.True(t, a.Session == "" || sessionID(a.Session))
	if p := a.Problem; p != nil {
		require.LessOrEqual(t, len(p.Text), maxText)
		require.NotEmpty(t, p.Kind)
		require.True(t, p.ResetAt.IsZero() || p.Kind == Limit && p.ResetAt.After(noon) && p.ResetAt.Before(noon.Add(maxReset+time.Second)))
	}
	require.True(t, a.shown == "" || strings.HasSuffix(a.shown, "\n"))
}

// eachSample calls f with all samples of events.
func eachSample(t *testing.T, f func(t *testing.T, name string, stdout, stderr []byte)) {
	t.Helper()
	all, err := filepath.Glob("testdata/samples/*/*.jsonl")
	require.NoError(t, err)
	require.Greater(t, len(all), 60)
	for _, path := range all {
		name, file := filepath.Base(filepath.Dir(path)), strings.TrimSuffix(filepath.Base(path), ".jsonl")
		t.Run(name+"/"+file, func(t *testing.T) {
			t.Parallel()
			stdout, stderr := read(t, name, file)
			f(t, name, stdout, stderr)
		})
	}
}

func TestPiecesOfAnySize(t *testing.T) {
	t.Parallel()
	eachSample(t, func(t *testing.T, name string, stdout, stderr []byte) {
		want := run(t, name, stdout, stderr, len(stdout)+1)
		sane(t, want)
		for _, n := range []int{1, 7, 4096} {
			require.Equal(t, want, run(t, name, stdout, stderr, n))
		}
	})
}

// Wherever an output ends, what it says is sane: nothing that was cut off counts, and no
// cut makes a success, a limit or a cost of what is none.
func TestCutAtEachByte(t *testing.T) {
	t.Parallel()
	eachSample(t, func(t *testing.T, name string, stdout, stderr []byte) {
		whole := run(t, name, stdout, stderr, len(stdout)+1)
		step := 1
		if !strings.HasSuffix(t.Name(), "/success") {
			step = len(stdout)/50 + 1
		}
		for n := len(stdout); n >= 0; n -= step {
			a := run(t, name, stdout[:n], stderr, len(stdout)+1)
			sane(t, a)
			require.LessOrEqual(t, a.CostUSD, whole.CostUSD)
			require.LessOrEqual(t, a.Input, whole.Input)
			if a.Success {
				require.True(t, whole.Success)
			}
		}
	})
}

// One line of 100 MB is skipped, and what follows it counts.
func TestLineWithoutEnd(t *testing.T) {
	t.Parallel()
	agent, _, err := Choose("claude", nil, nil, "")
	require.NoError(t, err)
	stdout, _ := read(t, "claude", "success")
	r := agent.Read(io.Discard, nil, nil)
	block := bytes.Repeat([]byte("x"), 1<<20)
	for range 100 {
		_, err := r.Write(block)
		require.NoError(t, err)
		require.LessOrEqual(t, cap(r.held), 2*maxLine)
	}
	_, err = r.Write(append([]byte("\n"), stdout...))
	require.NoError(t, err)
	require.NoError(t, r.Close())
	require.Equal(t, 1, r.skipped)
	require.True(t, r.Report().Success)
}
