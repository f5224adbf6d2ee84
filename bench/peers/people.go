package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/lopen-dev/lopen/bench/workload"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

// A Home is a project as people have them.
type Home struct {
	Files, Sessions int
	Bytes           int // of one session's conversation
}

const (
	messageBytes = 4 << 10
	changedFiles = 5 // between two checkpoints
)

// home is a Home that is there.
type home struct {
	Home
	dir   string // the project
	side  string // for what is no part of it
	store *lifecycle.Store
	sess  *lifecycle.Session // the one with the conversation
	names []string
	text  string // of one message
}

// people is what somebody who uses the command notices, beside the tool that does the
// same, where there is one.
func (b *bench) people(folder string) (err error) {
	h := &home{Home: b.Home, dir: filepath.Join(b.dir, "project"), side: filepath.Join(b.dir, "side"), text: workload.Text(messageBytes, 0)}
	defer func() { err = errors.Join(err, os.RemoveAll(h.dir), os.RemoveAll(h.side)) }()
	if err := h.make(); err != nil {
		return fmt.Errorf("make a project: %w", err)
	}
	defer func() { err = errors.Join(err, h.store.Close(context.Background())) }()
	for _, part := range []func(*bench) error{h.files, h.conversation, h.fork} {
		if err := part(b); err != nil {
			return err
		}
	}
	return h.command(b, folder)
}

func (h *home) make() error {
	if err := errors.Join(os.Mkdir(h.dir, 0o700), os.Mkdir(h.side, 0o700), workload.Tree(h.dir, h.Files)); err != nil {
		return err
	}
	err := filepath.WalkDir(h.dir, func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			h.names = append(h.names, name)
		}
		return err
	})
	if err != nil {
		return err
	}
	var plan strings.Builder
	plan.WriteString("# Plan: bench\n\n")
	for i := range usual {
		fmt.Fprintf(&plan, "- [ ] %s, number %d\n", workload.TaskName, i)
	}
	// As the command has it.
	if h.store, _, err = lifecycle.Init(h.dir, lifecycle.Options{Policy: lifecycle.Policy{CheckpointBytes: 2 << 30}}); err != nil {
		return err
	}
	if err := h.store.CreatePlan("bench", []byte(plan.String())); err != nil {
		return err
	}
	for range h.Sessions {
		if h.sess != nil {
			if err := h.sess.Close(context.Background()); err != nil {
				return err
			}
		}
		if h.sess, err = h.store.Create(context.Background(), "other"); err != nil {
			return err
		}
	}
	err = h.sess.Change(session.TriggerPhaseChanged, func(e *session.Edit) error { workload.Fill(e, usual); return nil })
	return errors.Join(err, h.converse(&lopen{h.store, h.sess}))
}

// converse fills a peer with the conversation.
func (h *home) converse(p Appender) error {
	text := workload.Text(64<<10, 0)
	for n := 0; n < h.Bytes; n += len(text) {
		if err := errors.Join(p.Append(text), p.(Peer).Sync()); err != nil {
			return err
		}
	}
	return nil
}

// git returns a function that runs git on the project, its own data beside it, each
// write durable and nobody's settings; nil where there is no git.
func (h *home) git() (func(args ...string) error, error) {
	path, err := exec.LookPath("git")
	if err != nil {
		return nil, nil //nolint:nilerr // there is nothing to compare with
	}
	dir := filepath.Join(h.side, "git")
	run := func(fsync string, args ...string) error {
		cmd := exec.Command(path, append([]string{"--git-dir", dir, "--work-tree", h.dir, "-c", "core.fsync=" + fsync}, args...)...)
		cmd.Dir = h.dir
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_SYSTEM="+os.DevNull)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("git %s: %w: %s", args[0], err, out)
		}
		return nil
	}
	if err := run("none", "init", "-q"); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(dir, "info", "exclude"), []byte("/"+lifecycle.Dir+"/\n"), 0o600); err != nil {
		return nil, err
	}
	return func(args ...string) error { return run("all", args...) }, run("none", "add", "-A") // that is not measured
}

