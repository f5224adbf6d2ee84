package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"
)

// fake is a harness whose test binaries answer; it counts the runs with a mutant.
func fake(t *testing.T, answer func(pkg, pattern string, mutated bool) (string, error)) (h *harness, out *strings.Builder, mutated *int) {
	t.Helper()
	root := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(root, "a.go"), []byte("one two two"), 0o600))
	out, mutated = &strings.Builder{}, new(int)
	h = &harness{root: root, dir: t.TempDir(), jobs: 1, out: out}
	h.build = func(_, _, _ string) (string, error) { return "", nil }
	h.test = func(pkg, binary, pattern string) (string, error) {
		off := filepath.Base(binary) == "off.test"
		if !off {
			*mutated++
		}
		return answer(pkg, pattern, !off)
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
		"a goroutine panics":         {"=== RUN   TestA\npanic: nil map\n\ngoroutine 7 [running]:\nFAIL\tp\t0.1s\n", errExit, noVerdict},
		"the binary ends":            {"=== RUN   TestA\nFAIL\tp\t0.1s\n", errExit, noVerdict},
		"passes, and a leak is told": {strings.Replace(passes, "PASS\nok", "goleak: Errors\nFAIL", 1), errExit, noVerdict},
		"there is no binary":         {"", errors.New("exec: not found"), noVerdict},
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
	for _, output := range []string{
		"--- FAIL: TestB (0.00s)\n    --- FAIL: TestB/c (0.00s)\nFAIL\tq\t0.1s\n",
		"--- PASS: TestB (0.00s)\n    --- SKIP: TestB/c (0.00s)\nPASS\n",
		"--- PASS: TestB (0.00s)\nPASS\n",
	} {
		h, out, mutated := fake(t, func(pkg, pattern string, mutated bool) (string, error) {
			if pkg == "./p" && mutated {
				return fails, errExit
			}
			if pkg == "./p" {
				return passes, nil
			}
			require.Equal(t, "^TestB$/^c$", pattern)
			return output, errExit
		})
		require.ErrorContains(t, h.run([]mutant{good, other}, ""), "1 of 2 mutants were not caught:\nother: NO CONTROL")
		require.Equal(t, 1, *mutated, "the other package's mutant runs, this one's does not")
		require.Contains(t, out.String(), output)
	}
	h, _, _ := fake(t, nil)
	h.build = func(_, _, _ string) (string, error) { return "a.go:1:1: syntax error", errExit }
	require.ErrorContains(t, h.run([]mutant{good}, ""), "a.go:1:1: syntax error")
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
		"a.go": `package small

import "errors"

const three = 3

type number[T any] struct{ is T }

func (n *number[T]) get(...T) (is T, err error) { return n.is, nil }

func one(_, _ int) int {
	defer func() { _ = 0 }()
	return 1
}

func two() int { return 2 }

func set(n *int) {
	*n = 4
}

func caught() (err error) {
	defer func() {
		if recover() != nil {
			err = errors.New("panicked")
		}
	}()
	panic(1)
}
`,
		"a_test.go": `package small

import "testing"

func TestSum(t *testing.T) {
	t.Run("of one", func(t *testing.T) {
		if one(1, 2) != 1 {
			t.Fatal("not one")
		}
	})
	n := 0
	set(&n)
	is, err := (&number[int]{5}).get(1)
	if n != 4 || three != 3 || is != 5 || err != nil || caught() == nil {
		t.Fatal(n, three, is, err)
	}
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
	row := func(what, from, to, test string) mutant {
		return mutant{what: what, file: "a.go", from: from, to: to, pkg: ".", test: test}
	}
	all := []mutant{
		row("wrong", "return 1", "return 3", "TestSum/of_one"),
		row("hanging", "return 1", "select {}", "TestSum/of_one"),
		row("not Go", "return 1", "return ]", "TestSum/of_one"),
		row("what another test notices", "return 2", "return 3", "TestSum"),
		row("of no result", "\t*n = 4\n", "", "TestSum"),
		row("of a constant", "three = 3", "three = 4", "TestSum"),
		row("of a generic method", "n.is, nil", "n.is, errors.New(\"\")", "TestSum"),
		row("of a function that recovers", "err = errors.New(\"panicked\")", "_ = errors.New", "TestSum"),
	}
	_, woven := weave(root, all)
	require.Equal(t, map[int]bool{1: true, 2: true, 4: true, 5: true, 7: true}, woven)
	out := &strings.Builder{}
	h := &harness{root: root, dir: t.TempDir(), limit: 2 * time.Second, jobs: 2, out: out}
	h.build, h.test = h.goBuild, h.goTest
	require.ErrorContains(t, h.run(all, ""), "3 of 8 mutants were not caught:\nhanging: TIMED OUT\nnot Go: NO BUILD\nwhat another test notices: SURVIVED")
	require.Contains(t, out.String(), fmt.Sprintf("%-55s %s", "wrong", caught))
	source, err := os.ReadFile(filepath.Join(root, "a.go"))
	require.NoError(t, err)
	require.Contains(t, string(source), "return 1", "the tree stays as it is")
}

func TestRowsThatAreNone(t *testing.T) {
	t.Parallel()
	for row, want := range map[string]string{
		"a.go\n./p TestA\n-x\n+y\n-z\n": `"-z" is neither`,
		"a.go\n./p TestA\nx\n":          `"x" is neither`,
		"a.go\n./p\n-x\n":               "a row has a file, a package and a test",
		"a.go\n./p TestA\n":             "a row has a file, a package and a test",
		"":                              "a row has a file, a package and a test",
	} {
		_, err := load(fstest.MapFS{"rows/a.txtar": {Data: []byte("-- it --\n" + row)}})
		require.ErrorContains(t, err, "rows/a.txtar: it: ")
		require.ErrorContains(t, err, want)
	}
	all, err := load(fstest.MapFS{"rows/a.txtar": {Data: []byte("of A\n-- it --\na.go\n./p TestA\n-\tx\n-y\n+\n+z\n-- that --\na.go\n./p TestA/b\n-x\n")}})
	require.NoError(t, err)
	require.Equal(t, []mutant{
		{what: "it", file: "a.go", from: "\tx\ny", to: "\nz", pkg: "./p", test: "TestA"},
		{what: "that", file: "a.go", from: "x", pkg: "./p", test: "TestA/b"},
	}, all)
}
