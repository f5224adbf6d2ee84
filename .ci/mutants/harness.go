package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// A harness runs the tests of one module.
type harness struct {
	root  string        // of the module, absolute
	dir   string        // for what it builds
	limit time.Duration // of one run of tests
	jobs  int           // runs at once
	// build makes the binary of a package's tests, with an overlay, and returns what
	// the compiler said.
	build func(pkg, overlay, binary string) (output string, err error)
	// test runs the tests of a binary that pattern picks, in the folder of pkg, and
	// returns its output with -test.v.
	test func(pkg, binary, pattern string) (output string, err error)

	mu     sync.Mutex
	out    io.Writer // guarded by mu
	missed []string  // likewise
}

// goBuild is the build of a real module. vet is off: a mutant may leave code that it refuses.
func (h *harness) goBuild(pkg, overlay, binary string) (string, error) {
	cmd := exec.Command("go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", binary, pkg)
	cmd.Dir = h.root
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// goTest is the test of a real module.
func (h *harness) goTest(pkg, binary, pattern string) (string, error) {
	cmd := exec.Command(binary, "-test.v", "-test.paniconexit0", "-test.timeout="+h.limit.String(), "-test.run", pattern)
	cmd.Dir = filepath.Join(h.root, pkg)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// pattern is the -run pattern of tests, and of no others.
func pattern(tests ...string) string {
	all := make([]string, len(tests))
	for i, test := range tests {
		all[i] = "^" + strings.ReplaceAll(test, "/", "$/^") + "$"
	}
	return strings.Join(all, "|")
}

// run runs the mutants whose name holds only, package by package, each package's control
// first. It returns an error unless there are some and each is caught.
func (h *harness) run(all []mutant, only string) error {
	picked := slices.DeleteFunc(slices.Clone(all), func(m mutant) bool { return !strings.Contains(m.what, only) })
	if len(picked) == 0 {
		return fmt.Errorf("select mutants: no name holds %q", only)
	}
	begun := time.Now()
	files, woven := weave(h.root, picked)
	overlay, err := h.overlay("woven", files)
	if err != nil {
		return err
	}
	var packages []string
	numbers := map[string][]int{}
	for i, m := range picked {
		if numbers[m.pkg] == nil {
			packages = append(packages, m.pkg)
		}
		numbers[m.pkg] = append(numbers[m.pkg], i+1)
	}
	for _, pkg := range packages {
		if err := h.inPackage(pkg, overlay, picked, numbers[pkg], woven); err != nil {
			return err
		}
	}
	if len(h.missed) > 0 {
		slices.Sort(h.missed)
		return fmt.Errorf("%d of %d mutants were not caught:\n%s", len(h.missed), len(picked), strings.Join(h.missed, "\n"))
	}
	h.printf("%d mutants, all caught, in %.0fs\n", len(picked), time.Since(begun).Seconds())
	return nil
}

// inPackage runs the control of a package's tests and then their mutants.
func (h *harness) inPackage(pkg, overlay string, all []mutant, numbers []int, woven map[int]bool) error {
	begun := time.Now()
	binary := filepath.Join(h.dir, "off.test")
	if output, err := h.build(pkg, overlay, binary); err != nil {
		return fmt.Errorf("build the tests of %s with all mutants off: %w\n%s", pkg, err, output)
	}
	var tests []string
	for _, n := range numbers {
		tests = append(tests, all[n-1].test)
	}
	slices.Sort(tests)
	output, _ := h.test(pkg, binary, pattern(slices.Compact(tests)...))
	passes := results(output)
	h.printf("%s: built, and its control run, in %.1fs\n", pkg, time.Since(begun).Seconds())
	var group errgroup.Group
	group.SetLimit(h.jobs)
	for _, n := range numbers {
		group.Go(func() error {
			begun, m := time.Now(), all[n-1]
			is, why := noControl, tail(output)
			if passes[m.test] == "PASS" {
				is, why = h.try(m, n, binary, woven[n])
			}
			if is == caught {
				why = ""
			}
			h.printf("%-55s %-10s by %s %.1fs\n%s", m.what, is, m.test, time.Since(begun).Seconds(), why)
			if is != caught {
				h.mu.Lock()
				defer h.mu.Unlock()
				h.missed = append(h.missed, fmt.Sprintf("%s: %s", m.what, is))
			}
			return nil
		})
	}
	return group.Wait()
}

// try runs a mutant's test on the mutant, in a build of its own unless it is woven in, and
// returns the end of what that printed.
func (h *harness) try(m mutant, n int, binary string, woven bool) (is outcome, why string) {
	with := filepath.Join(h.dir, fmt.Sprintf("%d.test", n))
	defer os.Remove(with)
	if woven {
		off, err := os.ReadFile(binary)
		if err == nil {
			err = os.WriteFile(with, switchOn(off, n), 0o700)
		}
		if err != nil {
			return noBuild, err.Error() + "\n"
		}
	} else if output, err := h.buildOne(m, n, with); err != nil {
		return noBuild, err.Error() + "\n" + output
	}
	output, err := h.test(m.pkg, with, pattern(m.test))
	return judge(m.test, output, err), tail(output)
}

// buildOne makes the binary of a mutant alone.
func (h *harness) buildOne(m mutant, n int, binary string) (output string, err error) {
	changed, err := m.changed(h.root)
	if err != nil {
		return "", err
	}
	overlay, err := h.overlay(fmt.Sprint(n), map[string]string{m.file: changed})
	if err != nil {
		return "", err
	}
	return h.build(m.pkg, overlay, binary)
}

// overlay writes files, by path below root, into a folder of that name, and returns the path
// of the file for -overlay.
func (h *harness) overlay(name string, files map[string]string) (string, error) {
	dir := filepath.Join(h.dir, name)
	replace := map[string]string{}
	for name, text := range files {
		at := filepath.Join(dir, name)
		replace[filepath.Join(h.root, name)] = at
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			return "", err
		}
		if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
			return "", err
		}
	}
	data, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	return dir + ".json", os.WriteFile(dir+".json", data, 0o600)
}

func (h *harness) printf(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	fmt.Fprintf(h.out, format, args...)
}
