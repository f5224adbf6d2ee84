//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// A person edits a plan with commands and in the file, while lopen runs it.
type person struct {
	t    *testing.T
	dir  string
	said bytes.Buffer // what the runs wrote to stderr
}

func newPerson(t *testing.T, planned string) *person {
	t.Helper()
	p := &person{t: t, dir: t.TempDir()}
	require.NoError(t, os.WriteFile(p.at("TODO.md"), []byte(planned), 0o600))
	for _, fifo := range []string{"at", "go"} {
		require.NoError(t, syscall.Mkfifo(p.at(fifo), 0o600))
	}
	require.NoError(t, os.WriteFile(p.at("agent.sh"), []byte(`echo "$LOPEN_TASK_ID" >>ran
case $LOPEN_TASK in gate*) echo "$LOPEN_TASK_ID" >at; cat go >/dev/null ;; esac
`), 0o600))
	p.lopen(0, "plan", "create", "m", "--from", "TODO.md")
	return p
}

func (p *person) at(name string) string { return filepath.Join(p.dir, name) }
func (p *person) plan() string          { return p.at(".lopen/modules/m/plan.md") }

// lopen runs a command in this process, as main does.
func (p *person) lopen(code int, args ...string) (stdout string) {
	var out, errs bytes.Buffer
	nothing, err := os.Open(os.DevNull)
	if err != nil {
		p.t.Error(err)
		return ""
	}
	defer nothing.Close()
	got := run(append([]string{"-C", p.dir}, args...), nothing, &out, &errs, command(p.t, p.dir).Env)
	if args[0] == "run" {
		p.said.Write(errs.Bytes())
	}
	if got != code {
		p.t.Errorf("%v: exit %d: %s", args, got, errs.String())
	}
	return out.String()
}

// hand replaces a text in the plan, as an editor does.
func (p *person) hand(from, to string) {
	data, err := os.ReadFile(p.plan())
	require.NoError(p.t, err)
	require.Equal(p.t, 1, strings.Count(string(data), from), "%q in\n%s", from, data)
	require.NoError(p.t, os.WriteFile(p.plan(), []byte(strings.Replace(string(data), from, to, 1)), 0o600))
}

// run runs the module, and calls edit with each task that waits at its gate.
func (p *person) run(code int, edit func(task string)) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.lopen(code, "run", "m", "--no-checkpoint", "--failure-threshold", "1", "--", "sh", "agent.sh")
		hangUp(p.at("at"))
	}()
	for {
		task, err := os.ReadFile(p.at("at"))
		require.NoError(p.t, err)
		if len(task) == 0 {
			break
		}
		edit(strings.TrimSpace(string(task)))
		require.NoError(p.t, os.WriteFile(p.at("go"), []byte("\n"), 0))
	}
	<-done
}

// hangUp opens a FIFO for writing and closes it, which its reader sees as an empty file.
func hangUp(fifo string) {
	if f, err := os.OpenFile(fifo, os.O_WRONLY, 0); err == nil {
		_ = f.Close()
	}
}

// ran counts the attempts at each task, and empties the list.
func (p *person) ran() map[string]int {
	data, err := os.ReadFile(p.at("ran"))
	require.NoError(p.t, err)
	n := map[string]int{}
	for id := range strings.FieldsSeq(string(data)) {
		n[id]++
	}
	require.NoError(p.t, os.Remove(p.at("ran")))
	return n
}

// states are those of the session's tasks, by ID.
func (p *person) states() map[string]string {
	type task struct {
		ID, State string
		Children  []task
	}
	var st struct{ Tasks []task }
	require.NoError(p.t, json.Unmarshal([]byte(p.lopen(0, "session", "show", "--json")), &st))
	is := map[string]string{}
	var add func(all []task)
	add = func(all []task) {
		for _, t := range all {
			is[t.ID] = t.State
			add(t.Children)
		}
	}
	add(st.Tasks)
	return is
}

// An edit of a person, and what becomes of it.
type edit struct {
	when, how, what string
	outcome         string // for docs/PLANS.md

	begin string                        // the task's line, in a component of its own; "" is "- [ ] t"
	do    func(p *person, id, n string) // n is the component
	task  string                        // whose state is looked at, below the component; "" is t
	runs  int                           // attempts
	state string                        // at the end of the run; "" is gone
	line  string                        // part of the plan then
	says  string                        // by the run; @ is the component
}

const (
	between           = "between two runs"
	during            = "during an attempt"
	active            = "to the task in progress"
	after             = "after the last task"
	byCommand, inFile = "command", "file"
)