// files are those of the project, kept and compared.
func (h *home) files(b *bench) error {
	git, err := h.git()
	if err != nil {
		return err
	}
	rng := rand.New(rand.NewPCG(workload.Seed, 2))
	change := func() error {
		for range changedFiles {
			if err := os.WriteFile(h.names[rng.IntN(len(h.names))], fmt.Appendf(nil, "%x\n", rng.Uint64()), 0o644); err != nil {
				return err
			}
		}
		return nil
	}
	keep := func() error {
		_, _, err := h.sess.Checkpoint(context.Background(), checkpoint.Manual, "")
		return err
	}
	look := func() error {
		_, err := h.sess.Look(context.Background())
		return err
	}
	add := func() error { return errors.Join(git("add", "-A"), git("write-tree")) }
	status := func() error { return git("status", "--porcelain") }
	checkpoints, looks := []way{{Ours, durable, change, keep}}, []way{{Ours, reads, nil, look}}
	if git != nil {
		checkpoints = append(checkpoints, way{"git add -A && git write-tree", durable + ": core.fsync=all", change, add})
		looks = append(looks, way{"git status", reads, nil, status})
	}
	if err := keep(); err != nil {
		return err
	}
	n := thousands(h.Files)
	err = b.compare("Checkpoint of "+n+" files", fmt.Sprintf("Before each, %d of them are written for each side.", changedFiles), checkpoints)
	if err != nil {
		return err
	}
	time.Sleep(2100 * time.Millisecond) // until no file is so young that it has to be read again
	return b.compare("Which of "+n+" files changed (none did)", "", looks)
}

// oneFile is the model of a loop that keeps its state and its conversation in one file,
// which it writes whole and reads whole.
type oneFile struct {
	document
	Messages []string `json:"messages"`
	path     string
}

func (f *oneFile) Append(text string) error {
	f.Messages = append(f.Messages, text)
	data, err := json.Marshal(f)
	if err != nil {
		return err
	}
	return writeRename(f.path, data)
}

// conversation is what a session costs that has a long one.
func (h *home) conversation(b *bench) (err error) {
	ctx, size := context.Background(), bytesOf(h.Bytes)
	model := &oneFile{document: *newDocument(usual), path: stateFile(h.side)}
	for n := 0; n < h.Bytes; n += len(h.text) {
		model.Messages = append(model.Messages, h.text)
	}
	say := func(p Appender) func() error {
		return func() error { return errors.Join(p.Append(h.text), p.(Peer).Sync()) }
	}
	appends := []way{{Ours, durable, nil, say(&lopen{h.store, h.sess})}}
	for _, name := range []string{"SQLite FULL", "bbolt"} {
		c, err := b.open(kindOf(name), h.side, usual)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, c.end()) }()
		if err := h.converse(c.Peer.(Appender)); err != nil {
			return err
		}
		appends = append(appends, way{name, c.Durable, nil, say(c.Peer.(Appender))})
	}
	appends = append(appends, way{"model: one JSON file, rename", visible, nil, func() error { return model.Append(h.text) }})
	if err := b.compare("A message of 4 KiB until durable, "+size+" of them there", "", appends); err != nil {
		return err
	}
	id := h.sess.ID()
	leave := func() error { return h.sess.Close(ctx) }
	return b.compare("Resume of a session with "+size+" of messages", "The state is there and may be saved. The model has its messages in memory then, this project reads them when asked.", []way{
		{Ours, reads, leave, func() (err error) { h.sess, err = h.store.Open(id); return err }},
		{"model: one JSON file", reads, nil, func() error {
			data, err := os.ReadFile(model.path)
			if err != nil {
				return err
			}
			return json.Unmarshal(data, new(oneFile))
		}},
	})
}

// fork makes another session that goes on from where one is.
func (h *home) fork(b *bench) error {
	ctx := context.Background()
	var made *lifecycle.Session
	remove := func() error {
		if made == nil {
			return nil
		}
		id := made.ID()
		err := made.Close(ctx)
		if err == nil {
			_, err = h.store.Delete(ctx, id)
		}
		made = nil
		return err
	}
	from, to := filepath.Join(h.store.Path(), "sessions", h.sess.ID().String()), filepath.Join(h.side, "copy")
	err := b.compare("Fork of a session with "+bytesOf(h.Bytes)+" of messages", "", []way{
		{Ours, durable, remove, func() (err error) {
			made, err = h.store.Fork(ctx, h.sess.ID(), lifecycle.ForkOptions{})
			return err
		}},
		{"copy of its folder", "**not durable**", func() error { return os.RemoveAll(to) }, func() error { return os.CopyFS(to, os.DirFS(from)) }},
	})
	return errors.Join(err, remove())
}
