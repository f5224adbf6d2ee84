package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/lopen-dev/lopen/bench/workload"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

func main() {
	lopen := flag.String("lopen", "", "the lopen to run; one is built where none is named")
	messages := flag.Int("messages", 100_000, "messages of the session")
	mib := flag.Int("mib", 1024, "MiB of contents of the project's files, half of them small files of source")
	rounds := flag.Int("rounds", 3, "how often each is measured; the median is printed")
	keep := flag.String("keep", "", "folder that keeps the project, or has it already")
	flag.Parse()
	if err := run(*lopen, *messages, *mib, *rounds, *keep); err != nil {
		fmt.Fprintln(os.Stderr, "carry:", err)
		os.Exit(1)
	}
}

func run(lopen string, messages, mib, rounds int, keep string) (err error) {
	dir := keep
	if dir == "" {
		if dir, err = os.MkdirTemp("", "carry-"); err != nil {
			return err
		}
		defer os.RemoveAll(dir)
	}
	if lopen == "" {
		lopen = filepath.Join(dir, "lopen")
		if out, err := exec.Command("go", "build", "-o", lopen, "./cmd/lopen").CombinedOutput(); err != nil {
			return fmt.Errorf("build lopen: %w\n%s", err, out)
		}
	}
	project := filepath.Join(dir, "project")
	if _, err := os.Stat(project); err != nil {
		if err := build(project, messages, mib); err != nil {
			return err
		}
	}
	b := bench{rounds: rounds, dir: dir}
	for _, side := range []side{
		{"tar and zstd -3 -T0, sync", `tar -C project/.lopen -cf - sessions checkpoints blobs | zstd -q -3 -T0 -fo peer.tar.zst && sync peer.tar.zst`, "peer.tar.zst"},
		{"lopen session export", lopen + ` -C project session export --force -o ../out.tar.zst`, "out.tar.zst"},
		{"zstd -d and tar", `rm -rf there && mkdir there && zstd -q -dc peer.tar.zst | tar -C there -xf - && sync there`, ""},
		{"lopen session import", `rm -rf there && mkdir there && ` + lopen + ` -C there init && ` + lopen + ` -C there session import ../out.tar.zst`, ""},
	} {
		if err := b.measure(side); err != nil {
			return err
		}
	}
	return nil
}

// build makes the project, with a session that has checkpoints of it.
func build(project string, messages, mib int) error {
	ctx := context.Background()
	files := mib << 20 / 2 / 4150 // what workload.Tree makes is about as large
	if _, err := workload.Tree(project, files); err != nil {
		return err
	}
	for i := range mib / 2 / 16 { // as logs are: they compress
		if err := os.WriteFile(filepath.Join(project, fmt.Sprintf("large%d.txt", i)), []byte(workload.Text(16<<20, i)), 0o600); err != nil {
			return err
		}
	}
	store, _, err := lifecycle.Init(project, lifecycle.Options{})
	if err != nil {
		return err
	}
	sess, err := store.Create(ctx, "auth")
	if err != nil {
		return err
	}
	for i := range messages {
		m := &session.Message{Role: session.RoleAssistant, Content: session.Text(workload.Text(1<<10, i))}
		for err = sess.Append(m); errors.Is(err, lifecycle.ErrBacklogFull); err = sess.Append(m) {
			if err := sess.Sync(ctx); err != nil {
				return err
			}
		}
		if err != nil {
			return err
		}
	}
	if _, _, err := sess.Checkpoint(ctx, checkpoint.Manual, ""); err != nil {
		return err
	}
	return errors.Join(sess.Close(ctx), store.Close(ctx))
}

// A side is one way to do the work: a line of the shell, and the file that it makes.
type side struct{ name, line, file string }

type bench struct {
	rounds int
	dir    string
}

// measure prints the median time of a side, the largest memory of one of its processes, and
// the size of its file.
func (b bench) measure(s side) error {
	var took []time.Duration
	peak := int64(0)
	for range b.rounds {
		cmd := exec.Command("sh", "-c", s.line)
		cmd.Dir, cmd.Stderr = b.dir, os.Stderr
		begun := time.Now()
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		took = append(took, time.Since(begun))
		peak = max(peak, peakOf(cmd.ProcessState))
	}
	slices.Sort(took)
	size := ""
	if info, err := os.Stat(filepath.Join(b.dir, s.file)); s.file != "" && err == nil {
		size = fmt.Sprintf("%d MiB", info.Size()>>20)
	}
	fmt.Printf("| %s | %.1f s | %d MiB | %s |\n", s.name, took[len(took)/2].Seconds(), peak>>20, size)
	return nil
}
