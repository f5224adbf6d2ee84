package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/lopen-dev/lopen/bench/fusedisk"
)

func main() {
	if ran, err := fusedisk.Serve(); ran {
		exit(err)
	}
	out := flag.String("out", ".", "folder for RESULTS.md, results.json and the charts")
	readme := flag.String("readme", "", "file whose part between two marks shows what people notice")
	from := flag.String("from", "", "results.json of a run: measure nothing, write its results again")
	dir := flag.String("dir", "", "folder on the disk to measure; the system's temporary one by default")
	folder := flag.String("bench", "..", "folder of the Go benchmarks")
	quick := flag.Bool("quick", false, "few samples, in about two minutes")
	budget := flag.Duration("budget", 0, "about how long everything may take, in place of 25 or 2 minutes")
	flag.Parse()
	res, err := new(Results), error(nil)
	if *from != "" {
		err = res.read(*from)
	} else {
		scale := fullScale
		if *quick {
			scale = quickScale
		}
		if *budget > 0 {
			scale.Budget = *budget
		}
		say := func(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }
		if res, err = measure(scale, *dir, *folder, say); err == nil {
			res.Machine.Quick = *quick
		}
	}
	if err == nil {
		err = res.write(*out, *readme)
	}
	exit(err)
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// A suite is a part of the run.
type suite struct {
	name  string
	share int // of the time that is left, beside those after it; of the full scale, about seconds
	run   func() error
}

// measure runs everything, with its scratch below dir.
func measure(scale Scale, dir, folder string, say func(string, ...any)) (_ *Results, err error) {
	top, err := os.MkdirTemp(dir, "peers-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(top)) }()
	b := &bench{Scale: scale, dir: filepath.Join(top, "native")}
	for _, k := range kinds {
		if k.Open == nil {
			say("no rows of %s: it is not for this system", k.Name)
			continue
		}
		b.kinds = append(b.kinds, k)
	}
	if err := os.Mkdir(b.dir, 0o700); err != nil {
		return nil, err
	}
	res := &Results{Machine: machine(top, false), Scale: scale}
	disk, err := fusedisk.Mount(top)
	if err != nil {
		say("no tables of slow disks, fsyncs and bytes: %v", err)
	} else {
		b.disk, res.Machine.FUSE = disk, true
		defer func() { err = errors.Join(err, disk.Close()) }()
	}
	suites := []suite{
		{"what a caller waits", 200, b.waits},
		{"the same on a slow disk", 220, b.slowWaits},
		{"a stalled disk", 40, b.stall},
		{"bursts", 160, b.burst},
		{"fsyncs and bytes", 85, b.costs},
		{"messages", 80, b.messages},
		{"sessions beside each other", 60, b.together},
		{"iterations", 40, b.iterations},
		{"durable saves by size", 250, b.durableBySize},
	}
	if folder != "" {
		suites = append(suites,
			suite{"what people notice", 130, func() error { return b.people(folder) }},
			suite{"bounds", 320, func() (err error) { res.Pairs, err = b.goBenchmarks(folder); return err }})
	}
	if err := b.runAll(suites, say); err != nil {
		return nil, err
	}
	for _, t := range b.tables {
		t.finish()
	}
	res.Tables, res.Machine.LoadAfter = b.tables, load()
	return res, nil
}

// runAll runs suites, each within its share of the time, and says how far it is.
func (b *bench) runAll(suites []suite, say func(string, ...any)) error {
	begun := time.Now()
	left := 0
	for _, s := range suites {
		left += s.share
	}
	for i, s := range suites {
		budget := b.Budget - time.Since(begun)
		say("%d/%d %s; about %s left", i+1, len(suites), s.name, max(budget, 0).Round(time.Second))
		b.until = time.Now().Add(budget * time.Duration(s.share) / time.Duration(left))
		left -= s.share
		if err := s.run(); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	say("measured in %s", time.Since(begun).Round(time.Second))
	return nil
}
