//go:build unix

package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/plugin"
)

// A skilled is a project in which a run's task failed, and an agent is at its turn that hooks keep.
type skilled struct {
	*testing.T
	turn *hooked
	bin  string // the folder with lopen
	id   string // of the run's session
}

const changedInTurn = "changed in the turn\n"

func newSkilled(t *testing.T) *skilled {
	t.Helper()
	dir := t.TempDir()
	s := &skilled{T: t, turn: &hooked{t: t, dir: dir}, bin: t.TempDir()}
	self, err := os.Executable()
	require.NoError(t, err)
	require.NoError(t, os.Symlink(self, filepath.Join(s.bin, "lopen")))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "TODO.md"), []byte("- [ ] one\n"), 0o600))
	must(t, dir, "plan", "create", "m", "--from", "TODO.md")
	s.turn.keep()
	_ = command(t, dir, "run", "m", "--keep-failed", "--unattended", "--check", "echo no; exit 3", "--", "sh", "-c", "echo words that were said | tee -a file").Run()
	s.id = strings.TrimSpace(must(t, dir, "session", "list", "--jq", ".[0].id"))
	require.Empty(t, s.turn.hook("UserPromptSubmit", `,"prompt":"What went wrong?"`))
	require.NotEqual(t, s.id, strings.TrimSpace(must(t, dir, "session", "show", "--jq", ".id")), "the newest session is the agent's own")
	return s
}

// lines are the command lines of the skill.
func (s *skilled) lines() (all []string) {
	for line := range strings.Lines(must(s.T, s.turn.dir, "help", "skill")) {
		if line, is := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "    lopen "); is {
			all = append(all, "lopen "+strings.NewReplacer("TASK", "one", " ID", " "+s.id, "PATH", "file", "prompt:N", "prompt:1").Replace(line))
		}
	}
	return all
}

// run runs a line as it is typed.
func (s *skilled) run(line string) ([]byte, error) {
	cmd := command(s.T, s.turn.dir)
	cmd.Path, cmd.Args = "/bin/sh", []string{"sh", "-c", line}
	cmd.Env = append(cmd.Env, "PATH="+s.bin+":"+os.Getenv("PATH"))
	return cmd.Output()
}

// file is what the run's task and the turn change.
func (s *skilled) file() string { return filepath.Join(s.turn.dir, "file") }

func (s *skilled) requireFile(want, line string) {
	s.Helper()
	data, err := os.ReadFile(s.file())
	require.NoError(s, err)
	require.Equal(s, want, string(data), line)
}

// TestSkill runs each command line of the skill. The agent types most of them in its turn, and the person types
// after it what brings files back.
func TestSkill(t *testing.T) {
	t.Parallel()
	oneByOne(t)
	s := newSkilled(t)
	before, err := os.ReadFile(s.file())
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(s.file(), []byte(changedInTurn), 0o600))

	var agents, persons, ofTurn []string
	for _, line := range s.lines() {
		switch {
		case !strings.Contains(line, "--yes"):
			agents = append(agents, line)
		case !strings.Contains(line, "--session"):
			ofTurn = append(ofTurn, line)
			fallthrough
		default:
			persons = append(persons, line)
		}
	}
	require.Greater(t, len(agents), 12)
	for _, line := range agents {
		out, err := s.run(line)
		require.NoError(t, err, "%s: %s", line, out)
		if strings.Contains(line, "--json") {
			requireFields(t, line, string(out))
		}
	}
	s.requireFile(changedInTurn, "the agent's lines")

	require.Len(t, ofTurn, 2)
	for _, line := range ofTurn { // a person's to give, when the turn has ended
		var exit *exec.ExitError
		_, err := s.run(line)
		require.ErrorAs(t, err, &exit, line)
		require.Contains(t, string(exit.Stderr), "refused below claude", line)
		s.requireFile(changedInTurn, line)
	}
	require.Empty(t, s.turn.hook("Stop", ""))
	for _, line := range persons {
		out, err := s.run(line)
		require.NoError(t, err, "%s: %s", line, out)
		switch line {
		case ofTurn[0]:
			s.requireFile(string(before), line)
		case ofTurn[1]:
			s.requireFile(changedInTurn, line)
		}
	}

	name, _, _ := strings.Cut(strings.TrimPrefix(plugin.Skill, "---\nname: "), "\n")
	require.Equal(t, "lopen", name)
	require.Contains(t, plugin.Skill, "\nNever run a rewind yourself")
}

// requireFields requires that a line printed JSON, and that each field it names is there.
func requireFields(t *testing.T, line, out string) {
	t.Helper()
	for one := range strings.Lines(out) {
		require.True(t, json.Valid([]byte(one)), "%s: %s", line, one)
	}
	require.NotContains(t, []string{"[]\n", "{}\n", "null\n", ""}, out, line)
	require.NotContains(t, out, ":null", line)
}
