package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	if ran, err := beDisk(); ran {
		exit(err)
	}
	out := flag.String("out", ".", "folder for RESULTS.md, results.json and the charts")
	dir := flag.String("dir", "", "folder on the disk to measure; the system's temporary one by default")
	folder := flag.String("bench", "..", "folder of the Go benchmarks")
	quick := flag.Bool("quick", false, "few samples, in about two minutes")
	flag.Parse()
	scale := fullScale
	if *quick {
		scale = quickScale
	}
	say := func(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }
	res, err := measure(scale, *dir, *folder, say)
	if err == nil {
		res.Machine.Quick = *quick
		err = res.write(*out)
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

// measure runs everything, with its scratch below dir.
func measure(scale Scale, dir, folder string, say func(string, ...any)) (_ *Results, err error) {
	top, err := os.MkdirTemp(dir, "peers-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(top)) }()
	b := &bench{Scale: scale, dir: filepath.Join(top, "native"), kinds: kinds, say: say}
	if err := os.Mkdir(b.dir, 0o700); err != nil {
		return nil, err
	}
	res := &Results{Machine: machine(top, false), Scale: scale}
	disk, err := mountDisk(top)
	if err != nil {
		say("no tables of slow disks, fsyncs and bytes: %v", err)
	} else {
		b.disk, res.Machine.FUSE = disk, true
		defer func() { err = errors.Join(err, disk.Close()) }()
	}
	if folder != "" {
		if res.Pairs, err = b.goBenchmarks(folder); err != nil {
			return nil, err
		}
	}
	for _, suite := range []func() error{b.waits, b.stall, b.burst, b.costs, b.messages, b.together, b.iterations, b.durableBySize} {
		if err := suite(); err != nil {
			return nil, err
		}
	}
	for _, t := range b.tables {
		t.finish()
	}
	res.Tables, res.Machine.LoadAfter = b.tables, load()
	return res, nil
}
