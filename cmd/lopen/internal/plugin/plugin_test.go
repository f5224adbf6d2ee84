package plugin

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/crashfs"
)

// tree is everything below a folder: contents by path, folders with a slash.
func tree(t *testing.T, dir writer.FS) map[string]string {
	t.Helper()
	all := map[string]string{}
	var walk func(name string)
	walk = func(name string) {
		entries, err := dir.ReadDir(name)
		require.NoError(t, err)
		for _, e := range entries {
			below := path.Join(name, e.Name())
			if e.IsDir() {
				all[below+"/"] = ""
				walk(below)
				continue
			}
			data, err := writer.ReadFile(dir, below, maxFile)
			require.NoError(t, err)
			all[below] = string(data)
		}
	}
	walk(".")
	return all
}

// put makes a file and its folders, durably.
func put(t *testing.T, dir writer.FS, name, data string) {
	t.Helper()
	if d := path.Dir(name); d != "." {
		require.NoError(t, writer.MkdirDurable(dir, d))
	}
	require.NoError(t, writer.ReplaceFile(dir, name, []byte(data), 0o600))
}

// sets are each agent's, by three versions of lopen.
func sets() map[string][3]*Set {
	return map[string][3]*Set{
		"claude": {Claude("/sim", "/old/lopen", "1.0.0"), Claude("/sim", "/new/lopen", "2.0.0"), Claude("/sim", "/next/lopen", "3.0.0")},
		"codex":  {Codex("/sim", "/old/lopen"), Codex("/sim", "/new/lopen"), Codex("/sim", "/next/lopen")},
	}
}

// TestEveryCut cuts the power at each call of an install, an update and a remove: whatever
// version comes next can install and remove what is left, and what the person has stays as it is.
func TestEveryCut(t *testing.T) {
	t.Parallel()
	for name, pair := range sets() {
		older, newer, next := pair[0], pair[1], pair[2]
		for step, do := range map[string]struct {
			before []*Set
			do     func(writer.FS) error
		}{
			"install": {nil, func(dir writer.FS) error { return newer.install(dir, newer.Dir) }},
			"update":  {[]*Set{older}, func(dir writer.FS) error { return newer.install(dir, newer.Dir) }},
			"remove": {[]*Set{older}, func(dir writer.FS) error {
				_, _, err := newer.remove(dir, newer.Dir)
				return err
			}},
		} {
			t.Run(name+"/"+step, func(t *testing.T) {
				t.Parallel()
				d := crashfs.New(crashfs.Ext4)
				put(t, d.FS(), "settings.json", "mine")
				put(t, d.FS(), "other/file", "mine")
				was := tree(t, d.FS())
				for _, s := range do.before {
					require.NoError(t, s.install(d.FS(), s.Dir))
				}
				rng := rand.New(rand.NewPCG(1, 2))
				look := func(d *crashfs.Disk, moment string) {
					for _, v := range d.Variants(rng, 4) {
						again := d.Crash(v).FS()
						require.NoError(t, next.install(again, next.Dir), "%s, %s", moment, v.Name)
						for _, f := range next.Files {
							require.Equal(t, string(f.Data), tree(t, again)[path.Join(next.Dir, f.Name)], "%s, %s", moment, v.Name)
						}
						for _, dir := range []writer.FS{again, d.Crash(v).FS()} {
							_, stay, err := next.remove(dir, next.Dir)
							require.NoError(t, err, "%s, %s", moment, v.Name)
							require.Empty(t, stay, "%s, %s", moment, v.Name)
							left := tree(t, dir)
							delete(left, "skills/") // it may have been there before the first install
							require.Equal(t, was, left, "%s, %s", moment, v.Name)
						}
					}
				}
				d.SetHook(func(op crashfs.Op) crashfs.Fault {
					if op.N > 0 {
						look(d.Snapshot(), fmt.Sprintf("before %s %s", op.Call, op.Name))
					}
					return crashfs.Fault{}
				})
				require.NoError(t, do.do(d.FS()))
				d.SetHook(nil)
				look(d, "after the last call")
			})
		}
	}
}

