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
	"github.com/lopen-dev/lopen/writer/codec"
)

func main() {
	var o options
	flag.StringVar(&o.lopen, "lopen", "", "the lopen to run; one is built where none is named")
	flag.IntVar(&o.messages, "messages", 100_000, "messages of the session")
	flag.IntVar(&o.mib, "mib", 1024, "MiB of contents of the project's files, half of them small files that do not compress")
	flag.IntVar(&o.rounds, "rounds", 3, "how often each side is measured, in turns; the medians are printed")
	flag.StringVar(&o.keep, "keep", "", "folder that keeps the project, or has it already")
	flag.StringVar(&o.compression, "compression", "none", "how the project's .lopen is compressed; with none tar reads the same bytes that are exported")
	only := flag.Bool("build", false, "only make the project, in the folder of -keep")
	flag.Parse()
	do := run
	if *only {
		do = build
	}
	if err := do(o); err != nil {
		fmt.Fprintln(os.Stderr, "carry:", err)
		os.Exit(1)
	}
}

type options struct {
	lopen, keep, compression string
	messages, mib, rounds    int
}

func run(o options) (err error) {
	if o.keep == "" {
		if o.keep, err = os.MkdirTemp("", "carry-"); err != nil {
			return err
		}
		defer os.RemoveAll(o.keep)
	}
	if o.lopen == "" {
		o.lopen = filepath.Join(o.keep, "lopen")
		if out, err := exec.Command("go", "build", "-o", o.lopen, "./cmd/lopen").CombinedOutput(); err != nil {
			return fmt.Errorf("build lopen: %w\n%s", err, out)
		}
	}
	if _, err := os.Stat(filepath.Join(o.keep, "project")); err != nil {
		// In another process: what a process has in memory counts for those that it starts.
		cmd := exec.Command(os.Args[0], "-build", "-keep", o.keep, "-compression", o.compression, "-messages", fmt.Sprint(o.messages), "-mib", fmt.Sprint(o.mib))
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("make the project: %w\n%s", err, out)
		}
	}
	sides := []*side{
		{name: "tar and zstd -3 -T0", line: `tar -C project/.lopen -cf - sessions checkpoints blobs | zstd -q -3 -T0 -fo peer.tar.zst && sync peer.tar.zst`, file: "peer.tar.zst"},
		{name: "lopen session export", line: o.lopen + ` -C project session export --force -o out.tar.zst`, file: "out.tar.zst"},
		{name: "zstd -d and tar", first: `rm -rf there && mkdir there`, line: `zstd -q -dc peer.tar.zst | tar -C there -xf - && find there -exec sync {} +`},
		{name: "lopen session import", first: `rm -rf there && mkdir there && ` + o.lopen + ` -C there init`, line: o.lopen + ` -C there session import out.tar.zst`},
	}
	idle := &side{line: o.lopen + " version"}
	for range o.rounds {
		for _, s := range append(sides, idle) {
			if err := s.measure(o.keep); err != nil {
				return err
			}
		}
	}
	fmt.Println("| | time | CPU time | peak memory | file | time of tar and zstd to it |")
	fmt.Println("|---|---|---|---|---|---|")
	for i, s := range sides {
		ratio := ""
		if i%2 == 1 {
			ratio = fmt.Sprintf("%.2f", median(ratios(sides[i-1].took, s.took)))
		}
		fmt.Printf("| %s | %.1f s | %.1f s | %.0f MiB | %s | %s |\n", s.name, median(s.took), median(s.cpu), median(s.peak)-median(idle.peak), s.size, ratio)
	}
	return nil
}

// build makes the project, with a session that has checkpoints of it.
func build(o options) error {
	ctx, project, mib := context.Background(), filepath.Join(o.keep, "project"), o.mib
	files := mib << 20 / 2 / 4150 // what workload.Tree makes is about as large
	if _, err := workload.Tree(project, files); err != nil {
		return err
	}
	for i := range mib / 2 / 16 { // as logs are: they compress
		if err := os.WriteFile(filepath.Join(project, fmt.Sprintf("large%d.txt", i)), []byte(workload.Text(16<<20, i)), 0o600); err != nil {
			return err
		}
	}
	store, _, err := lifecycle.Init(project, lifecycle.Options{Policy: lifecycle.Policy{Compression: codec.Options{Codec: o.compression}}})
	if err != nil {
		return err
	}
	sess, err := store.Create(ctx, "auth")
	if err != nil {
		return err
	}
	for i := range o.messages {
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

// A side is one way to do the work.
type side struct {
	name, first, line string // lines of the shell; the first one is not measured
	file, size        string // what it makes

	took, cpu, peak []float64 // of each round: seconds, seconds, MiB
}

// measure runs a side once.
func (s *side) measure(dir string) error {
	if s.first != "" {
		cmd := exec.Command("sh", "-c", s.first)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w\n%s", s.first, err, out)
		}
	}
	cmd := exec.Command("sh", "-c", s.line)
	cmd.Dir = dir
	begun := time.Now()
	out, err := cmd.CombinedOutput()
	took := time.Since(begun)
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", s.line, err, out)
	}
	s.took = append(s.took, took.Seconds())
	s.cpu = append(s.cpu, (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds())
	s.peak = append(s.peak, float64(peakOf(cmd.ProcessState))/(1<<20))
	if s.file != "" {
		info, err := os.Stat(filepath.Join(dir, s.file))
		if err != nil {
			return err
		}
		s.size = fmt.Sprintf("%d MiB", info.Size()>>20)
	}
	return nil
}

func ratios(a, b []float64) []float64 {
	all := make([]float64, len(a))
	for i := range a {
		all[i] = a[i] / b[i]
	}
	return all
}

func median(all []float64) float64 {
	all = slices.Sorted(slices.Values(all))
	return all[len(all)/2]
}
