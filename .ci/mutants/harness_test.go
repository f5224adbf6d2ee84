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

func TestOnlyAFailingTestIsNotice(t *testing.T) {
	t.Parallel()
	errExit := errors.New("exit status 1")
	for name, c := range map[string]struct {
		output string
		err    error
		want   outcome
	}{
		"it fails":                   {"=== RUN   TestA\n--- FAIL: TestA (0.00s)\nFAIL\n", errExit, caught},
		"it panics":                  {"--- FAIL: TestA (0.00s)\npanic: nil map [recovered]\n", errExit, caught},
		"it passes":                  {"=== RUN   TestA\n--- PASS: TestA (0.00s)\nPASS\n", nil, survived},
		"it is skipped":              {"--- SKIP: TestA (0.00s)\nPASS\n", nil, noVerdict},
		"it is not there":            {"testing: warning: no tests to run\nPASS\n", nil, noVerdict},
		"another one fails":          {"--- FAIL: TestB (0.00s)\nFAIL\n", errExit, noVerdict},
		"it hangs":                   {"=== RUN   TestA\npanic: test timed out after 1s\n", errExit, timedOut},
		"it fails and hangs":         {"    --- FAIL: TestA/b (0.00s)\n--- FAIL: TestA (1s)\npanic: test timed out after 1s\n", errExit, timedOut},
		"a goroutine panics":         {"=== RUN   TestA\npanic: nil map\n\ngoroutine 7 [running]:\n", errExit, noVerdict},
		"the binary ends":            {"=== RUN   TestA\n", errExit, noVerdict},
		"passes, and a leak is told": {"--- PASS: TestA (0.00s)\ngoleak: Errors\n", errExit, noVerdict},
		"there is no binary":         {"", errors.New("exec: not found"), noVerdict},
	} {
		require.Equal(t, c.want, judge("TestA", c.output, c.err), name)
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

func TestFails(t *testing.T) { t.Fatal("always") }

func TestSkipped(t *testing.T) { t.Skip("always") }

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
		row("a test that fails", "return 1", "return 3", "TestFails"),
		row("a test that is skipped", "return 1", "return 3", "TestSkipped"),
		row("a test that is not there", "return 1", "return 3", "TestSum/of_two"),
		row("a piece that is there twice", "return", "panic", "TestSum"),
		row("a piece that is not there", "four", "five", "TestSum"),
		{what: "no file", file: "b.go", from: "a", pkg: ".", test: "TestSum"},
		row("of a function that recovers", "err = errors.New(\"panicked\")", "_ = errors.New", "TestSum"),
	}
	_, woven := weave(root, all)
	require.Equal(t, map[int]bool{1: true, 2: true, 4: true, 5: true, 7: true, 8: true, 9: true, 10: true}, woven)
	out := &strings.Builder{}
	h := &harness{root: root, limit: 2 * time.Second, jobs: 2, out: out}
	require.EqualError(t, h.run(all), `9 of 14 mutants were not caught:
a piece that is not there: NO BUILD
a piece that is there twice: NO BUILD
a test that fails: NO CONTROL
a test that is not there: NO CONTROL
a test that is skipped: NO CONTROL
hanging: TIMED OUT
no file: NO BUILD
not Go: NO BUILD
what another test notices: SURVIVED`)
	require.Contains(t, out.String(), fmt.Sprintf("%-55s %s", "wrong", caught))
	none := &harness{root: root, only: "no such name", out: out}
	require.EqualError(t, none.run(all), `select mutants: no name holds "no such name"`)
	some := &harness{root: root, only: "no result", limit: time.Minute, jobs: 1, out: out}
	require.NoError(t, some.run(all))
	require.NoError(t, os.WriteFile(filepath.Join(root, "b_test.go"), []byte("package large"), 0o600))
	require.ErrorContains(t, some.run(all), "build the tests of . with all mutants off: ")
	source, err := os.ReadFile(filepath.Join(root, "a.go"))
	require.NoError(t, err)
	require.Contains(t, string(source), "return 1", "the tree stays as it is")
}

func TestRowsThatAreNone(t *testing.T) {
	t.Parallel()
	for _, row := range []string{
		"a.go\n./p TestA\n-x\n+y\n-z\n", "a.go\n./p TestA\nx\n", "a.go\n./p\n-x\n", "a.go\n./p TestA\n", "./p TestA\n-x\n", "",
	} {
		_, err := load(fstest.MapFS{"rows/a.txtar": {Data: []byte("-- it --\n" + row)}})
		require.ErrorContains(t, err, `rows/a.txtar: "it" is not a file, a package and a test`)
	}
	all, err := load(fstest.MapFS{"rows/a.txtar": {Data: []byte("of A\n-- it --\na.go\n./p TestA\n-\tx\n-y\n+\n+z\n-- that --\na.go\n./p TestA/b\n-x\n")}})
	require.NoError(t, err)
	require.Equal(t, []mutant{
		{what: "it", file: "a.go", from: "\tx\ny", to: "\nz", pkg: "./p", test: "TestA"},
		{what: "that", file: "a.go", from: "x", pkg: "./p", test: "TestA/b"},
	}, all)
}