// fresh returns a set in a fresh folder.
func fresh(t *testing.T) *Set {
	t.Helper()
	return Claude(filepath.Join(t.TempDir(), ".claude"), "/usr/bin/lopen", "1.0.0")
}

func write(t *testing.T, name, data string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
	require.NoError(t, os.WriteFile(name, []byte(data), 0o600))
}

// TestOthersFilesStay: what the person has there or changed is refused by an install, and left by a remove.
func TestOthersFilesStay(t *testing.T) {
	t.Parallel()
	t.Run("a skill of that name", func(t *testing.T) {
		t.Parallel()
		var foreign *ForeignError
		s := fresh(t)
		write(t, s.Path("notes.md"), "mine")
		_, err := s.Due()
		require.ErrorAs(t, err, &foreign)
		require.Equal(t, []string{s.Path("notes.md")}, foreign.Paths)
		require.ErrorAs(t, s.Install(), &foreign)
		found, stay, err := s.Remove()
		require.NoError(t, err)
		require.False(t, found)
		require.Equal(t, []string{s.Path("notes.md")}, stay)
		require.FileExists(t, s.Path("notes.md"))
	})
	t.Run("a file that was changed", func(t *testing.T) {
		t.Parallel()
		var foreign *ForeignError
		s := fresh(t)
		require.NoError(t, s.Install())
		write(t, s.Path("hooks/hooks.json"), "mine")
		require.ErrorAs(t, s.Install(), &foreign)
		require.Equal(t, []string{s.Path("hooks/hooks.json")}, foreign.Paths)
		found, stay, err := s.Remove()
		require.NoError(t, err)
		require.True(t, found)
		require.Equal(t, foreign.Paths, stay)
		require.NoFileExists(t, s.Path(".claude-plugin/plugin.json"), "Claude Code finds no plugin there")
		require.FileExists(t, s.Path("hooks/hooks.json"))
	})
	t.Run("a file that was added", func(t *testing.T) {
		t.Parallel()
		s := fresh(t)
		require.NoError(t, s.Install())
		write(t, s.Path("skills/mine/SKILL.md"), "mine")
		write(t, s.Path("hooks/mine.json"), "mine")
		require.NoError(t, s.Install())
		_, stay, err := s.Remove()
		require.NoError(t, err)
		require.Equal(t, []string{s.Path("hooks/mine.json"), s.Path("skills")}, stay)
	})
	t.Run("a manifest that names more", func(t *testing.T) {
		t.Parallel()
		s := Codex(t.TempDir(), "/usr/bin/lopen")
		write(t, s.Path("config.toml"), "mine")
		write(t, s.Path(Manifest), `{"files":{"config.toml":["`+hash([]byte("mine"))+`"]}}`)
		_, _, err := s.Remove()
		require.NoError(t, err)
		require.FileExists(t, s.Path("config.toml"))
	})
	t.Run("a manifest that names other folders", func(t *testing.T) {
		t.Parallel()
		s := fresh(t)
		empty := filepath.Join(s.Base, "empty")
		require.NoError(t, os.MkdirAll(empty, 0o700))
		write(t, s.Path(Manifest), `{"made":["skills","empty","..","skills/../empty"]}`)
		_, _, err := s.Remove()
		require.NoError(t, err)
		require.NoDirExists(t, filepath.Join(s.Base, "skills"))
		require.DirExists(t, empty)
	})
}

