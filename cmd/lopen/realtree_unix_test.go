//go:build unix

package main

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var rounds = flag.Int("rounds", 2, "rounds of edits and rewinds in TestRewindOfARealTree")

// TestRewindOfARealTree works on the source of a module that this project depends
// on: random edits by shell commands, a checkpoint, more edits, a rewind, and a
// comparison byte for byte and mode for mode; now and then the rewind is killed and
// the next command has to finish it.
func TestRewindOfARealTree(t *testing.T) {
	t.Parallel()
	oneByOne(t)
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/klauspost/compress").Output()
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS(strings.TrimSpace(string(out)))))
	require.NoError(t, exec.Command("chmod", "-R", "u+w", dir).Run())
	require.NoError(t, os.WriteFile(filepath.Join(dir, ".lopenignore"), []byte(".xdg\n.home\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "TODO.md"), []byte("- [ ] one\n"), 0o600))
	must(t, dir, "plan", "create", "m", "--from", "TODO.md")
	work := func(script string) { // by a task, which fails and stays to be done
		path := filepath.Join(t.TempDir(), "script")
		require.NoError(t, os.WriteFile(path, []byte(script+"exit 1\n"), 0o600))
		out, err := command(t, dir, "run", "m", "--max-iterations", "1", "--failure-threshold", "0", "--", "sh", path).CombinedOutput()
		var exit *exec.ExitError
		require.ErrorAs(t, err, &exit, "%s", out)
		require.Equal(t, 2, exit.ExitCode(), "%s", out)
	}

	s := *seed
	t.Logf("go test -run RealTree ./cmd/lopen -rounds %d -seed %d", *rounds, s)
	rng := rand.New(rand.NewPCG(s, 5))
	for round := range *rounds {
		work(scramble(t, rng, dir))
		cp := strings.TrimSpace(must(t, dir, "checkpoint", "list", "--jq", ".[-1].number"))
		want := look(t, dir)
		work(scramble(t, rng, dir))
		edited := look(t, dir)
		if rng.IntN(2) == 0 {
			cmd := command(t, dir, "checkpoint", "rewind", cp, "--yes")
			require.NoError(t, cmd.Start())
			for range rng.IntN(200_000) { // a moment, without a clock
				_ = round
			}
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
		must(t, dir, "checkpoint", "rewind", cp, "--yes")
		require.Equal(t, want, look(t, dir), "round %d", round)
		must(t, dir, "undo", "--yes")
		if now := look(t, dir); now != want { // a killed one had finished: then undo goes back to what was rewound already
			require.Equal(t, edited, now, "round %d", round)
		}
		must(t, dir, "session", "verify", "--read-data")
	}
}

// scramble returns a script of what agents do to a tree.
func scramble(t *testing.T, rng *rand.Rand, dir string) string {
	var names []string
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && strings.HasPrefix(d.Name(), ".") && path != dir {
			return fs.SkipDir
		}
		if err == nil && !d.IsDir() && !strings.HasPrefix(d.Name(), ".") {
			names = append(names, path)
		}
		return err
	}))
	var script strings.Builder
	for range 12 {
		fmt.Fprintf(&script, "set -- '%s' '%s'\n", names[rng.IntN(len(names))], names[rng.IntN(len(names))])
		script.WriteString([]string{
			`echo more >>"$1"`, `rm -f "$1"`, `mv "$1" "$1.moved"`, `chmod 755 "$1"`, `ln -sf "$2" "$1.link"`, `truncate -s 10 "$1"`,
			`head -c 5000 /dev/urandom >"$1.bin"`, `mkdir -p "$1.d/e"; cp "$2" "$1.d/e/"`, `rm -rf "$(dirname "$1")/x"; mkdir "$(dirname "$1")/x"`,
			`rm -f "$1"; mkdir -p "$1"; echo in >"$1/side"`, `sed -i s/func/FUNC/ "$1"`, "printf x >\"$1$(printf '\\377')\"",
		}[rng.IntN(12)] + " 2>/dev/null\n") // what is gone by now is gone
	}
	return script.String()
}

// look is what a tree is: names, types, modes, contents.
func look(t *testing.T, dir string) string {
	var all strings.Builder
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := d.Name(); name == ".lopen" || name == ".xdg" || name == ".home" {
			return fs.SkipDir
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		fmt.Fprintf(&all, "%q %v", strings.TrimPrefix(path, dir), info.Mode())
		switch {
		case info.Mode().IsRegular():
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			fmt.Fprintf(&all, " %x", sha256.Sum256(data))
		case info.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			if err != nil {
				return err
			}
			fmt.Fprintf(&all, " -> %q", target)
		}
		all.WriteByte('\n')
		return nil
	}))
	return all.String()
}
