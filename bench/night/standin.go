package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// The moods of the stand-in, by task. Each is met at the task's first start, but for
// moodBreaks, which it never gets over.
const (
	moodHangs     = "hangs without a word"
	moodLimited   = "meets a usage limit with a reset time"
	moodOverload  = "meets an overloaded provider"
	moodBreaks    = "leaves a file that does not compile, and says that it is done"
	moodLies      = "does nothing, and says that it is done"
	moodFloods    = "prints a gigabyte"
	moodAsks      = "asks on the terminal"
	moodDaemon    = "leaves a daemon that holds its output"
	moodIgnores   = "rewrites .gitignore to ignore everything"
	moodCommits   = "commits"
	moodCleans    = "runs git clean -fdx"
	moodErrs      = "ends with is_error"
	moodTicks     = "ticks boxes of other tasks in the plan"
	moodForbidden = "is refused a permission, and says that it is done"
	moodDies      = "is killed in the middle of its work"
)

var moods = map[int]string{
	3: moodHangs, 5: moodLimited, 8: moodOverload, 10: moodBreaks, 12: moodLies, 14: moodFloods, 16: moodAsks, 18: moodDaemon,
	20: moodCommits, 22: moodIgnores, 24: moodCleans, 26: moodErrs, 28: moodTicks, 32: moodForbidden, 34: moodDies,
}

const (
	limitLasts    = 6 * time.Second
	overloadLasts = 4 * time.Second
	daemonLives   = 20 // seconds
	floodBytes    = 1 << 30
)

// standIn is one start of the agent.
type standIn struct {
	project, state, plan string // plan is what a loop leaves to the agent: "" where it ticks itself
	task, start          int    // from 1
	args                 []string
	out                  io.Writer
}

