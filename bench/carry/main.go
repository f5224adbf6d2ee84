package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io/fs"
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
	flag.IntVar(&o.rounds, "rounds", 3, "how often each side is measured, in turns; the medians are printed after each round")
	flag.StringVar(&o.keep, "keep", "", "folder that keeps the project, or has it already")
	flag.StringVar(&o.compression, "compression", "none", "how the project's .lopen is compressed; with none tar reads the same bytes that are exported")
	flag.IntVar(&o.histories, "histories", 2000, "small histories of an agent")
	flag.StringVar(&o.row, "row", "", "measure only the row of this name: many, for example")
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
	lopen, keep, compression, row    string
	messages, mib, rounds, histories int
}

func run(o options) (err error) {
	if o.keep == "" {
		if o.keep, err = os.MkdirTemp("", "carry-"); err != nil {
			return err
		}
		defer os.RemoveAll(o.keep)
	}
	if o.keep, err = filepath.Abs(o.keep); err != nil { // restic and borg ask for it
		return err
	}
	if o.lopen == "" {
		o.lopen = filepath.Join(o.keep, "lopen")
		if out, err := exec.Command("go", "build", "-o", o.lopen, "./cmd/lopen").CombinedOutput(); err != nil {
			return fmt.Errorf("build lopen: %w\n%s", err, out)
		}
	}
	work := fmt.Sprintf("%s -build -keep %s -compression %s -messages %d -mib %d", os.Args[0], o.keep, o.compression, o.messages, o.mib)
	if err := prepare(o, work); err != nil {
		return err
	}
	all := sides(o.lopen, work)
	idle := all[0]
	all = slices.DeleteFunc(all, func(s *side) bool { return o.row != "" && s.row != o.row && s != idle })
	for range o.rounds {
		for _, s := range all {
			if _, err := exec.LookPath(s.needs); s.needs != "" && err != nil {
				fmt.Fprintf(os.Stderr, "not measured: %s, which is not installed\n", s.key)
				continue
			}
			if err := s.measure(o.keep, s.first, s.line); err != nil {
				return err
			}
		}
		report(all, median(idle.peak))
	}
	return nil
}

// prepare makes what the rows need and the folder has not. work makes the project: in another
// process, since what a process has in memory counts for those that it starts.
func prepare(o options, work string) error {
	for name, do := range map[string]func(at string) error{
		"project": func(string) error {
			if ofAgents(o.row) {
				return nil
			}
			return (&side{}).measure(o.keep, work, ":")
		},
		"histories": func(at string) error { return histories(at, o.mib/4) },
		"many":      func(at string) error { return smallHistories(at, o.histories) },
	} {
		at := filepath.Join(o.keep, name)
		if _, err := os.Stat(at); err == nil {
			continue
		}
		if err := do(at); err != nil {
			return err
		}
	}
	return nil
}

// ofAgents reports whether a row needs the histories alone, and no project.
func ofAgents(row string) bool { return row == "histories" || row == "many" }

// report prints the medians of the rounds so far.
func report(all []*side, idle float64) {
	for _, s := range all {
		if s.took != nil {
			fmt.Printf("BenchmarkCarry/%s 1 %.0[2]f %[6]s-p50-ns %.0[3]f %[6]s-cpu-ns %.1[4]f %[6]s-MiB %.0[5]f %[6]s-bytes\n",
				s.row, 1e9*median(s.took), 1e9*median(s.cpu), median(s.peak)-idle, median(s.grew), s.key)
		}
	}
}

// sides are all ways of all work, in the order in which they do it. work changes the project.
func sides(lopen, work string) []*side {
	return []*side{
		{row: "idle", key: "lopen", line: lopen + ` version`},
		{row: "bundle", key: "tar", first: `rm -f peer.tar.zst`, line: `tar -C project/.lopen -cf - sessions checkpoints blobs | zstd -q -3 -T0 -o peer.tar.zst && sync peer.tar.zst`, file: "peer.tar.zst"},
		{row: "bundle", key: "export", first: `rm -f out.tar.zst`, line: lopen + ` -C project session export -o $PWD/out.tar.zst`, file: "out.tar.zst"},
		{row: "bundle", key: "untar", first: `rm -rf there && mkdir there`, line: `zstd -q -dc peer.tar.zst | tar -C there -xf - && find there -exec sync {} +`, file: "there"},
		{row: "bundle", key: "import", first: `rm -rf there && mkdir there && ` + lopen + ` -C there init`, line: lopen + ` -C there session import $PWD/out.tar.zst`, file: "there"},

		{row: "histories", key: "taken", first: `rm -rf there && mkdir there && ` + lopen + ` -C there init`, line: lopen + ` -C there session import --from claude $PWD/histories`, file: "there"},
		{row: "histories", key: "jq", line: `for f in histories/*; do jq -c . $f; done >/dev/null`, needs: "jq"},

		// What is there is not removed: ext4 would look among the inodes that were removed of late.
		{row: "many", key: "taken", first: `mv there there.$$; mkdir there && ` + lopen + ` -C there init`, line: lopen + ` -C there session import --from claude $PWD/many`, file: "there"},
		{row: "many", key: "jq", line: `find many -name '*.jsonl' -exec jq -c . {} + >/dev/null`, needs: "jq"},

		{row: "first", key: "lopen", first: `rm -rf lopen.b`, line: lopen + ` -C project backup --force $PWD/lopen.b`, file: "lopen.b"},
		{row: "first", key: "restic", first: `rm -rf restic.b && restic init`, line: `restic backup project/.lopen`, file: "restic.b", needs: "restic"},
		{row: "first", key: "borg", first: `rm -rf borg.b && borg init -e none`, line: `borg create ::first project/.lopen`, file: "borg.b", needs: "borg"},
		{row: "first", key: "encrypted", first: `rm -rf age.b`, line: lopen + ` -C project backup --force --encrypt $PWD/age.b`, file: "age.b"},

		{row: "second", key: "lopen", first: work, line: lopen + ` -C project backup $PWD/lopen.b`, file: "lopen.b"},
		{row: "second", key: "restic", line: `restic backup project/.lopen`, file: "restic.b", needs: "restic"},
		{row: "second", key: "borg", line: `borg create ::second project/.lopen`, file: "borg.b", needs: "borg"},
		{row: "second", key: "encrypted", line: lopen + ` -C project backup $PWD/age.b`, file: "age.b"},

		{row: "restore", key: "lopen", first: `rm -rf there`, line: lopen + ` backup restore lopen.b --to there`, file: "there"},
		{row: "restore", key: "restic", first: `rm -rf there`, line: `restic restore latest --target there && find there -exec sync {} +`, file: "there", needs: "restic"},
		{row: "restore", key: "borg", first: `rm -rf there && mkdir there`, line: `cd there && borg extract ::second && find . -exec sync {} +`, file: "there", needs: "borg"},
		{row: "restore", key: "encrypted", first: `rm -rf there`, line: lopen + ` backup restore age.b --to there`, file: "there"},
	}
}

