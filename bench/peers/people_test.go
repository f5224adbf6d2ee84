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
	"github.com/lopen-dev/lopen/lifecycle/session"
)

// home is a project as people have them.
type home struct {
	dir, side string // side is for what is no part of it
	store     *lifecycle.Store
	sess      *lifecycle.Session // the one with the conversation
	names     []string
}

const (
	homeFiles    = 5000
	homeSessions = 300
	homeBytes    = 20 << 20 // of the conversation
	messageBytes = 4 << 10
	changedFiles = 5 // between two checkpoints
)

func newHome(b *testing.B) *home {
	h := &home{dir: b.TempDir(), side: b.TempDir()}
	var err error
	h.names, err = workload.Tree(h.dir, homeFiles)
	require.NoError(b, err)
	plan := "# Plan: bench\n\n"
	for i := range usual {
		plan += fmt.Sprintf("- [ ] %s, number %d\n", workload.TaskName, i)
	}
	// As the command has it.
	h.store, _, err = lifecycle.Init(h.dir, lifecycle.Options{Policy: lifecycle.Policy{CheckpointBytes: 2 << 30}})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, h.store.Close(b.Context())) })
	require.NoError(b, h.store.CreatePlan("bench", []byte(plan)))
	for i := range homeSessions {
		if i > 0 {
			require.NoError(b, h.sess.Close(b.Context()))
		}
		h.sess, err = h.store.Create(b.Context(), "other")
		require.NoError(b, err)
	}
	require.NoError(b, h.sess.Change(session.TriggerPhaseChanged, func(e *session.Edit) error { workload.Fill(e, usual); return nil }))
	converse(&contender{Peer: &project{h.store, h.sess}, tb: b})
	return h
}

// converse fills a peer with the conversation.
func converse(c *contender) {
	text := workload.Text(64<<10, 0)
	for n := 0; n < homeBytes; n += len(text) {
		c.say(text)
	}
}

// BenchmarkPeople is what somebody who uses the command notices, beside the tool that does
// the same, where there is one.
func BenchmarkPeople(b *testing.B) {
	h := newHome(b)
	h.files(b)
	h.messages(b)
	h.resumeAndFork(b)
	require.NoError(b, h.sess.Close(b.Context()))
	h.command(b)
}

// files are those of the project, kept and compared.
func (h *home) files(b *testing.B) {
	rng := rand.New(rand.NewPCG(workload.Seed, 2))
	change := func() {
		for range changedFiles {
			require.NoError(b, os.WriteFile(h.names[rng.IntN(len(h.names))], fmt.Appendf(nil, "%x\n", rng.Uint64()), 0o644))
		}
	}
	keep := func() {
		_, _, err := h.sess.Checkpoint(b.Context(), checkpoint.Manual, "")
		require.NoError(b, err)
	}
	look := func() {
		_, err := h.sess.Look(b.Context())
		require.NoError(b, err)
	}
	checkpoints, looks := []turns.Side{{Name: "lopen", Before: change, Do: keep}}, []turns.Side{{Name: "lopen", Do: look}}
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
	b.Run("checkpoint", func(b *testing.B) { turns.Run(b, checkpoints...) })
	time.Sleep(2100 * time.Millisecond) // until no file is so young that it has to be read again
	b.Run("look", func(b *testing.B) { turns.Run(b, looks...) })
}

// oneFile is the model of a loop that keeps its conversation in the file of its state,
// which it writes whole and reads whole.
type oneFile struct{ *whole }

func (f oneFile) Append(text string) error {
	f.Messages = append(f.Messages, text)
	return f.save()
}