// beStandIn is the program under the name of the agent.
func beStandIn() int {
	s := standIn{state: os.Getenv("NIGHT_STATE"), plan: os.Getenv("NIGHT_PLAN"), args: os.Args[1:], out: os.Stdout}
	s.project, _ = os.Getwd()
	if s.plan == "" {
		s.task = number(os.Getenv("LOPEN_TASK"))
	} else {
		s.task = s.nextOpen()
	}
	if len(s.args) == 1 && s.args[0] == "--version" {
		fmt.Fprintln(s.out, "0.0.0 (stand-in)")
		return 0
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	if until, ok := s.until("limit"); ok {
		return s.limited(until)
	}
	if _, ok := s.until("overload"); ok {
		return s.overloaded()
	}
	if s.task == 0 {
		s.say("All tasks are done. <<<RALPHEX:ALL_TASKS_DONE>>>")
		return s.result("success", false)
	}
	s.begin()
	return s.work()
}

var taskNumber = regexp.MustCompile(`t(\d\d)\.go`)

func number(text string) int {
	m := taskNumber.FindStringSubmatch(text)
	if m == nil {
		return 0
	}
	n, _ := strconv.Atoi(m[1])
	return n
}

// nextOpen is the first task of the plan whose box is open, as an agent finds it that is
// told to look there; 0 where there is none.
func (s *standIn) nextOpen() int {
	data, _ := os.ReadFile(s.plan)
	for line := range strings.Lines(string(data)) {
		if strings.HasPrefix(strings.TrimSpace(line), "- [ ]") {
			return number(line)
		}
	}
	return 0
}

// begin counts the start and writes down whether the work was there already.
func (s *standIn) begin() {
	f, err := os.OpenFile(filepath.Join(s.state, "starts"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	defer f.Close()
	data, _ := os.ReadFile(f.Name())
	s.start = 1 + bytes.Count(data, fmt.Appendf(nil, "task %d ", s.task))
	fmt.Fprintf(f, "task %d start %d there %t\n", s.task, s.start, isDone(s.project, s.task))
}

func (s *standIn) work() int {
	mood := moods[s.task]
	if mood != moodBreaks && s.start > 1 {
		mood = ""
	}
	s.event(map[string]any{"type": "system", "subtype": "init", "session_id": s.session(), "model": "stand-in", "cwd": s.project})
	s.say(fmt.Sprintf("I work on t%02d.go.", s.task))
	if end := ends[mood]; end != nil {
		return end(s)
	}
	if spoil := spoils[mood]; spoil != nil {
		spoil(s)
	}
	s.done()
	s.validate()
	return s.finish()
}

// ends are what ends an attempt without the work, or in place of its end.
var ends = map[string]func(*standIn) int{
	moodLimited: func(s *standIn) int {
		until := time.Now().Add(limitLasts)
		s.hold("limit", until)
		return s.limited(until)
	},
	moodOverload: func(s *standIn) int {
		s.hold("overload", time.Now().Add(overloadLasts))
		return s.overloaded()
	},
	moodBreaks: func(s *standIn) int {
		s.list()
		s.write(fmt.Sprintf("t%02d.go", s.task), "package work\n\nfunc broken( {\n")
		return s.finish()
	},
	moodLies: (*standIn).finish,
	moodErrs: func(s *standIn) int {
		s.result("I could not do it.", true)
		return 1
	},
	moodTicks: func(s *standIn) int {
		s.done()
		for _, plan := range []string{s.plan, filepath.Join(s.project, ".lopen/modules/night/plan.md")} {
			s.tick(plan, 30, 31)
		}
		return s.finish()
	},
	moodForbidden: func(s *standIn) int {
		s.event(map[string]any{"type": "result", "subtype": "success", "is_error": false, "result": "Done.", "session_id": s.session(), "num_turns": 1,
			"total_cost_usd": cost, "usage": usage, "permission_denials": []any{map[string]any{"tool_name": "Bash", "tool_input": map[string]any{"command": "go build ./..."}}}})
		s.finishPlan()
		return 0
	},
}

// spoils are what happens before the work is done.
var spoils = map[string]func(*standIn){
	moodHangs: func(*standIn) { time.Sleep(time.Hour) },
	moodFloods: func(s *standIn) {
		line := strings.Repeat("All work and no play. ", 400)
		for n := 0; n < floodBytes; n += len(line) {
			s.say(line)
		}
	},
	moodAsks: func(*standIn) {
		if tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0); err == nil {
			fmt.Fprint(tty, "May I? [y/N] ")
			_, _ = tty.Read(make([]byte, 1))
			_ = tty.Close()
		}
	},
	moodDaemon: func(*standIn) {
		cmd := exec.Command("setsid", "sleep", strconv.Itoa(daemonLives))
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		_ = cmd.Start()
	},
	moodIgnores: func(s *standIn) { s.write(".gitignore", "*\n") },
	moodCommits: func(s *standIn) {
		s.done()
		s.git("add", "-A")
		s.git("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "work")
	},
	moodCleans: func(s *standIn) { s.git("clean", "-fdxq") },
	moodDies: func(s *standIn) {
		s.write(fmt.Sprintf("t%02d.go", s.task), "package work\n\nfunc half")
		_ = kill()
	},
}

// validate runs the check, as both loops ask for, and writes again what it says is missing.
func (s *standIn) validate() {
	cmd := exec.Command("sh", "check.sh")
	cmd.Dir = s.project
	out, _ := cmd.CombinedOutput()
	for line := range strings.Lines(string(out)) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "missing: "); ok {
			s.write(name, workOf(number(name)))
		}
	}
}

// list adds the task's file to the list of what the check looks for, which is in git.
func (s *standIn) list() {
	name := fmt.Sprintf("t%02d.go\n", s.task)
	path := filepath.Join(s.project, "work.list")
	data, _ := os.ReadFile(path)
	if !strings.Contains(string(data), name) {
		s.write("work.list", string(data)+name)
	}
}

// done does the task's work.
func (s *standIn) done() {
	s.event(map[string]any{"type": "assistant", "session_id": s.session(), "message": map[string]any{"role": "assistant", "content": []any{
		map[string]any{"type": "tool_use", "id": "t1", "name": "Write", "input": map[string]any{"file_path": fmt.Sprintf("t%02d.go", s.task)}}}}})
	s.list()
	s.write(fmt.Sprintf("t%02d.go", s.task), workOf(s.task))
}

// workOf is what the file of a task holds when its work is done.
func workOf(task int) string {
	return fmt.Sprintf("package work\n\nfunc t%02d() int { return %d }\n", task, task)
}

func isDone(project string, task int) bool {
	data, err := os.ReadFile(filepath.Join(project, fmt.Sprintf("t%02d.go", task)))
	return err == nil && string(data) == workOf(task)
}

// finish ends a start that says that the work is done.
func (s *standIn) finish() int {
	s.finishPlan()
	return s.result("Done.", false)
}

// finishPlan ticks and commits, where the loop leaves that to the agent.
func (s *standIn) finishPlan() {
	if s.plan == "" {
		return
	}
	s.tick(s.plan, s.task)
	s.git("add", "-A")
	s.git("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", fmt.Sprintf("feat: t%02d", s.task))
	if s.nextOpen() == 0 {
		s.say("<<<RALPHEX:ALL_TASKS_DONE>>>")
	}
}

func (s *standIn) tick(plan string, tasks ...int) {
	data, err := os.ReadFile(plan)
	if err != nil {
		return
	}
	for _, n := range tasks {
		name := fmt.Sprintf("write t%02d.go", n)
		data = bytes.Replace(data, []byte("- [ ] "+name), []byte("- [x] "+name), 1)
	}
	_ = os.WriteFile(plan, data, 0o600)
}

func (s *standIn) write(name, text string) {
	_ = os.WriteFile(filepath.Join(s.project, name), []byte(text), 0o644)
}

func (s *standIn) git(args ...string) {
	cmd := exec.Command("git", args...)
	cmd.Dir = s.project
	_ = cmd.Run()
}

// session is the ID that the loop gave, or one of its own.
func (s *standIn) session() string {
	for i, a := range s.args {
		if (a == "--session-id" || a == "--resume") && i+1 < len(s.args) {
			return s.args[i+1]
		}
	}
	return "00000000-0000-4000-8000-000000000000"
}

const cost = 0.01

var usage = map[string]any{"input_tokens": 100, "output_tokens": 10, "cache_read_input_tokens": 1000}

func (s *standIn) say(text string) {
	s.event(map[string]any{"type": "assistant", "session_id": s.session(), "message": map[string]any{"role": "assistant", "content": []any{map[string]any{"type": "text", "text": text}}}})
}

func (s *standIn) result(text string, failed bool) int {
	s.event(map[string]any{"type": "result", "subtype": "success", "is_error": failed, "result": text, "session_id": s.session(), "num_turns": 1, "total_cost_usd": cost, "usage": usage})
	return 0
}

func (s *standIn) limited(until time.Time) int {
	s.event(map[string]any{"type": "rate_limit_event", "rate_limit_info": map[string]any{"status": "rejected", "resetsAt": until.Unix(), "rateLimitType": "five_hour"}, "session_id": s.session()})
	s.say("You've hit your limit · resets " + until.Format("3:04pm"))
	s.event(map[string]any{"type": "result", "subtype": "success", "is_error": true, "api_error_status": 429, "result": "You've hit your limit · resets " + until.Format("3:04pm"), "session_id": s.session(), "num_turns": 1, "total_cost_usd": 0, "usage": map[string]any{"input_tokens": 0, "output_tokens": 0}})
	return 1
}

func (s *standIn) overloaded() int {
	text := `API Error: 529 {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`
	s.say(text)
	s.event(map[string]any{"type": "result", "subtype": "success", "is_error": true, "api_error_status": 529, "result": text, "session_id": s.session(), "num_turns": 1, "total_cost_usd": 0, "usage": map[string]any{"input_tokens": 0, "output_tokens": 0}})
	return 1
}

func (s *standIn) event(e map[string]any) {
	data, err := json.Marshal(e)
	if err != nil {
		panic(err)
	}
	_, _ = s.out.Write(append(data, '\n'))
}

// hold says that the provider is not to be had until a moment, to each start.
func (s *standIn) hold(what string, until time.Time) {
	_ = os.WriteFile(filepath.Join(s.state, what), []byte(until.Format(time.RFC3339Nano)), 0o600)
}

func (s *standIn) until(what string) (time.Time, bool) {
	data, _ := os.ReadFile(filepath.Join(s.state, what))
	t, err := time.Parse(time.RFC3339Nano, string(data))
	return t, err == nil && time.Now().Before(t)
}
