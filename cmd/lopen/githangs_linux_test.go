package main

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A project whose git hangs, once a file called hang is there, when it is asked one of some words.
func hangingGit(t *testing.T, words string) (dir, path, asked string) {
	t.Helper()
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("git is not installed")
	}
	dir, bin := t.TempDir(), t.TempDir()
	asked = filepath.Join(bin, "asked")
	require.NoError(t, syscall.Mkfifo(asked, 0o600))
	script := "#!/bin/sh\n[ -e " + filepath.Join(dir, "hang") + " ] && for word; do case $word in " + words +
		") echo $word >" + asked + "; exec sleep 1000;; esac; done\nexec " + git + ` "$@"` + "\n"
	require.NoError(t, os.WriteFile(filepath.Join(bin, "git"), []byte(script), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "TODO.md"), []byte("- [ ] one\n"), 0o600))
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "-qm", "one"}} {
		cmd := exec.Command(git, args...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	must(t, dir, "plan", "create", "m", "--from", "TODO.md")
	return dir, bin + string(os.PathListSeparator) + os.Getenv("PATH"), asked
}

// Ctrl-C ends what waits for a git that hangs, and nothing asks it again.
func TestCtrlCWhileGitHangs(t *testing.T) {
	t.Parallel()
	run := []string{"run", "m", "--check", "true", "--", "sh", "-c", "echo >new"}
	for name, c := range map[string]struct {
		words string
		later bool // it hangs once the command works
		args  []string
	}{
		"at all":             {"config", false, run},
		"who it is":          {"rev-list", false, run},
		"what is changed":    {"status", false, run},
		"what is tracked":    {"ls-files", false, run},
		"after the attempt":  {"config|status|ls-files", true, []string{"run", "m", "--check", "true", "--", "sh", "-c", "echo >new; git add new; touch hang"}},
		"a later ls-files":   {"status|ls-files", true, []string{"run", "m", "--check", "true", "--", "sh", "-c", "echo >new; git add new; touch hang"}},
		"checkpoint create":  {"ls-files", false, []string{"checkpoint", "create"}},
		"checkpoint restore": {"ls-files", false, []string{"checkpoint", "restore", "1", ".", "--yes"}},
		"export":             {"config", false, []string{"session", "export", "-o", "x.lopen"}},
		"files record":       {"config", false, []string{"files", "record", "."}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, path, asked := hangingGit(t, c.words)
			if c.args[0] != "run" {
				must(t, dir, "run", "m", "--check", "true", "--", "sh", "-c", "echo 1 >other")
			}
			if !c.later {
				require.NoError(t, os.WriteFile(filepath.Join(dir, "hang"), nil, 0o600))
			}
			now := time.Now()
			require.NoError(t, os.Chtimes(filepath.Join(dir, ".git", "index"), now, now)) // another one than a tracker knows
			cmd := command(t, dir, c.args...)
			cmd.Env = append(cmd.Environ(), "PATH="+path)
			var out bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &out
			fifo, err := os.OpenFile(asked, os.O_RDWR, 0)
			require.NoError(t, err)
			defer fifo.Close()
			require.NoError(t, cmd.Start())
			words := make(chan string, 16)
			go func() {
				for lines := bufio.NewScanner(fifo); lines.Scan(); {
					words <- lines.Text()
				}
			}()
			ended := make(chan error, 1)
			go func() { ended <- cmd.Wait() }()
			select {
			case word := <-words:
				require.Contains(t, c.words, word)
			case <-ended:
				require.Fail(t, "git was not asked", out.String())
			}
			begun := time.Now()
			require.NoError(t, cmd.Process.Signal(syscall.SIGINT))
			<-ended
			require.Less(t, time.Since(begun), 4*time.Second, out.String())
			require.Equal(t, 130, cmd.ProcessState.ExitCode(), out.String())
			require.Empty(t, words, "it is not asked again: %s", strings.TrimSpace(out.String()))
		})
	}
}
