package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/bench/turns"
	"github.com/lopen-dev/lopen/bench/workload"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
)

// home is a project as people have them.
type home struct {
	dir, side string // side is for what is no part of it
	names     []string
	project   // its session is the one with the conversation
}

const homeBytes = 20 << 20 // of the conversation

func newHome(b *testing.B) *home {
	h := &home{dir: b.TempDir(), side: b.TempDir()}
	h.names = must(workload.Tree(h.dir, 5000))
	plan := "# Plan: bench\n\n"
	for i := range usual {
		plan += fmt.Sprintf("- [ ] %s, number %d\n", workload.TaskName, i)
	}
	// As the command has it.
	store, _, err := lifecycle.Init(h.dir, lifecycle.Options{Policy: lifecycle.Policy{CheckpointBytes: 2 << 30}})
	h.store = must(store, err)
	b.Cleanup(func() { require.NoError(b, h.Close()) })
	require.NoError(b, h.store.CreatePlan("bench", []byte(plan)))
	for i := range 300 {
		if i > 0 {
			require.NoError(b, h.sess.Close(b.Context()))
		}
		h.sess = must(h.store.Create(b.Context(), "other"))
	}
	h.fill(usual)
	return h
}

// BenchmarkPeople is what somebody who uses the command notices, beside the tool that does
// the same, where there is one.
func BenchmarkPeople(b *testing.B) {
	h := newHome(b)
	h.messages(b)
	h.files(b)
	h.resumeAndFork(b)
	require.NoError(b, h.sess.Close(b.Context()))
	h.command(b)
}

func sidesOf(b *testing.B, name string, sides ...turns.Side) {
	b.Run(name, func(b *testing.B) { turns.Run(b, sides...) })
}

// files are those of the project, kept and compared.
func (h *home) files(b *testing.B) {
	rng := rand.New(rand.NewPCG(workload.Seed, 2))
	change := func() {
		for range 5 {
			require.NoError(b, os.WriteFile(h.names[rng.IntN(len(h.names))], fmt.Appendf(nil, "%x\n", rng.Uint64()), 0o644))
		}
	}
	keep := func() {
		_, _, err := h.sess.Checkpoint(b.Context(), checkpoint.Manual, "")
		require.NoError(b, err)
	}
	checkpoints := []turns.Side{{Name: "lopen", Before: change, Do: keep}}
	looks := []turns.Side{{Name: "lopen", Do: func() { must(h.sess.Look(b.Context())) }}}
	keep()
	if git := workload.Git(filepath.Join(h.side, "git"), h.dir); git != nil {
		require.NoError(b, git("init", "-q"))
		require.NoError(b, git("-c", "core.fsync=none", "add", "-A")) // that is not measured
		checkpoints = append(checkpoints, turns.Side{Name: "git", Before: change, Do: func() {
			require.NoError(b, git("add", "-A"))
			require.NoError(b, git("write-tree"))
		}})
		looks = append(looks, turns.Side{Name: "git", Do: func() { require.NoError(b, git("status", "--porcelain")) }})
	}
	sidesOf(b, "checkpoint", checkpoints...)
	time.Sleep(2100 * time.Millisecond) // until no file is so young that it has to be read again
	sidesOf(b, "look", looks...)
}

// messages fills this project, databases and the model of a loop that keeps its
// conversation in the file of its state, which it writes whole and reads whole.
func (h *home) messages(b *testing.B) {
	all := open(b, h.side, usual, kind{key: "bbolt"}, kind{key: "sqlite-full"})
	all = append(all, &contender{kind: kind{key: "lopen"}, Peer: h.project, tb: b})
	text := workload.Text(64<<10, 0)
	for range homeBytes / len(text) {
		for _, c := range all {
			c.say(text)
		}
	}
	text = workload.Text(4<<10, 0)
	model := newWhole(usual, func(data []byte) error { return writeRename(stateFile(h.side), data) })
	for range homeBytes / len(text) {
		model.Messages = append(model.Messages, text)
	}
	all = append(all, &contender{kind: kind{key: "file"}, Peer: model, tb: b})
	b.Run("message", func(b *testing.B) {
		inTurns(b, all, func(c *contender) turns.Side { return turns.Side{Do: func() { c.say(text) }} })
	})
}

func (h *home) resumeAndFork(b *testing.B) {
	id := h.sess.ID()
	sidesOf(b, "resume", turns.Side{Name: "lopen", Before: func() { require.NoError(b, h.sess.Close(b.Context())) }, Do: func() { h.sess = must(h.store.Open(id)) }},
		turns.Side{Name: "file", Do: func() { require.NoError(b, json.Unmarshal(must(os.ReadFile(stateFile(h.side))), new(document))) }})
	from, to := filepath.Join(h.store.Path(), "sessions", id.String()), filepath.Join(h.side, "folder")
	var made *lifecycle.Session
	sidesOf(b, "fork", turns.Side{Name: "lopen", Do: func() { made = must(h.store.Fork(b.Context(), id, lifecycle.ForkOptions{})) }, After: func() {
		require.NoError(b, made.Close(b.Context()))
		must(h.store.Delete(b.Context(), made.ID()))
	}}, turns.Side{Name: "folder", Do: func() { require.NoError(b, os.CopyFS(to, os.DirFS(from))) }, After: func() { require.NoError(b, os.RemoveAll(to)) }})
}

// command is what the command itself takes, the start of its process included.
func (h *home) command(b *testing.B) {
	program := filepath.Join(h.side, "lopen.exe") // which every system can start
	must(command("go", "-C", filepath.Join("..", ".."), "build", "-o", program, "./cmd/lopen"))
	run := func(args ...string) func() {
		return func() { must(command(program, append([]string{"-C", h.dir}, args...)...)) }
	}
	var first *exec.Cmd
	var lines *bufio.Reader
	begin := func() {
		// A task that fails its check is the first one of the next run as well.
		first = exec.Command(program, "-C", h.dir, "run", "bench", "--max-iterations", "1", "--check", "exit 1", "--failure-threshold", "1000000", "--", "sh", "-c", "echo first-task")
		lines = bufio.NewReader(must(first.StdoutPipe()))
		require.NoError(b, first.Start())
		for !strings.Contains(must(lines.ReadString('\n')), "first-task") {
			continue
		}
	}
	end := func() {
		must(io.Copy(io.Discard, lines))
		_ = first.Wait() // that its task failed is no error
	}
	start := turns.Side{Name: "start", Do: run("version")}
	sidesOf(b, "list", turns.Side{Name: "lopen", Do: run("session", "list")}, start)
	sidesOf(b, "show", turns.Side{Name: "lopen", Do: run("session", "show", h.sess.ID().String())}, start)
	sidesOf(b, "run", turns.Side{Name: "lopen", Do: begin, After: end}, start)
}
