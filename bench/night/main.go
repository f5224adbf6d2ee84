package main

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

func main() {
	if filepath.Base(os.Args[0]) == agentName {
		os.Exit(beStandIn())
	}
	lopen := flag.String("lopen", "", "the lopen to run; one is built where none is named; - is none")
	ralphex := flag.String("ralphex", "", "a ralphex to run on the same plan")
	kills := flag.Int("kills", 0, "how often lopen is killed with SIGKILL at a random moment")
	seed := flag.Uint64("seed", 1, "of the moments of the kills")
	tasks := flag.Int("tasks", 40, "tasks of the plan")
	keep := flag.String("keep", "", "folder that keeps the projects and what the tools printed")
	flag.Parse()
	if err := run(*lopen, *ralphex, *kills, *seed, *tasks, *keep); err != nil {
		fmt.Fprintln(os.Stderr, "night:", err)
		os.Exit(1)
	}
}

const (
	agentName = "claude"
	restarts  = 20 // a person gives up after so many
)

// linkAgent gives this program the agent's name in a folder.
func linkAgent(bin string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(bin, 0o750); err != nil {
		return err
	}
	if err := os.Symlink(self, filepath.Join(bin, agentName)); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return nil
}

func run(lopen, ralphex string, kills int, seed uint64, tasks int, keep string) error {
	dir := keep
	if dir == "" {
		tmp, err := os.MkdirTemp("", "night-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(tmp)
		dir = tmp
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	if err := linkAgent(filepath.Join(dir, "bin")); err != nil {
		return err
	}
	if lopen == "" {
		lopen = filepath.Join(dir, "bin", "lopen")
		if out, err := exec.Command("go", "build", "-o", lopen, "github.com/lopen-dev/lopen/cmd/lopen").CombinedOutput(); err != nil {
			return fmt.Errorf("build lopen: %w: %s", err, out)
		}
	}
	first := &night{name: "lopen", tool: lopen, dir: filepath.Join(dir, "lopen"), tasks: tasks, args: lopenArgs}
	var nights []*night
	if lopen != "-" {
		nights = append(nights, first)
	}
	if lopen != "-" && kills > 0 {
		n := *first
		n.name, n.dir, n.kills, n.random = fmt.Sprintf("lopen, killed %d times", kills), filepath.Join(dir, "lopen-killed"), kills, rand.New(rand.NewPCG(seed, 0))
		nights = append(nights, &n)
	}
	if ralphex != "" {
		nights = append(nights, &night{name: "ralphex", tool: ralphex, dir: filepath.Join(dir, "ralphex"), tasks: tasks, args: ralphexArgs, ticks: true})
	}
	var found []morning
	for _, n := range nights {
		m, err := n.sleep(filepath.Join(dir, "bin"))
		if err != nil {
			return fmt.Errorf("%s: %w", n.name, err)
		}
		found = append(found, m)
	}
	fmt.Print(table(found, tasks))
	return nil
}

var (
	lopenArgs = []string{"run", "night", "--unattended", "--idle-timeout", "5s", "--wait", "10m", "--check", "sh check.sh", "--agent", "claude"}
	// As its documentation tells people to let it work through a plan without its reviews.
	ralphexArgs = []string{"--tasks-only", "--no-color", "--idle-timeout=5s", "--wait=10s", "--max-iterations=200", "docs/plans/night.md"}
)

// A night is one tool that works through the plan.
type night struct {
	name, tool, dir string
	tasks           int
	args            []string
	ticks           bool // the tool leaves boxes and commits to the agent
	kills           int
	random          *rand.Rand
}

func (n *night) project() string { return filepath.Join(n.dir, "project") }
func (n *night) state() string   { return filepath.Join(n.dir, "state") }
func (n *night) plan() string    { return filepath.Join(n.project(), "docs", "plans", "night.md") }

// prepare makes the project: a Go module in a repository, with a plan.
func (n *night) prepare() error {
	if err := os.RemoveAll(n.dir); err != nil {
		return err
	}
	var plan strings.Builder
	plan.WriteString("# Night\n\nEach task writes one file of the package.\n\n## Validation Commands\n\n`sh check.sh`\n\n")
	for i := range n.tasks {
		fmt.Fprintf(&plan, "### Task %d: file %d\n\n- [ ] write t%02d.go\n\n", i+1, i+1, i+1)
	}
	files := map[string]string{
		"go.mod":              "module night\n\ngo 1.24\n",
		"work.go":             "package work\n",
		".gitignore":          ".ralphex/\n",
		"docs/plans/night.md": plan.String(),
		"work.list":           "",
		"check.sh":            check,
	}
	for _, folder := range []string{n.state(), filepath.Dir(n.plan())} {
		if err := os.MkdirAll(folder, 0o750); err != nil {
			return err
		}
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(n.project(), name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"config", "user.name", "a"}, {"config", "user.email", "a@b"}, {"add", "-A"}, {"commit", "-qm", "begin"}, {"checkout", "-qb", "night"}} {
		cmd := exec.Command("git", args...)
		cmd.Dir = n.project()
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("git %s: %w: %s", args[0], err, out)
		}
	}
	return nil
}

// check is red when a file of an earlier task is gone, when the project does not compile, and
// when the file of the task that it judges is not there.
const check = `missing=0
for f in $(cat work.list); do
	[ -e "$f" ] || { echo "missing: $f"; missing=1; }
done
[ $missing = 0 ] && go build ./... || exit 1
case "$LOPEN_TASK" in
*.go) grep -q return "${LOPEN_TASK#write }" && grep -qx "${LOPEN_TASK#write }" work.list ;;
esac
`

// command is one start of the tool.
func (n *night) command(bin string, args []string) *exec.Cmd {
	cmd := exec.Command(n.tool, args...)
	cmd.Dir = n.project()
	home := filepath.Join(n.dir, "home")
	cmd.Env = append(os.Environ(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"), "HOME="+home, "XDG_STATE_HOME="+filepath.Join(home, "state"),
		"XDG_CONFIG_HOME="+filepath.Join(home, "config"), "GOCACHE="+goCache(), "GOFLAGS=-mod=mod", "NIGHT_STATE="+n.state())
	if n.ticks {
		cmd.Env = append(cmd.Env, "NIGHT_PLAN="+n.plan())
	}
	return cmd
}

func goCache() string {
	out, _ := exec.Command("go", "env", "GOCACHE").Output()
	return strings.TrimSpace(string(out))
}

// sleep has the tool work until its plan is complete or a person gives up, and looks at
// what is there then.
func (n *night) sleep(bin string) (morning, error) {
	if err := n.prepare(); err != nil {
		return morning{}, err
	}
	log, err := os.Create(filepath.Join(n.dir, "printed"))
	if err != nil {
		return morning{}, err
	}
	defer log.Close()
	if !n.ticks {
		cmd := n.command(bin, []string{"plan", "create", "night", "--from", "docs/plans/night.md"})
		if out, err := cmd.CombinedOutput(); err != nil {
			return morning{}, fmt.Errorf("%w: %s", err, out)
		}
	}
	m := morning{name: n.name}
	begun := time.Now()
	for {
		started := len(n.starts())
		cmd := n.command(bin, n.args)
		cmd.Stdout, cmd.Stderr = log, log
		if err := cmd.Start(); err != nil {
			return m, err
		}
		killed := n.killSoon(cmd)
		err := cmd.Wait()
		if <-killed {
			m.Kills++
			continue
		}
		m.Exits = append(m.Exits, cmd.ProcessState.ExitCode())
		if err == nil || n.triedAll(started) || len(m.Exits) > restarts {
			break
		}
		m.Restarts++
	}
	m.Took = time.Since(begun)
	return m, n.look(&m)
}

// starts are the tasks that the agent was started for, in order.
func (n *night) starts() (tasks []int) {
	data, _ := os.ReadFile(filepath.Join(n.state(), "starts"))
	for line := range strings.Lines(string(data)) {
		var task int
		if _, err := fmt.Sscanf(line, "task %d ", &task); err == nil {
			tasks = append(tasks, task)
		}
	}
	return tasks
}

// triedAll says that the tool began each task that is open, so that starting it again would
// do the same again: there is something to mend first.
func (n *night) triedAll(before int) bool {
	boxes, err := n.boxes()
	tried := n.starts()
	tried = tried[min(before, len(tried)):]
	for task := 1; task <= n.tasks; task++ {
		if err != nil || !boxes[task] && !slices.Contains(tried, task) {
			return false
		}
	}
	return true
}

// killSoon kills the tool at a random moment while kills are left, and says whether it did.
func (n *night) killSoon(cmd *exec.Cmd) <-chan bool {
	done := make(chan bool, 1)
	if n.kills == 0 {
		done <- false
		return done
	}
	n.kills--
	after := time.Duration(500+n.random.IntN(3000)) * time.Millisecond
	time.AfterFunc(after, func() { done <- cmd.Process.Kill() == nil })
	return done
}