func (h *home) messages(b *testing.B) {
	text := workload.Text(messageBytes, 0)
	model := oneFile{newWhole(usual, func(data []byte) error { return writeRename(stateFile(h.side), data) })}
	for n := 0; n < homeBytes; n += len(text) {
		model.Messages = append(model.Messages, text)
	}
	all := []*contender{{kind: kind{key: "lopen"}, Peer: &project{h.store, h.sess}, tb: b}, {kind: kind{key: "file"}, Peer: model, tb: b}}
	for _, key := range []string{"bbolt", "sqlite-full"} {
		c := open(b, kind{key: key}, h.side, usual)
		converse(c)
		all = append(all, c)
	}
	b.Run("message", func(b *testing.B) {
		turns.Run(b, sides(all, func(c *contender) turns.Side { return turns.Side{Do: func() { c.say(text) }} })...)
	})
}

func (h *home) resumeAndFork(b *testing.B) {
	id := h.sess.ID()
	b.Run("resume", func(b *testing.B) {
		turns.Run(b, turns.Side{Name: "lopen", Before: func() { require.NoError(b, h.sess.Close(b.Context())) }, Do: func() {
			var err error
			h.sess, err = h.store.Open(id)
			require.NoError(b, err)
		}}, turns.Side{Name: "file", Do: func() {
			data, err := os.ReadFile(stateFile(h.side))
			require.NoError(b, err)
			require.NoError(b, json.Unmarshal(data, new(document)))
		}})
	})
	from, to := filepath.Join(h.store.Path(), "sessions", id.String()), filepath.Join(h.side, "folder")
	b.Run("fork", func(b *testing.B) {
		var made *lifecycle.Session
		turns.Run(b, turns.Side{Name: "lopen", Do: func() {
			var err error
			made, err = h.store.Fork(b.Context(), id, lifecycle.ForkOptions{})
			require.NoError(b, err)
		}, After: func() {
			require.NoError(b, made.Close(b.Context()))
			_, err := h.store.Delete(b.Context(), made.ID())
			require.NoError(b, err)
		}}, turns.Side{Name: "folder", Do: func() { require.NoError(b, os.CopyFS(to, os.DirFS(from))) }, After: func() { require.NoError(b, os.RemoveAll(to)) }})
	})
}

// command is what the command itself takes, the start of its process included.
func (h *home) command(b *testing.B) {
	program := filepath.Join(h.side, "lopen.exe") // which every system can start
	build := exec.Command("go", "build", "-o", program, "./cmd/lopen")
	build.Dir = filepath.Join("..", "..")
	out, err := build.CombinedOutput()
	require.NoError(b, err, "%s", out)
	run := func(args ...string) func() {
		return func() {
			cmd := exec.Command(program, args...)
			cmd.Dir = h.dir
			out, err := cmd.CombinedOutput()
			require.NoError(b, err, "%s", out)
		}
	}
	var first *exec.Cmd
	var lines *bufio.Reader
	begin := func() {
		// A task that fails its check is the first one of the next run as well.
		first = exec.Command(program, "run", "bench", "--max-iterations", "1", "--check", "exit 1", "--failure-threshold", "1000000", "--", "sh", "-c", "echo first-task")
		first.Dir = h.dir
		stdout, err := first.StdoutPipe()
		require.NoError(b, err)
		require.NoError(b, first.Start())
		lines = bufio.NewReader(stdout)
		for line := ""; !strings.Contains(line, "first-task"); {
			line, err = lines.ReadString('\n')
			require.NoError(b, err, "no task began")
		}
	}
	end := func() {
		_, err := io.Copy(io.Discard, lines)
		require.NoError(b, err)
		_ = first.Wait() // that its task failed is no error
	}
	start := turns.Side{Name: "start", Do: run("version")}
	b.Run("list", func(b *testing.B) { turns.Run(b, turns.Side{Name: "lopen", Do: run("session", "list")}, start) })
	b.Run("show", func(b *testing.B) {
		turns.Run(b, turns.Side{Name: "lopen", Do: run("session", "show", h.sess.ID().String())}, start)
	})
	b.Run("run", func(b *testing.B) { turns.Run(b, turns.Side{Name: "lopen", Do: begin, After: end}, start) })
}
