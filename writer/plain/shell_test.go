package plain_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/writer/plain"
)

func FuzzQuote(f *testing.F) {
	for _, s := range []string{
		"", "plain", "two words", "it's", `"$HOME"`, "a\nb", "-n", "*", "ä", `\`, "\x1b[2Jit's", "\u202e1", "\xff7", `\x` + "\r", "a" + strings.Repeat(" ", 99) + "b",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, word string) {
		if strings.ContainsRune(word, 0) {
			t.Skip("no argument can hold a NUL")
		}
		quoted := plain.Quote(word)
		require.Equal(t, quoted, plain.Line(quoted), "nothing is left to be shown otherwise")
		require.NotContains(t, quoted, "        ")
		shell := "sh"
		if strings.HasPrefix(quoted, "$'") {
			if shell = "bash"; !found(shell) {
				t.Skip("there is no bash, which understands $'...'")
			}
		}
		out, err := exec.Command(shell, "-c", "printf '%s|' "+quoted+" next").Output()
		require.NoError(t, err)
		require.Equal(t, word+"|next|", string(out))
	})
}

func found(command string) bool { _, err := exec.LookPath(command); return err == nil }

func TestQuoteShowsWhatRuns(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"make test":                "'make test'",
		"grep Größe":               "'grep Größe'",
		"evil #\x1b[2K\rmake test": `$'evil #\033[2K\015make test'`,
		"it's\n\tevil\\":           `$'it\047s\n\tevil\\'`,
		"\u202etset ekam":          `$'\342\200\256tset ekam'`,
		"make\u00a0test":           `$'make\302\240test'`,
		"\x9b7":                    `$'\2337'`,
		"make test" + strings.Repeat(" ", 9) + "&": `$'make test` + strings.Repeat(`\040`, 9) + "&'",
		"\u3164\u2800\ufe0f":                       `$'\343\205\244\342\240\200\357\270\217'`,
	} {
		require.Equal(t, want, plain.Quote(in))
	}
	require.Equal(t, "make test && lint", plain.Shell("make test && lint"))
	require.Equal(t, `$'true\nstatus    complete'`, plain.Shell("true\nstatus    complete"))
}

// A shell that does not know $'...', as dash, takes another word for it and runs nothing.
func TestQuoteForAnOldShell(t *testing.T) {
	t.Parallel()
	if !found("sh") {
		t.Skip("there is no sh")
	}
	for _, word := range []string{"it's\x1b; exit 7", "\x1b'; exit 7; '", "\x1b$(exit 7)'$(exit 7)`exit 7`\\'; exit 7"} {
		out, err := exec.Command("sh", "-c", "set -- "+plain.Quote(word)+"; echo $#").CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.Equal(t, "1\n", string(out), word)
	}
}