func lopenPlan(args ...string) func(*person, string, string) {
	return func(p *person, id, n string) {
		all := []string{"plan", args[0], "m", id}
		for _, a := range args[1:] {
			all = append(all, strings.ReplaceAll(a, "@", n))
		}
		p.lopen(0, all...)
	}
}

func byHand(from, to string) func(*person, string, string) {
	return func(p *person, _, n string) {
		p.hand("## "+n+"\n\n"+from+"\n", "## "+n+"\n\n"+to+"\n")
	}
}

var edits = []edit{
	{between, byCommand, "`plan tick`", "done, does not run", "", lopenPlan("tick"), "", 0, "complete", "- [x] t", "ticked by hand, counts as done: @/t"},
	{between, byCommand, "`plan untick` of a done task", "runs again", "- [x] t", lopenPlan("untick"), "", 1, "complete", "- [x] t", "unticked by hand, runs again: @/t"},
	{between, byCommand, "`plan skip`", "does not run", "", lopenPlan("skip"), "", 0, "skipped", "- [ ] t <!-- lopen: skipped -->", ""},
	{between, byCommand, "`plan revive` of a skipped task", "runs", "- [ ] t <!-- lopen: skipped -->", lopenPlan("revive"), "", 1, "complete", "- [x] t", ""},
	{between, byCommand, "`plan mark failed`", "tried again", "", lopenPlan("mark", "failed"), "", 1, "complete", "- [x] t", "failed last time, tries again: t"},
	{between, byCommand, "`plan rename` of a done task", "stays done", "- [x] t", lopenPlan("rename", "new"), "new", 0, "complete", "- [x] new", "reworded, so a new task: @/new (was @/t)"},
	{between, inFile, "a box ticked", "done, does not run", "", byHand("- [ ] t", "- [x] t"), "", 0, "complete", "- [x] t", "ticked by hand, counts as done: @/t"},
	{between, inFile, "a box unticked", "runs again", "- [x] t", byHand("- [x] t", "- [ ] t"), "", 1, "complete", "- [x] t", "unticked by hand, runs again: @/t"},
	{between, inFile, "`<!-- lopen: skipped -->` written", "does not run", "", byHand("- [ ] t", "- [ ] t <!-- lopen: skipped -->"), "", 0, "skipped", "- [ ] t <!-- lopen: skipped -->", "marked as skipped by hand, does not run: @/t"},
	{between, inFile, "`<!-- lopen: skipped -->` deleted", "stays skipped, is written again", "- [ ] t <!-- lopen: skipped -->", byHand("- [ ] t <!-- lopen: skipped -->", "- [ ] t"), "", 0, "skipped", "- [ ] t <!-- lopen: skipped -->", "its mark is written again: @/t; if it is to run: lopen plan revive m @/t"},
	{between, inFile, "a task added, removed or reworded", "counts", "", byHand("- [ ] t", "- [ ] new"), "new", 1, "complete", "- [x] new", "reworded, so a new task: @/new (was @/t)"},

	{during, byCommand, "`plan tick`", "done, does not run", "", lopenPlan("tick"), "", 0, "complete", "- [x] t", "ticked by command, counts as done: @/t"},
	{during, byCommand, "`plan tick` of a task with others beneath it", "all of them are done", "- [ ] t\n  - [ ] u", lopenPlan("tick"), "t/u", 0, "complete", "- [x] t\n  - [x] u", "counts as done: @/t/u"},
	{during, byCommand, "`plan untick` of a done task", "runs again", "- [x] t", lopenPlan("untick"), "", 1, "complete", "- [x] t", "unticked or revived by command, runs again: @/t"},
	{during, byCommand, "`plan skip`", "does not run", "", lopenPlan("skip"), "", 0, "skipped", "- [ ] t <!-- lopen: skipped -->", "skipped by command, does not run: @/t"},
	{during, byCommand, "`plan revive` of a skipped task", "runs", "- [ ] t <!-- lopen: skipped -->", lopenPlan("revive"), "", 1, "complete", "- [x] t", "unticked or revived by command, runs again: @/t"},
	{during, byCommand, "`plan mark failed`", "does not run in this run", "", lopenPlan("mark", "failed"), "", 0, "failed", "- [ ] t <!-- lopen: failed -->", "marked as failed by command"},
	{during, byCommand, "`plan add`", "runs", "", func(p *person, id, _ string) { p.lopen(0, "plan", "add", "m", "new", "--after", id) }, "new", 1, "complete", "- [x] t\n- [x] new", "new in the plan: @/new"},
	{during, byCommand, "`plan rename` of an open task", "runs by its new name", "", lopenPlan("rename", "new"), "new", 1, "complete", "- [x] new", "reworded, so a new task: @/new (was @/t)"},
	{during, byCommand, "`plan rename` of a done task", "stays done", "- [x] t", lopenPlan("rename", "new"), "new", 0, "complete", "- [x] new", "reworded, so a new task: @/new (was @/t)"},
	{during, byCommand, "`plan move` of a done task", "stays done", "- [x] t\n- [ ] u", lopenPlan("move", "--under", "@/u"), "u/t", 0, "complete", "- [x] u\n  - [x] t", "new in the plan: @/u/t"},
	{during, byCommand, "`plan remove`", "does not run", "- [ ] t\n- [ ] u", lopenPlan("remove"), "", 0, "", "- [x] u", "no longer in the plan: @/t"},
	{during, inFile, "a box ticked", "set back, runs", "", byHand("- [ ] t", "- [x] t"), "", 1, "complete", "- [x] t", "set back: @/t; if it was you: lopen plan tick m @/t"},
	{during, inFile, "a box unticked", "set back, stays done", "- [x] t", byHand("- [x] t", "- [ ] t"), "", 0, "complete", "- [x] t", "set back: @/t; if it was you: lopen plan untick m @/t"},
	{during, inFile, "`<!-- lopen: skipped -->` written", "taken away, runs", "", byHand("- [ ] t", "- [ ] t <!-- lopen: skipped -->"), "", 1, "complete", "- [x] t", "set back: @/t; if it was you: lopen plan skip m @/t"},
	{during, inFile, "`<!-- lopen: skipped -->` deleted", "stays skipped, is written again", "- [ ] t <!-- lopen: skipped -->", byHand("- [ ] t <!-- lopen: skipped -->", "- [ ] t"), "", 0, "skipped", "- [ ] t <!-- lopen: skipped -->", "its mark is written again: @/t"},
	{during, inFile, "a task added", "runs", "", byHand("- [ ] t", "- [ ] t\n- [ ] new"), "new", 1, "complete", "- [x] t\n- [x] new", "new in the plan: @/new"},
	{during, inFile, "a task added that is ticked", "set back, runs", "", byHand("- [ ] t", "- [ ] t\n- [x] new"), "new", 1, "complete", "- [x] t\n- [x] new", "set back: @/new; if it was you: lopen plan tick m @/new"},
	{during, inFile, "a task removed", "does not run", "- [ ] t\n- [ ] u", byHand("- [ ] t\n- [ ] u", "- [ ] u"), "", 0, "", "- [x] u", "no longer in the plan: @/t"},
	{during, inFile, "an open task reworded", "runs by its new name", "", byHand("- [ ] t", "- [ ] new"), "new", 1, "complete", "- [x] new", "reworded, so a new task: @/new (was @/t)"},

	{active, byCommand, "`plan tick`", "done, does not run again, whatever its attempt comes to", "- [ ] gate", lopenPlan("tick"), "gate", 1, "complete", "- [x] gate", "the attempt at gate decides nothing: it is complete, as you decided meanwhile"},
	{active, byCommand, "`plan untick`", "nothing: the attempt decides", "- [ ] gate", lopenPlan("untick"), "gate", 1, "complete", "- [x] gate", ""},
	{active, byCommand, "`plan skip`", "skipped, also where its attempt is good", "- [ ] gate", lopenPlan("skip"), "gate", 1, "skipped", "- [ ] gate <!-- lopen: skipped -->", "it is skipped, as you decided meanwhile"},
	{active, byCommand, "`plan mark failed`", "failed, also where its attempt is good", "- [ ] gate", lopenPlan("mark", "failed"), "gate", 1, "failed", "- [ ] gate <!-- lopen: failed -->", "it is failed, as you decided meanwhile"},
	{active, byCommand, "`plan rename`", "a new task, which runs", "- [ ] gate", lopenPlan("rename", "new"), "new", 1, "complete", "- [x] new", "reworded, so a new task: @/new (was @/gate)"},
	{active, byCommand, "`plan remove`", "gone, its attempt decides nothing", "- [ ] gate", lopenPlan("remove"), "gate", 1, "", "", "the attempt at @/gate decides nothing: it is no longer in the plan"},
	{active, inFile, "its box ticked", "set back, the attempt decides", "- [ ] gate", byHand("- [ ] gate", "- [x] gate"), "gate", 1, "complete", "- [x] gate", "set back: @/gate; if it was you: lopen plan tick m @/gate"},

	{after, byCommand, "`plan untick` of a done task", "runs again", "", lopenPlan("untick"), "", 2, "complete", "- [x] t", "unticked by hand, runs again: @/t"},
	{after, inFile, "a box unticked", "runs again", "", byHand("- [x] t", "- [ ] t"), "", 2, "complete", "- [x] t", "unticked by hand, runs again: @/t"},
}

