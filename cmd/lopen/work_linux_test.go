package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A drawn screen is what is seen of what was written to a terminal that is wide and high enough.
type drawnScreen struct {
	lines []string
	row   int
	most  int // status lines that were seen at once
}

func (s *drawnScreen) write(out string) {
	s.lines = []string{""}
	for out != "" {
		switch {
		case strings.HasPrefix(out, "\x1b[K"):
			s.lines[s.row], out = "", out[3:]
			continue
		case strings.HasPrefix(out, "\x1b[A"):
			s.row, out = s.row-1, out[3:]
			continue
		case out[0] == '\n':
			if s.row++; s.row == len(s.lines) {
				s.lines = append(s.lines, "")
			}
		case out[0] == '\r': // always followed by LF or erasing
		default:
			s.lines[s.row] += out[:1]
		}
		out = out[1:]
		n := 0
		for _, line := range s.lines {
			if strings.Contains(line, " | 0/1  ") {
				n++
			}
		}
		s.most = max(s.most, n)
	}
}

// TestTheScreenOfSeveralRuns has two agents print while both work. Their lines do not mix, each
// run has a status line below them, and none is left at the end.
func TestTheScreenOfSeveralRuns(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	put := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	put("TODO.md", "- [ ] task\n")
	put("agent.sh", `cat >/dev/null
touch "$S/$LOPEN_MODULE"
until [ -e "$S/auth" ] && [ -e "$S/db" ]; do sleep 0.01; done
for n in 1 2 3; do printf 'half '; sleep 0.02; printf 'line\rover\n'; sleep 0.02; done
echo x >"$LOPEN_MODULE.txt"
printf '\033[31mred\n'
printf end
`)
	gitInit(t, dir)
	for _, module := range []string{"auth", "db"} {
		must(t, dir, "plan", "create", module, "--from", "TODO.md")
	}
	cmd := command(t, dir, "work", "--jobs", "2", "--", "sh", filepath.Join(dir, "agent.sh"))
	cmd.Env = append(cmd.Env, "S="+t.TempDir())
	var s drawnScreen
	out := rawTerminal(t, cmd)
	s.write(out)
	require.Equal(t, 2, s.most, "%q", out)
	for _, module := range []string{"auth", "db"} {
		var own []string
		for _, line := range s.lines {
			if text, ok := strings.CutPrefix(line, module+" | "); ok && !strings.Contains(text, module) && !strings.Contains(text, "tree") && !strings.Contains(text, "check") {
				own = append(own, text)
			}
		}
		require.Equal(t, []string{"half line", "over", "half line", "over", "half line", "over", "\x1b[31mred\x1b[0m", "end"}, own[:8], "%q", s.lines)
		require.Regexp(t, `^done: task \(`, own[8])
		require.Len(t, own, 9)
	}
	for _, line := range s.lines {
		require.NotContains(t, line, " | 0/1  ", "a status line is left")
	}
}
