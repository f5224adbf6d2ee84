package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// A mutant replaces a piece of a file, which must be there exactly once.
type mutant struct {
	what     string // the mechanism that is taken out
	file     string
	from, to string
	tests    string // packages that must notice
}

var failed = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)

func main() {
	only := flag.String("only", "", "run the mutants whose name holds this text")
	flag.Parse()
	survived := 0
	for _, m := range mutants {
		if !strings.Contains(m.what, *only) {
			continue
		}
		begun := time.Now()
		by, err := run(m)
		if err != nil {
			fmt.Printf("%-55s BROKEN: %v\n", m.what, err)
			survived++
			continue
		}
		if by == "" {
			by = "SURVIVED"
			survived++
		}
		fmt.Printf("%-55s %-70s %5.1fs\n", m.what, by, time.Since(begun).Seconds())
	}
	if survived > 0 {
		fmt.Printf("%d mutants were not caught\n", survived)
		os.Exit(1)
	}
	fmt.Printf("all mutants were caught\n")
}

// run returns the test that noticed.
func run(m mutant) (by string, err error) {
	source, err := os.ReadFile(m.file)
	if err != nil {
		return "", err
	}
	if n := strings.Count(string(source), m.from); n != 1 {
		return "", fmt.Errorf("%s holds what is to be replaced %d times", m.file, n)
	}
	dir, err := os.MkdirTemp("", "mutant-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	changed := filepath.Join(dir, filepath.Base(m.file))
	if err := os.WriteFile(changed, []byte(strings.Replace(string(source), m.from, m.to, 1)), 0o600); err != nil {
		return "", err
	}
	abs, err := filepath.Abs(m.file)
	if err != nil {
		return "", err
	}
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{abs: changed}})
	if err != nil {
		return "", err
	}
	overlayFile := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(overlayFile, overlay, 0o600); err != nil {
		return "", err
	}
	for _, pkg := range strings.Fields(m.tests) { // the quickest to notice first
		if by, err := test(pkg, overlayFile); by != "" || err != nil {
			return by, err
		}
	}
	return "", nil
}

// test returns the test of a package that fails.
func test(pkg, overlay string) (by string, err error) {
	out, err := exec.Command("go", "test", "-count=1", "-failfast", "-timeout=3m", "-overlay", overlay, pkg).CombinedOutput()
	switch {
	case err == nil:
		return "", nil
	case strings.Contains(string(out), "[build failed]"), strings.Contains(string(out), "[setup failed]"):
		return "", fmt.Errorf("it does not build:\n%s", out)
	}
	names := failed.FindAllStringSubmatch(string(out), -1)
	if len(names) == 0 {
		return "ended without a verdict: " + lastLine(string(out)), nil
	}
	by = names[0][1] // the innermost is named last, of several the first will do
	for _, n := range names {
		if strings.HasPrefix(n[1], by) {
			by = n[1]
		}
	}
	return by, nil
}

func lastLine(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return lines[len(lines)-1]
}