// A scripted person makes each kind of edit, by command and in the file, before, during and
// after an attempt. What becomes of it is the table of docs/PLANS.md.
func TestWhatBecomesOfEachEdit(t *testing.T) {
	t.Parallel()
	oneByOne(t)
	var b strings.Builder
	b.WriteString("# m\n\n- [ ] first\n- [ ] gate\n")
	for i, e := range edits {
		if e.begin == "" {
			e.begin = "- [ ] t"
		}
		fmt.Fprintf(&b, "\n## c%02d\n\n%s\n", i, e.begin)
	}
	p := newPerson(t, b.String())
	p.lopen(2, "run", "m", "--no-checkpoint", "--max-iterations", "1", "--", "true")
	edit := func(when, only string) {
		for i, e := range edits {
			n := fmt.Sprintf("c%02d", i)
			id := n + "/t"
			if e.when == active {
				id = n + "/gate"
			}
			if e.when == when && (only == "" || only == id) {
				e.do(p, id, n)
			}
		}
	}
	edit(between, "")
	p.run(2, func(task string) {
		if task == "gate" {
			edit(during, "")
		} else {
			edit(active, task)
		}
	})
	ran, states, said := p.ran(), p.states(), p.said.String()
	edit(after, "")
	planned, err := os.ReadFile(p.plan())
	require.NoError(t, err)
	p.run(0, func(string) {})
	again, later := p.ran(), p.states()
	docs, err := os.ReadFile("../../docs/PLANS.md")
	require.NoError(t, err)
	for i, e := range edits {
		n := fmt.Sprintf("c%02d", i)
		row := fmt.Sprintf("| %s | %s | %s | %s |", e.when, e.how, e.what, e.outcome)
		if e.task == "" {
			e.task = "t"
		}
		id, is, runs, text := n+"/"+e.task, states, ran[n+"/"+e.task], string(planned)
		if e.when == after {
			last, err := os.ReadFile(p.plan())
			require.NoError(t, err)
			is, runs, text, said = later, runs+again[id], string(last), p.said.String()
		}
		require.Equal(t, e.runs, runs, "attempts at %s: %s", id, row)
		require.Equal(t, e.state, is[id], "%s: %s", id, row)
		if e.line != "" {
			require.Contains(t, text, "## "+n+"\n\n"+e.line+"\n", "%s", row)
		}
		require.Contains(t, said, strings.ReplaceAll(e.says, "@", n), "%s", row)
		require.Contains(t, string(docs), row+"\n")
	}
}

