package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/plain"
)

// A log is kept, and errors quote what they are about.
func TestTheLogIsRedacted(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"json", "console"} {
		var out bytes.Buffer
		a := &app{stderr: plain.New(&out), logLevel: "debug", logFormat: format, color: "never"}
		require.NoError(t, a.startLog(true))
		a.logger.Warn().Err(errors.New("git fetch https://bob:hunter2@host: denied")).Str("password", "hunter2").Msg("pushed with ghp_" + "abcdefghijKLMNOPQRST0123456789abcdEF")
		require.NotContains(t, out.String(), "hunter2")
		require.NotContains(t, out.String(), "ghp_")
		require.Contains(t, out.String(), "[redacted:url-password]@host: denied")
	}
}

// A line of the log that was reworded would stand beside the command's own words again.
func TestToldTwiceAreLinesOfTheLog(t *testing.T) {
	t.Parallel()
	var source strings.Builder
	for _, dir := range []string{"../../actors", "../../lifecycle", "internal/loop"} {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		require.NoError(t, err)
		for _, name := range files {
			data, err := os.ReadFile(name)
			require.NoError(t, err)
			source.Write(data)
		}
	}
	for _, message := range toldTwice {
		require.Contains(t, source.String(), `Msg("`+message+`")`)
	}
}
