package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// fake is a harness whose go test is answer; it counts the runs with an overlay.
func fake(t *testing.T, answer func(pkg, pattern string, mutated bool) (string, error)) (h *harness, out *strings.Builder, mutated *int) {
	t.Helper()
	root := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(root, "a.go"), []byte("one two two"), 0o600))
	out, mutated = &strings.Builder{}, new(int)
	h = &harness{root: root, jobs: 1, out: out}
	h.goTest = func(pkg, pattern, overlay string) (string, error) {
		if overlay != "" {
			*mutated++
		}
		return answer(pkg, pattern, overlay != "")
	}
	return h, out, mutated
}

var (
	errExit = errors.New("exit status 1")
	good    = mutant{what: "good", file: "a.go", from: "one", to: "1", pkg: "./p", test: "TestA"}
)

const (
	passes = "=== RUN   TestA\n--- PASS: TestA (0.00s)\nPASS\nok  \tp\t0.1s\n"
	fails  = "=== RUN   TestA\n--- FAIL: TestA (0.00s)\nFAIL\nFAIL\tp\t0.1s\n"
)

func TestOnlyAFailingTestIsNotice(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		output string
		err    error
		want   outcome
	}{
		"it fails":                   {fails, errExit, caught},
		"it panics":                  {"--- FAIL: TestA (0.00s)\npanic: nil map [recovered]\nFAIL\tp\t0.1s\n", errExit, caught},
		"it passes":                  {passes, nil, survived},
		"it is skipped":              {"--- SKIP: TestA (0.00s)\nPASS\nok  \tp\t0.1s\n", nil, noVerdict},
		"it is not there":            {"testing: warning: no tests to run\nPASS\nok  \tp\t0.1s\n", nil, noVerdict},
		"another one fails":          {"--- FAIL: TestB (0.00s)\nFAIL\tp\t0.1s\n", errExit, noVerdict},
		"it hangs":                   {"=== RUN   TestA\npanic: test timed out after 1s\nFAIL\tp\t1s\n", errExit, timedOut},
		"it fails and hangs":         {"    --- FAIL: TestA/b (0.00s)\n--- FAIL: TestA (1s)\npanic: test timed out after 1s\nFAIL\tp\t1s\n", errExit, timedOut},
		"it had to be killed":        {"*** Test killed with quit: ran too long (1m1s).\nFAIL\tp\t61s\n", errExit, timedOut},
		"a goroutine panics":         {"=== RUN   TestA\npanic: nil map\n\ngoroutine 7 [running]:\nFAIL\tp\t0.1s\n", errExit, noVerdict},
		"the binary ends":            {"=== RUN   TestA\nFAIL\tp\t0.1s\n", errExit, noVerdict},
		"passes, and a leak is told": {strings.Replace(passes, "PASS\nok", "goleak: Errors\nFAIL", 1), errExit, noVerdict},
		"it does not build":          {"a.go:1:1: syntax error\nFAIL\tp [build failed]\nFAIL\n", errExit, noBuild},
		"there is no package":        {"FAIL\tp [setup failed]\nFAIL\n", errExit, noBuild},
		"there is no go":             {"", errors.New("exec: not found"), noVerdict},
	} {
		h, out, _ := fake(t, func(_, _ string, mutated bool) (string, error) {
			if !mutated {
				return passes, nil
			}
			return c.output, c.err
		})
		err := h.run([]mutant{good}, "")
		require.Contains(t, out.String(), c.want, name)
		if c.want == caught {
			require.NoError(t, err, name)
			continue
		}
		require.ErrorContains(t, err, "1 of 1 mutants were not caught", name)
		require.ErrorContains(t, err, "good: "+string(c.want), name)
	}
}

