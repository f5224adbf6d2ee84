package output

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle/redact"
)

const secret = "ghp_0123456789abcdefghijABCDEFGHIJ456789"

// full makes a folder with two attempts that print a credential in each of their files, one of
// them more than its files may have.
func full(t *testing.T) string {
	dir := t.TempDir()
	for i := 1; i <= 2; i++ {
		w, err := Begin(open(t, dir), nil, i, Attempt{Task: "task " + secret, Attempt: 1, Begun: time.Now()})
		require.NoError(t, err)
		w.Prompt([]byte("use " + secret))
		raw, log := w.Stream(Raw, ""), w.Stream(Log, "")
		_, _ = fmt.Fprintf(raw, "{\"text\":\"a\\n%s\"}\nplain %s\n", secret, secret)
		_, _ = fmt.Fprintln(log, "first", secret)
		if i == 2 {
			line := strings.Repeat("y", 1000)
			for n := range 18_000 {
				_, _ = fmt.Fprintln(log, n, line)
			}
			_, _ = fmt.Fprintln(log, "last", secret)
		}
		require.NoError(t, w.Close("failed", "because of "+secret, true))
	}
	return dir
}

func task(id string) string { return strings.ReplaceAll(id, secret, "another") }

func TestCopyOfOutput(t *testing.T) {
	t.Parallel()
	from := full(t)
	plain, hidden := t.TempDir(), t.TempDir()
	require.NoError(t, Copy(open(t, from), open(t, plain), nil, nil))
	require.NoError(t, Copy(open(t, from), open(t, hidden), &redact.Redactor{}, task))
	entries, err := os.ReadDir(from)
	require.NoError(t, err)
	require.Greater(t, len(entries), 9, "one log has parts")
	for _, e := range entries {
		was, err := os.ReadFile(filepath.Join(from, e.Name()))
		require.NoError(t, err)
		as, err := os.ReadFile(filepath.Join(plain, e.Name()))
		require.NoError(t, err)
		require.Equal(t, string(was), string(as))
	}
	entries, err = os.ReadDir(hidden)
	require.NoError(t, err)
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(hidden, e.Name()))
		require.NoError(t, err)
		require.NotContains(t, string(data), secret, e.Name())
		require.LessOrEqual(t, len(data), headBytes)
	}
	all, err := List(open(t, hidden))
	require.NoError(t, err)
	require.Len(t, all, 2)
	for _, k := range all {
		require.Equal(t, "failed", k.Outcome)
		require.Equal(t, "task another", k.Task)
		require.Equal(t, "because of [redacted:github-token]", k.Failure)
		require.ElementsMatch(t, []File{Log, Raw, Prompt}, k.Files)
		require.Equal(t, "use [redacted:github-token]\n", read(t, hidden, k.Name, Prompt))
		require.Equal(t, "{\"text\":\"a\\n[redacted:github-token]\"}\nplain [redacted:github-token]\n", read(t, hidden, k.Name, Raw))
	}
	text := read(t, hidden, "000002", Log)
	require.True(t, strings.HasPrefix(text, "first [redacted:github-token]\n0 yyy"))
	require.True(t, strings.HasSuffix(text, "last [redacted:github-token]\n"))
	require.Equal(t, 1, strings.Count(text, "bytes are left out here"), "as in the one that was copied")
}

func TestCopyThatFails(t *testing.T) {
	t.Parallel()
	from, to := full(t), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(to, "000001.log"), nil, 0o600))
	for _, r := range []*redact.Redactor{nil, {}} {
		err := Copy(open(t, from), open(t, to), r, task)
		require.ErrorContains(t, err, "file exists")
		require.ErrorContains(t, err, to)
	}
}
