package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// A morning is what a person finds.
type morning struct {
	name     string
	Ticked   int   // boxes
	Done     int   // tasks whose work is there
	False    int   // boxes ticked without the work
	Repeated int   // starts of the agent for a task whose work was there
	Starts   int   // of the agent
	Restarts int   // of the tool, by hand
	Kills    int   // of the tool
	Exits    []int // codes of the tool
	Builds   bool  // the project compiles
	Took     time.Duration
}

func (n *night) look(m *morning) error {
	boxes, err := n.boxes()
	if err != nil {
		return err
	}
	for task := 1; task <= n.tasks; task++ {
		done := isDone(n.project(), task)
		if done {
			m.Done++
		}
		if boxes[task] {
			m.Ticked++
			if !done {
				m.False++
			}
		}
	}
	starts, err := os.ReadFile(filepath.Join(n.state(), "starts"))
	if err != nil {
		return err
	}
	m.Starts = strings.Count(string(starts), "\n")
	m.Repeated = strings.Count(string(starts), " there true\n")
	build := exec.Command("go", "build", "./...")
	build.Dir = n.project()
	m.Builds = build.Run() == nil
	return nil
}

// boxes are the tasks whose box is ticked in the plan that the tool works on.
func (n *night) boxes() (map[int]bool, error) {
	plan := filepath.Join(n.project(), ".lopen", "modules", "night", "plan.md")
	if n.ticks {
		plan = n.plan()
		if _, err := os.Stat(plan); err != nil { // moved when all is done
			plan = filepath.Join(filepath.Dir(plan), "completed", filepath.Base(plan))
		}
	}
	data, err := os.ReadFile(plan)
	if err != nil {
		return nil, err
	}
	boxes := map[int]bool{}
	for line := range strings.Lines(string(data)) {
		if strings.HasPrefix(line, "- [x]") {
			boxes[number(line)] = true
		}
	}
	return boxes, nil
}

func table(found []morning, tasks int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "| of %d tasks |", tasks)
	for _, m := range found {
		fmt.Fprintf(&b, " %s |", m.name)
	}
	fmt.Fprintf(&b, "\n|---|%s\n", strings.Repeat("---|", len(found)))
	row := func(name string, value func(morning) string) {
		fmt.Fprintf(&b, "| %s |", name)
		for _, m := range found {
			fmt.Fprintf(&b, " %s |", value(m))
		}
		b.WriteByte('\n')
	}
	num := func(of func(morning) int) func(morning) string {
		return func(m morning) string { return fmt.Sprint(of(m)) }
	}
	row("tasks whose work is there", num(func(m morning) int { return m.Done }))
	row("boxes ticked", num(func(m morning) int { return m.Ticked }))
	row("boxes ticked without the work", num(func(m morning) int { return m.False }))
	row("the project builds", func(m morning) string {
		if m.Builds {
			return "yes"
		}
		return "no"
	})
	row("starts of the agent", num(func(m morning) int { return m.Starts }))
	row("starts for a task whose work was there", num(func(m morning) int { return m.Repeated }))
	row("restarts by hand", num(func(m morning) int { return m.Restarts }))
	row("kills of the tool", num(func(m morning) int { return m.Kills }))
	row("exit codes", func(m morning) string { return strings.Trim(fmt.Sprint(m.Exits), "[]") })
	row("time", func(m morning) string { return m.Took.Round(time.Second).String() })
	return b.String()
}
