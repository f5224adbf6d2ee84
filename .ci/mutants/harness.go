package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// A harness runs the tests of one module.
type harness struct {
	root  string        // of the module, absolute
	limit time.Duration // of one run of go test
	jobs  int           // runs at once; each has an overlay of its own
	// goTest runs the tests of a package that pattern picks, with an overlay unless
	// that is "", and returns the output of go test -v.
	goTest func(pkg, pattern, overlay string) (output string, err error)

	mu  sync.Mutex
	out io.Writer // guarded by mu
}

// command is the goTest of a real module. vet is off: a mutant may leave code that
// vet refuses.
func (h *harness) command(pkg, pattern, overlay string) (string, error) {
	args := []string{"test", "-count=1", "-v", "-vet=off", "-timeout=" + h.limit.String(), "-run", pattern}
	if overlay != "" {
		args = append(args, "-overlay", overlay)
	}
	cmd := exec.Command("go", append(args, pkg)...)
	cmd.Dir = h.root
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

// run runs the control and then the mutants whose name holds only. It returns an
// error unless there are some and each is caught.
func (h *harness) run(all []mutant, only string) error {
	picked := slices.DeleteFunc(slices.Clone(all), func(m mutant) bool { return !strings.Contains(m.what, only) })
	if len(picked) == 0 {
		return fmt.Errorf("select mutants: no name holds %q", only)
	}
	begun := time.Now()
	if err := h.control(picked); err != nil {
		return err
	}
	h.printf("control: the tests pass without a mutant %37.1fs\n", time.Since(begun).Seconds())
	var missed []string
	var group errgroup.Group
	group.SetLimit(h.jobs)
	for _, m := range picked {
		group.Go(func() error {
			begun := time.Now()
			is, why := h.try(m)
			h.printf("%-55s %-10s by %s %.1fs\n", m.what, is, m.test, time.Since(begun).Seconds())
			if is == caught {
				return nil
			}
			h.mu.Lock()
			defer h.mu.Unlock()
			missed = append(missed, fmt.Sprintf("%s: %s", m.what, is))
			if is != survived {
				fmt.Fprintln(h.out, why)
			}
			return nil
		})
	}
	_ = group.Wait()
	if len(missed) > 0 {
		slices.Sort(missed)
		return fmt.Errorf("%d of %d mutants were not caught:\n%s", len(missed), len(picked), strings.Join(missed, "\n"))
	}
	h.printf("%d mutants, all caught, in %.0fs\n", len(picked), time.Since(begun).Seconds())
	return nil
}

// control requires that every test that a mutant names runs and passes without one.
func (h *harness) control(picked []mutant) error {
	tests := map[string][]string{}
	for _, m := range picked {
		if !slices.Contains(tests[m.pkg], m.test) {
			tests[m.pkg] = append(tests[m.pkg], m.test)
		}
	}
	var group errgroup.Group
	group.SetLimit(h.jobs)
	for pkg, names := range tests {
		group.Go(func() error {
			output, err := h.goTest(pkg, pattern(names...), "")
			if err != nil {
				return fmt.Errorf("run control: %s fails without a mutant: %w\n%s", pkg, err, tail(output))
			}
			is := results(output)
			for _, name := range names {
				if is[name] != "PASS" {
					return fmt.Errorf("run control: %s of %s does not pass without a mutant: %s", name, pkg, notPassed(is[name]))
				}
			}
			return nil
		})
	}
	return group.Wait()
}

func notPassed(verdict string) string {
	if verdict == "" {
		return "there is no such test"
	}
	return "go test says " + verdict
}

// try runs a mutant's test on the mutant. why tells more of an outcome that is
// neither caught nor survived.
func (h *harness) try(m mutant) (is outcome, why string) {
	dir, err := os.MkdirTemp("", "mutant-")
	if err != nil {
		return noBuild, err.Error()
	}
	defer os.RemoveAll(dir)
	overlay, err := m.overlay(h.root, dir)
	if err != nil {
		return noBuild, err.Error()
	}
	output, err := h.goTest(m.pkg, pattern(m.test), overlay)
	return judge(m.test, output, err), tail(output)
}

func (h *harness) printf(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	fmt.Fprintf(h.out, format, args...)
}
