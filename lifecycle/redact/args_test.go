package redact_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lopen-dev/lopen/lifecycle/redact"
)

func TestArgs(t *testing.T) {
	t.Parallel()
	var r redact.Redactor
	for _, c := range []struct{ argv, want []string }{
		{[]string{"make", "test"}, []string{"make", "test"}},
		{[]string{"agent", "--password=hG5xT9wK2pQ7", "x y"}, []string{"agent", "--password=[redacted:password]", "x y"}},
		{[]string{"sh", "-c", "API_KEY=kJ8vQ2xR9mW4tZ7pL3nB6cY1 run", ""}, []string{"sh", "-c", "API_KEY=[redacted:api-key] run", ""}},
		{[]string{"Authorization: Bearer", "kJ8vQ2xR9mW4tZ7pL3nB6cY1"}, []string{"Authorization: Bearer", "[redacted:authorization]"}},
		{nil, nil},
	} {
		got, n := r.Args(c.argv)
		require.Equal(t, c.want, got)
		require.Equal(t, strings.Join(c.argv, " ") == strings.Join(c.want, " "), n == 0)
	}
	argv := []string{"--password=hG5xT9wK2pQ7"}
	got, n := (*redact.Redactor)(nil).Args(argv)
	require.Equal(t, argv, got)
	require.Zero(t, n)
}

// However a secret's text is cut into words, they hold no more of it than the line does.
func TestArgsHidesWhatTheLineHides(t *testing.T) {
	t.Parallel()
	var r redact.Redactor
	rapid.Check(t, func(t *rapid.T) {
		text, secret := placed(t)
		argv := strings.Split(text, " ")
		before := strings.Join(argv, " ")
		got, n := r.Args(argv)
		require.Positive(t, n)
		require.Len(t, got, len(argv))
		require.Equal(t, before, strings.Join(argv, " "), "argv stays")
		if !strings.Contains(secret, " ") {
			require.NotContains(t, strings.Join(got, " "), secret)
		}
		again, n := r.Args(got)
		require.Equal(t, got, again)
		require.Zero(t, n)
	})
}
