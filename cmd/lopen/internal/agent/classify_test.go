package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func texts(t *testing.T, folder string, f func(t *testing.T, name string, text []byte)) {
	t.Helper()
	all, err := filepath.Glob(filepath.Join("testdata", "samples", "text", folder, "*.txt"))
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(all), 20)
	for _, path := range all {
		t.Run(folder+"/"+filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			f(t, filepath.Base(path), text)
		})
	}
}

// What each sample means is the beginning of its name.
func TestClassify(t *testing.T) {
	t.Parallel()
	texts(t, "positive", func(t *testing.T, name string, text []byte) {
		for _, text := range []string{string(text), "work\n\n" + string(text) + "\n \n", "\x1b[31m" + strings.TrimSpace(string(text)) + "\x1b[0m\r\n"} {
			p := Classify([]byte(text), noon)
			require.NotNil(t, p)
			require.True(t, strings.HasPrefix(name, string(p.Kind)+"-"), p.Kind)
		}
		lines := strings.Split(strings.TrimSpace(string(text)), "\n")
		last := lines[len(lines)-1]
		for _, text := range []string{last + "\nok\n", "x " + last, last + " x", `"` + last + `"`} {
			if p := Classify([]byte(text), noon); p != nil { // a line that ends in any words
				require.True(t, strings.HasPrefix(text, last+" "), text)
			}
		}
	})
	texts(t, "negative", func(t *testing.T, _ string, text []byte) {
		require.Nil(t, Classify(text, noon))
		for _, line := range strings.Split(string(text), "\n") {
			if !strings.HasPrefix(line, "Not logged in ·") { // another line follows there
				require.Nil(t, Classify([]byte(line), noon), line)
			}
		}
	})
}

func TestClassifyResetAt(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]time.Time{
		"limit-claude.txt":       time.Date(2026, 11, 22, 15, 26, 0, 0, time.UTC),
		"limit-claude-1.0.txt":   time.Unix(1795361191, 0),
		"limit-claude-2.0.txt":   time.Date(2026, 11, 22, 15, 0, 0, 0, time.UTC),
		"limit-claude-key.txt":   {},
		"limit-codex.txt":        time.Date(2026, 11, 22, 15, 26, 0, 0, time.UTC),
		"limit-codex-days.txt":   noon.Add(65*time.Hour + 14*time.Minute),
		"limit-gemini-reset.txt": noon.Add(12*time.Hour + 3*time.Minute + 4*time.Second),
	} {
		text, err := os.ReadFile(filepath.Join("testdata", "samples", "text", "positive", file))
		require.NoError(t, err)
		p := Classify(text, noon)
		require.NotNil(t, p, file)
		require.True(t, want.Equal(p.ResetAt), "%s: %s", file, p.ResetAt)
	}
}
