package proc

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPrintable(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                         "",
		"lopen run äö":             "lopen run äö",
		"a\x1b[2Jb\n\u202ec":       "a?[2Jb??c",
		"\xff":                     "?",
		strings.Repeat("ä", 200):   strings.Repeat("ä", 200),
		strings.Repeat("ä", 1_000): strings.Repeat("ä", 199) + "…",
	} {
		require.Equal(t, want, Printable(in), "%q", in)
	}
}
