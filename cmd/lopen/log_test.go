package main

import (
	"bytes"
	"errors"
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