// Two terminals edit a hundred tasks while a run ticks others: no edit is lost.
func TestNoEditIsLost(t *testing.T) {
	t.Parallel()
	const n = 50
	var b strings.Builder
	b.WriteString("- [ ] gate\n")
	for i := range 5 {
		fmt.Fprintf(&b, "- [ ] run %d\n", i)
	}
	b.WriteString("- [ ] gate two\n")
	for i := range n {
		fmt.Fprintf(&b, "- [ ] tick %d\n- [ ] skip %d\n", i, i)
	}
	p := newPerson(t, b.String())
	var terminals sync.WaitGroup
	p.run(0, func(task string) {
		if task != "gate" {
			terminals.Wait()
			return
		}
		for _, verb := range []string{"tick", "skip"} {
			terminals.Go(func() {
				for i := range n {
					p.lopen(0, "plan", verb, "m", fmt.Sprintf("%s-%d", verb, i))
				}
			})
		}
	})
	require.Len(t, p.ran(), 7, "the gates and five tasks\n%s", &p.said)
	states := p.states()
	planned, err := os.ReadFile(p.plan())
	require.NoError(t, err)
	for i := range n {
		require.Equal(t, "complete", states[fmt.Sprintf("tick-%d", i)])
		require.Equal(t, "skipped", states[fmt.Sprintf("skip-%d", i)])
		require.Contains(t, string(planned), fmt.Sprintf("- [x] tick %d\n- [ ] skip %d <!-- lopen: skipped -->\n", i, i))
	}
	require.NoFileExists(t, p.at(".lopen/modules/m/decisions.json"), "all were taken")
}
