package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing/fstest"
	"time"

	"golang.org/x/sync/errgroup"
)

type outcome string // what became of a mutant

const (
	caught    outcome = "caught"
	survived  outcome = "SURVIVED"
	timedOut  outcome = "TIMED OUT"  // a test that hangs says nothing about the mechanism
	noBuild   outcome = "NO BUILD"   // the mutant does not compile, or cannot be made
	noControl outcome = "NO CONTROL" // the test does not pass without it
	noVerdict outcome = "NO VERDICT" // the test did not run, or the binary ended before it said anything
)

// A harness runs the tests of one module.
type harness struct {
	root   string // of the module
	dir    string // for what is built
	only   string // what the name of a mutant holds
	jobs   int    // runs at once
	limit  time.Duration
	mu     sync.Mutex
	out    io.Writer // guarded by mu
	missed []string  // likewise
}

// run runs the mutants whose names hold only. It returns an error unless there are some and
// each is caught.
func (h *harness) run(all []mutant) (err error) {
	all = slices.DeleteFunc(slices.Clone(all), func(m mutant) bool { return !strings.Contains(m.what, h.only) })
	if len(all) == 0 {
		return fmt.Errorf("select mutants: no name holds %q", h.only)
	}
	if h.dir, err = os.MkdirTemp("", "mutants-"); err != nil {
		return err
	}
	defer os.RemoveAll(h.dir)
	files, woven := weave(h.root, all)
	byPackage := map[string][]string{}
	for _, m := range all {
		byPackage[m.pkg] = append(byPackage[m.pkg], m.test)
	}
	for pkg, tests := range byPackage {
		off := filepath.Join(h.dir, "off.test")
		if err := h.build(pkg, off, files); err != nil {
			return fmt.Errorf("build the tests of %s with all mutants off: %w", pkg, err)
		}
		control, _ := h.test(pkg, off, tests...)
		var group errgroup.Group
		group.SetLimit(h.jobs)
		for i, m := range all {
			if m.pkg == pkg {
				group.Go(func() error { h.try(m, i+1, woven[i+1], off, control); return nil })
			}
		}
		_ = group.Wait()
	}
	if len(h.missed) > 0 {
		slices.Sort(h.missed)
		return fmt.Errorf("%d of %d mutants were not caught:\n%s", len(h.missed), len(all), strings.Join(h.missed, "\n"))
	}
	fmt.Fprintf(h.out, "%d mutants, all caught\n", len(all))
	return nil
}

// try tells what becomes of a mutant. control is the output of the tests without one, whose
// binary is off; where it is woven into that, a copy of it is run, else a build of its own.
func (h *harness) try(m mutant, n int, woven bool, off, control string) {
	begun := time.Now()
	is, said := noControl, control
	if verdict(m.test, control) == "PASS" {
		var err error
		on := filepath.Join(h.dir, fmt.Sprint(n))
		defer os.Remove(on)
		if woven {
			err = switchOn(off, on, n)
		} else if said, err = m.changed(h.root); err == nil {
			err = h.build(m.pkg, on, map[string]string{m.file: said})
		}
		if err != nil {
			is, said = noBuild, err.Error()
		} else {
			said, err = h.test(m.pkg, on, m.test)
			is = judge(m.test, said, err)
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	fmt.Fprintf(h.out, "%-55s %-10s by %s %.1fs\n", m.what, is, m.test, time.Since(begun).Seconds())
	if is != caught {
		fmt.Fprintln(h.out, said[max(0, len(said)-1000):])
		h.missed = append(h.missed, fmt.Sprintf("%s: %s", m.what, is))
	}
}

// build makes the binary of a package's tests with other files, by path below root. vet is off:
// a mutant may leave code that it refuses.
func (h *harness) build(pkg, binary string, files map[string]string) error {
	dir := binary + ".files"
	replace, tree := map[string]string{}, fstest.MapFS{}
	for name, text := range files {
		replace[filepath.Join(h.root, name)] = filepath.Join(dir, name)
		tree[name] = &fstest.MapFile{Data: []byte(text)}
	}
	data, _ := json.Marshal(map[string]any{"Replace": replace}) // strings alone: it cannot fail
	tree["overlay.json"] = &fstest.MapFile{Data: data}
	if err := errors.Join(os.RemoveAll(dir), os.CopyFS(dir, tree)); err != nil {
		return err
	}
	cmd := exec.Command("go", "test", "-c", "-vet=off", "-overlay", filepath.Join(dir, "overlay.json"), "-o", binary, pkg)
	cmd.Dir = h.root
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, said)
	}
	return nil
}

// test runs tests of a package's binary and no others, and returns the output.
func (h *harness) test(pkg, binary string, tests ...string) (string, error) {
	run := "^" + strings.NewReplacer("/", "$/^", "|", "$|^").Replace(strings.Join(tests, "|")) + "$"
	cmd := exec.Command(binary, "-test.v", "-test.paniconexit0", "-test.timeout="+fmt.Sprint(h.limit*time.Duration(min(len(tests), 5))), "-test.run", run)
	cmd.Dir = filepath.Join(h.root, pkg)
	said, err := cmd.CombinedOutput()
	if errors.Is(err, syscall.ETXTBSY) { // another job's process was started while the file was written, and has it open for a moment
		return h.test(pkg, binary, tests...)
	}
	return string(said), err
}

// verdict is what the output of a test binary says of a test.
func verdict(test, output string) string {
	is := regexp.MustCompile(`(?m)^\s*--- (PASS|FAIL|SKIP): ` + regexp.QuoteMeta(test) + ` \(`).FindStringSubmatch(output)
	return append(is, "", "")[1]
}

// judge says what became of a mutant from the output of its test and the error of the binary.
func judge(test, output string, err error) outcome {
	switch is := verdict(test, output); {
	case strings.Contains("\n"+output, "\npanic: test timed out after "):
		return timedOut
	case err != nil && is == "FAIL":
		return caught
	case err == nil && is == "PASS":
		return survived
	}
	return noVerdict
}
