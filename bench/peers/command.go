package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// command is what the command itself takes, from its start.
func (h *home) command(b *bench, folder string) error {
	id := h.sess.ID()
	if err := h.sess.Close(context.Background()); err != nil {
		return err
	}
	program := filepath.Join(h.side, "lopen")
	if runtime.GOOS == "windows" {
		program += ".exe"
	}
	if out, err := b.run(folder, "go", "build", "-o", program, "../cmd/lopen"); err != nil {
		return fmt.Errorf("build lopen: %w: %s", err, out)
	}
	run := func(args ...string) func() error {
		return func() error {
			if out, err := b.run(h.dir, program, args...); err != nil {
				return fmt.Errorf("lopen %s: %w: %s", args[0], err, out)
			}
			return nil
		}
	}
	start := way{"lopen version: the start of a process", "", nil, run("version")}
	n := thousands(h.Sessions)
	begun := &begun{cmd: func() *exec.Cmd {
		cmd := exec.Command(program, "run", "bench", "--max-iterations", "1", "--check", "exit 1", "--failure-threshold", "1000000", "--", "sh", "-c", "echo "+begunMark)
		cmd.Dir = h.dir
		return cmd
	}}
	for _, c := range []struct {
		title string
		way   way
	}{
		{"`lopen session list`, " + n + " sessions", way{Ours, reads, nil, run("session", "list")}},
		{"`lopen session show`, " + n + " sessions", way{Ours, reads, nil, run("session", "show", id.String())}},
		{fmt.Sprintf("`lopen run` until the first task's command has begun, %s files, %d tasks", thousands(h.Files), usual), way{Ours, durable, begun.end, begun.begin}},
	} {
		if err := b.compare(c.title, "The start of the process is part of it.", []way{c.way, start}); err != nil {
			return err
		}
	}
	return begun.end()
}

const begunMark = "peers-first-task"

// begun is a run of the loop whose task's command says that it has begun, and fails its
// check, so that it is the first task of each run.
type begun struct {
	cmd     func() *exec.Cmd
	running *exec.Cmd
	out     io.ReadCloser
}

// begin starts a run and returns when its first task's command has begun.
func (r *begun) begin() (err error) {
	cmd := r.cmd()
	if r.out, err = cmd.StdoutPipe(); err != nil {
		return err
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		return err
	}
	r.running = cmd
	var seen strings.Builder
	for lines := bufio.NewScanner(r.out); lines.Scan(); {
		if strings.Contains(lines.Text(), begunMark) {
			return nil
		}
		fmt.Fprintln(&seen, lines.Text())
	}
	return fmt.Errorf("no task began: %s", seen.String())
}

// end waits until the run has ended. That its task failed is no error.
func (r *begun) end() error {
	if r.running == nil {
		return nil
	}
	if _, err := io.Copy(io.Discard, r.out); err != nil {
		return err
	}
	err := r.running.Wait()
	r.running = nil
	if failed := new(exec.ExitError); errors.As(err, &failed) {
		return nil
	}
	return err
}
