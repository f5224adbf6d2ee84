package main

import (
	"bufio"
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/terminal"
)

// onPerson returns an app on a terminal, and what a person has of that.
func onPerson(t *testing.T) (*app, *os.File) {
	t.Helper()
	person, tty, err := openTerminal()
	require.NoError(t, err)
	t.Cleanup(func() { _ = tty.Close(); _ = person.Close() })
	return &app{stdin: tty, stderr: terminal.New(tty)}, person
}

// see reads what a person sees until a text is there.
func see(t *testing.T, person *os.File, text string) {
	t.Helper()
	seen, b := "", make([]byte, 256)
	for !strings.Contains(seen, text) {
		n, err := person.Read(b)
		require.NoError(t, err)
		seen += string(b[:n])
	}
}

// What was typed before a question was drawn, or before it can have been read, does not answer it, be it a line, a
// part of one or one that another reader has.
func TestTypedAhead(t *testing.T) {
	t.Parallel()
	a, person := onPerson(t)
	typed := func(text string) {
		_, err := person.WriteString(text)
		require.NoError(t, err)
	}
	a.lines = bufio.NewReader(strings.NewReader("y\n"))
	_, err := a.lines.Peek(1)
	require.NoError(t, err)
	typed("y\ny\n")
	answer := make(chan string)
	go func() {
		line, err := a.askAfter(t.Context(), "Delete it? ", "[y/N] ", func() <-chan time.Time {
			typed("y\nyes, d") // the question is drawn
			read := make(chan time.Time, 1)
			read <- time.Time{}
			return read
		})
		answer <- line + " " + errorText(err)
	}()
	see(t, person, "[y/N] ")
	typed("no\n")
	require.Equal(t, "no ", <-answer)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = a.askAfter(ctx, "Delete it? ", "[y/N] ", func() <-chan time.Time { return nil })
	require.ErrorIs(t, err, context.Canceled)
}

// The rest of a paste that is more than a terminal holds is no answer.
func TestAPasteIsNoAnswer(t *testing.T) {
	t.Parallel()
	a, person := onPerson(t)
	pasted := make(chan error, 1)
	answer := make(chan string, 1)
	go func() {
		line, err := a.askAfter(t.Context(), "Delete it? ", "[y/N] ", func() <-chan time.Time {
			go func() {
				_, err := person.WriteString(strings.Repeat("y\n", 20_000))
				pasted <- err
			}()
			return time.After(pasteGap)
		})
		answer <- line + " " + errorText(err)
	}()
	select {
	case err := <-pasted:
		require.NoError(t, err)
	case line := <-answer:
		t.Fatalf("the paste answered: %s", line)
	}
	see(t, person, "[y/N] ")
	_, err := person.WriteString("no\n")
	require.NoError(t, err)
	require.Equal(t, "no ", <-answer)
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// An answer is a whole line.
func TestAgreed(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]struct{ agreed, orEnter bool }{
		"y\n": {true, true}, "Yes\n": {true, true}, " y \n": {true, true}, "\n": {false, true},
		"n\n": {}, "yikes\n": {}, "y n\n": {}, "no y\n": {}, "y\x04\x04": {}, "\x04": {},
	} {
		a, person := onPerson(t)
		for i, asked := range []func(context.Context, string) (bool, error){a.agreed, a.agreedOrEnter} {
			got := make(chan bool)
			go func() {
				yes, _ := asked(t.Context(), "Delete it?")
				got <- yes
			}()
			see(t, person, []string{"[y/N] ", "[Y/n] "}[i])
			_, err := person.WriteString(answer)
			require.NoError(t, err)
			require.Equal(t, []bool{want.agreed, want.orEnter}[i], <-got, "%q", answer)
		}
	}
}

// Each question of the command that approves, deletes or overwrites is asked like that.
func TestTypeAheadAgreesToNothing(t *testing.T) {
	t.Parallel()
	oneByOne(t)
	dir := t.TempDir()
	must(t, dir, "init", "m")
	path := func(name ...string) string { return filepath.Join(append([]string{dir}, name...)...) }
	require.NoError(t, os.WriteFile(path("todo.md"), []byte("- [ ] one\n- [ ] two\n"), 0o600))
	must(t, dir, "plan", "create", "m", "--from", "todo.md")
	must(t, dir, "plan", "create", "n", "--from", "todo.md")
	must(t, dir, "run", "m", "--", "touch", "made")
	require.NoError(t, os.WriteFile(path(".lopen", "config.json"), []byte(`{"command": ["sh", "-c", "touch ran"]}`), 0o600))
	for name, c := range map[string]struct {
		args   []string
		stays  string // that is there after a no
		absent string // that is not
	}{
		"a command of the project": {[]string{"run", "n"}, "", "ran"},
		"a rewind":                 {[]string{"checkpoint", "rewind", "before:one"}, "made", ""},
		"a deletion":               {[]string{"session", "delete", "m"}, ".lopen/sessions/m-*", ""},
		"a plugin":                 {[]string{"plugin", "claude", "install"}, "", "claude/skills/lopen"},
	} {
		cmd := command(t, dir, c.args...)
		cmd.Env = append(cmd.Env, "CLAUDE_CONFIG_DIR="+path("claude"))
		person, tty, err := openTerminal()
		require.NoError(t, err)
		_, err = person.WriteString("y\ny\nyes\ny\n")
		require.NoError(t, err)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
		require.NoError(t, cmd.Start())
		require.NoError(t, tty.Close())
		var out bytes.Buffer
		asked := 0
		typeAnswers(person, &out, func() string { asked++; return "n\n" })
		requireEnded(t, cmd.Wait())
		require.NoError(t, person.Close())
		require.Equal(t, 1, asked, "%s: %s", name, out.String())
		found, err := filepath.Glob(path(c.stays))
		require.NoError(t, err)
		require.NotEmpty(t, found, name)
		if c.absent != "" {
			require.NoFileExists(t, path(c.absent), "%s: %s", name, out.String())
			require.NoDirExists(t, path(c.absent), "%s: %s", name, out.String())
		}
	}
}

// Nothing else asks, or reads what a person types: [app.ask] alone, and what ends a wait, which agrees to nothing.
func TestOneFunctionAsks(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") || name == "question.go" {
			continue
		}
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		for _, sign := range []string{"/N]", "/n]", "ReadString('\\n')", "NewReader(a.stdin)", "NewScanner(a.stdin)"} {
			if strings.Contains(string(text), sign) && name != "screen_key_unix.go" {
				t.Errorf("%s has %q: ask there with a.ask", name, sign)
			}
		}
	}
}
