package main

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/terminal"
)

// A log is kept, and errors quote what they are about.
func TestTheLogIsRedacted(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"json", "console"} {
		var out bytes.Buffer
		a := &app{stderr: terminal.New(&out), logLevel: "debug", logFormat: format, color: "never"}
		require.NoError(t, a.startLog(true))
		a.logger.Warn().Err(errors.New("git fetch https://bob:hunter2@host: denied")).Str("password", "hunter2").Msg("pushed with ghp_" + "abcdefghijKLMNOPQRST0123456789abcdEF")
		require.NotContains(t, out.String(), "hunter2")
		require.NotContains(t, out.String(), "ghp_")
		require.Contains(t, out.String(), "[redacted:url-password]@host: denied")
	}
}

// A line of the log that was reworded would appear next to the words of the command again.
func TestReportedElsewhereAreLinesOfTheLog(t *testing.T) {
	t.Parallel()
	var source strings.Builder
	for _, dir := range []string{"../../actors", "../../lifecycle", "internal/loop"} {
		require.NoError(t, filepath.WalkDir(dir, func(name string, _ fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(name) != ".go" {
				return err
			}
			data, err := os.ReadFile(name)
			source.Write(data)
			return err
		}))
	}
	for _, message := range reportedElsewhere {
		require.Contains(t, source.String(), `Msg("`+message+`")`)
	}
}
