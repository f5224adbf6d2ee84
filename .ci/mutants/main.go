package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"time"
)

func main() {
	only := flag.String("only", "", "run the mutants whose name holds this text")
	jobs := flag.Int("jobs", runtime.NumCPU(), "run so many at once")
	flag.Parse()
	if err := mutate(*only, *jobs); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func mutate(only string, jobs int) error {
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	h := &harness{root: root, limit: 2 * time.Minute, jobs: jobs, out: os.Stdout}
	h.goTest = h.command
	return h.run(mutants, only)
}