// build makes the project, with a session that has checkpoints of it, or has that session do one
// more task.
func build(o options) error {
	ctx, project := context.Background(), filepath.Join(o.keep, "project")
	if err := os.MkdirAll(project, 0o700); err != nil {
		return err
	}
	store, made, err := lifecycle.Init(project, lifecycle.Options{Policy: lifecycle.Policy{Compression: codec.Options{Codec: o.compression}}})
	if err != nil {
		return err
	}
	var sess *lifecycle.Session
	if made {
		if err := files(project, o.mib); err != nil {
			return err
		}
		sess, err = store.Create(ctx, "auth")
	} else {
		o.messages = 50
		for i := range 10 {
			if err := os.WriteFile(filepath.Join(project, fmt.Sprintf("task%d.txt", i)), []byte(rand.Text()+workload.Text(4<<10, i)), 0o600); err != nil {
				return err
			}
		}
		var all []lifecycle.Info
		if all, err = store.List(); err == nil {
			sess, err = store.Open(all[0].ID)
		}
	}
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

// files writes those of the project: half of the bytes in small ones that do not compress, half in
// large ones that compress as logs do.
func files(project string, mib int) error {
	if _, err := workload.Tree(project, mib<<20/2/4150); err != nil { // it makes files of about that
		return err
	}
	for i := range mib / 2 / 16 {
		if err := os.WriteFile(filepath.Join(project, fmt.Sprintf("large%d.txt", i)), []byte(workload.Text(16<<20, i)), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// A side is one way to do the work of a row.
type side struct {
	row, key    string
	first, line string // lines of the shell; the first one is not measured
	file        string // or folder that it writes
	needs       string // a command that may be missing

	took, cpu, peak, grew []float64 // of each round: seconds, seconds, MiB, bytes
}

// measure runs a side once. What others wrote is on the disk before.
func (s *side) measure(dir, first, line string) error {
	sh := func(line string) (*exec.Cmd, error) {
		cmd := exec.Command("sh", "-c", line)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "LOPEN_KEY=of a benchmark", "RESTIC_PASSWORD=x", "RESTIC_REPOSITORY="+filepath.Join(dir, "restic.b"), "RESTIC_CACHE_DIR="+filepath.Join(dir, "cache"),
			"BORG_REPO="+filepath.Join(dir, "borg.b"), "BORG_BASE_DIR="+dir, "BORG_UNKNOWN_UNENCRYPTED_REPO_ACCESS_IS_OK=yes")
		out, err := cmd.CombinedOutput()
		if err != nil {
			err = fmt.Errorf("%s: %w\n%s", line, err, out)
		}
		return cmd, err
	}
	if _, err := sh(cmp.Or(first, ":") + " && sync"); err != nil {
		return err
	}
	size := sizeOf(filepath.Join(dir, s.file))
	begun := time.Now()
	cmd, err := sh(line)
	if err != nil {
		return err
	}
	s.took = append(s.took, time.Since(begun).Seconds())
	s.cpu = append(s.cpu, (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds())
	s.peak = append(s.peak, float64(peakOf(cmd.ProcessState))/(1<<20))
	s.grew = append(s.grew, sizeOf(filepath.Join(dir, s.file))-size)
	return nil
}

// sizeOf is the sum of the files in a folder, or of one file.
func sizeOf(path string) (sum float64) {
	_ = filepath.WalkDir(path, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // what is not there has no size
		}
		if info, err := d.Info(); err == nil && !d.IsDir() {
			sum += float64(info.Size())
		}
		return nil
	})
	return sum
}

func median(all []float64) float64 {
	all = slices.Sorted(slices.Values(all))
	return all[len(all)/2]
}
