// Command mutants takes the safety mechanisms out, one at a time, and requires
// that a test notices. Each mutant is an edit of one source file, laid over the
// build with -overlay: the tree stays as it is. The mutants are data, in rows.
//
// A mutant names the one test that must notice it, and only that test runs. A build
// of a package's tests has all mutants of functions, each of them off; a run is a copy
// of that binary in which one is on. So all take minutes, and a build for each would
// take hours (Untch, Offutt and Harrold, "Mutation Analysis Using Mutant Schemata", 1993).
//
// A control runs first: every named test must pass with all mutants off, else its
// failure would prove nothing. Only a test that fails counts as notice; a mutant that
// hangs its test, that does not build or that ends the test binary without a verdict
// fails the run as one that survives does.
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
	all, err := load(rows)
	if err != nil {
		return err
	}
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	h := &harness{root: root, dir: dir, limit: 2 * time.Minute, jobs: jobs, out: os.Stdout}
	h.build, h.test = h.goBuild, h.goTest
	return h.run(all, only)
}
