package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"time"
)

func main() {
	h := &harness{root: ".", limit: 2 * time.Minute, out: os.Stdout}
	flag.StringVar(&h.only, "only", "", "run the mutants whose name holds this text")
	flag.IntVar(&h.jobs, "jobs", runtime.NumCPU(), "run so many at once")
	flag.Parse()
	all, err := load(rows)
	if err == nil {
		err = h.run(all)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}