// TestNoSymlinkIsFollowed: a symlink in the way is named, and nothing is written behind it.
func TestNoSymlinkIsFollowed(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("only some users may make symlinks")
	}
	for _, name := range []string{"", "../../skills", "hooks", "hooks/hooks.json", Manifest} {
		for _, inside := range []bool{false, true} {
			t.Run(fmt.Sprint(name, inside), func(t *testing.T) {
				t.Parallel()
				s := fresh(t)
				to := filepath.Join(t.TempDir(), "to")
				if inside {
					to = filepath.Join(s.Base, "to")
				}
				require.NoError(t, os.MkdirAll(to, 0o755))
				if name == "hooks/hooks.json" || name == Manifest {
					require.NoError(t, os.Remove(to))
					write(t, to, "mine")
				}
				at := s.Path(name)
				require.NoError(t, os.MkdirAll(filepath.Dir(at), 0o755))
				require.NoError(t, os.Symlink(to, at))
				_, err := s.Due()
				require.ErrorContains(t, err, "symlink")
				require.ErrorContains(t, s.Install(), "symlink")
				_, _, err = s.Remove()
				require.ErrorContains(t, err, "symlink")
				entries, _ := os.ReadDir(to)
				require.Empty(t, entries)
			})
		}
	}
	t.Run("but that of the agent's folder", func(t *testing.T) {
		t.Parallel()
		s := fresh(t)
		to := t.TempDir()
		require.NoError(t, os.Symlink(to, s.Base))
		require.NoError(t, s.Install())
		require.FileExists(t, filepath.Join(to, "skills/lopen/hooks/hooks.json"))
		_, _, err := s.Remove()
		require.NoError(t, err)
		entries, err := os.ReadDir(to)
		require.NoError(t, err)
		require.Empty(t, entries)
	})
}

// TestCommandsAreQuoted runs the commands of hooks by a shell, with a lopen whose path has all that a shell
// takes for something else. Exit code 2 never reaches the agent: it would block the prompt, or have
// the agent go on for ever.
func TestCommandsAreQuoted(t *testing.T) {
	t.Parallel()
	sh, err := exec.LookPath("sh")
	if err != nil || runtime.GOOS == "windows" {
		t.Skip("there is no sh here")
	}
	dir := filepath.Join(t.TempDir(), `a b'c"d$(e)`+"`f`"+`\g;h&|*`)
	exe := filepath.Join(dir, "lopen")
	write(t, exe, "#!/bin/sh\necho \"$*\"\nexit 2\n")
	require.NoError(t, os.Chmod(exe, 0o700))
	claude := quoted(exe) + " hook claude || exit 1"
	require.Contains(t, string(Claude("/", "/x", "1").Files[0].Data), "'/x' hook claude || exit 1")
	for _, command := range []string{claude, codexCommand(exe)} {
		out, err := exec.Command(sh, "-c", command).Output()
		var exit *exec.ExitError
		require.ErrorAs(t, err, &exit)
		require.Equal(t, 1, exit.ExitCode())
		require.Contains(t, []string{"hook claude\n", "hook codex\n"}, string(out))
	}
}

// TestCodexLacks compares by the command, wherever in the file it is.
func TestCodexLacks(t *testing.T) {
	t.Parallel()
	set := Codex("/", "/x")
	require.Nil(t, CodexLacks(set.Files[0].Data, "/x"))
	require.Equal(t, string(set.Files[0].Data), string(CodexLacks([]byte("no JSON"), "/x")))
	require.Equal(t, string(Codex("/", "/y").Files[0].Data), string(CodexLacks(set.Files[0].Data, "/y")))
	some := hooksOf(codexCommand("/x"), codexEvents[1:]...)
	require.Equal(t, string(hooksOf(codexCommand("/x"), codexEvents[0])), string(CodexLacks(some, "/x")))
}

// TestNothingChangesTwice: what is installed is due no more, and a lopen that was moved is.
func TestNothingChangesTwice(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	require.NoError(t, s.Install())
	due, err := s.Due()
	require.NoError(t, err)
	require.Empty(t, due)
	moved := Claude(s.Base, "/elsewhere/lopen", "1.0.0")
	due, err = moved.Due()
	require.NoError(t, err)
	require.Equal(t, []string{"hooks/hooks.json", "hooks/failure.json"}, []string{due[0].Name, due[1].Name})
	require.NoError(t, moved.Install())
	found, stay, err := s.Remove()
	require.NoError(t, err)
	require.True(t, found)
	require.Empty(t, stay)
	require.NoDirExists(t, filepath.Join(s.Base, "skills"))
	require.False(t, slices.Contains(s.folders(), "."))
}