func TestControlRunsFirst(t *testing.T) {
	t.Parallel()
	other := mutant{what: "other", file: "a.go", from: "one", to: "1", pkg: "./q", test: "TestB/c"}
	for output, want := range map[string]string{
		"--- FAIL: TestB (0.00s)\nFAIL\tq\t0.1s\n":                       "./q fails without a mutant",
		"q.go:1:1: syntax error\nFAIL\tq [build failed]\n":               "./q fails without a mutant",
		"--- PASS: TestB (0.00s)\n    --- SKIP: TestB/c (0.00s)\nPASS\n": "TestB/c of ./q does not pass without a mutant: go test says SKIP",
		"--- PASS: TestB (0.00s)\nPASS\n":                                "TestB/c of ./q does not pass without a mutant: there is no such test",
	} {
		h, _, mutated := fake(t, func(pkg, pattern string, _ bool) (string, error) {
			if pkg == "./p" {
				return passes, nil
			}
			require.Equal(t, "^TestB$/^c$", pattern)
			if strings.Contains(output, "FAIL") {
				return output, errExit
			}
			return output, nil
		})
		require.ErrorContains(t, h.run([]mutant{good, other}, ""), want)
		require.Zero(t, *mutated, "no mutant runs before the control has passed")
	}
}

func TestFilterThatMatchesNothing(t *testing.T) {
	t.Parallel()
	runs := 0
	h, _, _ := fake(t, func(_, _ string, mutated bool) (string, error) {
		runs++
		if mutated {
			return fails, errExit
		}
		return passes, nil
	})
	require.ErrorContains(t, h.run([]mutant{good}, "bad"), `no name holds "bad"`)
	require.Error(t, h.run(nil, ""))
	require.Zero(t, runs)
	require.NoError(t, h.run([]mutant{good}, "oo"))
	require.Equal(t, 2, runs, "the control and the mutant")
}

func TestMutantThatCannotBeMade(t *testing.T) {
	t.Parallel()
	for want, m := range map[string]mutant{
		"2 times":      {what: "twice", file: "a.go", from: "two", pkg: "./p", test: "TestA"},
		"0 times":      {what: "gone", file: "a.go", from: "three", pkg: "./p", test: "TestA"},
		"no such file": {what: "no file", file: "b.go", from: "one", pkg: "./p", test: "TestA"},
	} {
		h, out, mutated := fake(t, func(string, string, bool) (string, error) { return passes, nil })
		require.ErrorContains(t, h.run([]mutant{m}, ""), m.what+": "+string(noBuild))
		require.Contains(t, out.String(), want)
		require.Zero(t, *mutated)
	}
}

// TestRealGoTest has the real go test judge the mutants of a small module, two at once.
func TestRealGoTest(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for name, content := range map[string]string{
		"go.mod": "module small\n\ngo 1.26\n",
		"a.go":   "package small\n\nfunc one() int { return 1 }\n\nfunc two() int { return 2 }\n",
		"a_test.go": `package small

import "testing"

func TestSum(t *testing.T) {
	t.Run("of one", func(t *testing.T) {
		if one() != 1 {
			t.Fatal("not one")
		}
	})
}

func TestOther(t *testing.T) {
	if two() != 2 {
		t.Fatal("not two")
	}
}
`,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(root, name), []byte(content), 0o600))
	}
	row := func(what, from, to string) mutant {
		return mutant{what: what, file: "a.go", from: from, to: to, pkg: ".", test: "TestSum/of_one"}
	}
	out := &strings.Builder{}
	h := &harness{root: root, limit: 2 * time.Second, jobs: 2, out: out}
	h.goTest = h.command
	all := []mutant{
		row("wrong", "return 1", "return 3"),
		row("hanging", "return 1", "select {}"),
		row("not Go", "return 1", "return"),
		row("what another test notices", "return 2", "return 3"),
	}
	require.ErrorContains(t, h.run(all, ""), "3 of 4 mutants were not caught:\nhanging: TIMED OUT\nnot Go: NO BUILD\nwhat another test notices: SURVIVED")
	require.Contains(t, out.String(), fmt.Sprintf("%-55s %s", "wrong", caught))
	source, err := os.ReadFile(filepath.Join(root, "a.go"))
	require.NoError(t, err)
	require.Contains(t, string(source), "return 1", "the tree stays as it is")
}
