package pgtest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
)

// usual is where PostgreSQL is that is not in PATH: patterns, the preferred first.
var usual = []string{"/usr/lib/postgresql/*/bin", "/usr/local/pgsql/bin"}

// binaries is the folder of the programs of PostgreSQL, "" where there are none.
var binaries = sync.OnceValue(func() string {
	if !supported {
		return ""
	}
	return find(os.Getenv("PATH"), usual)
})

// find is the first folder that has all programs. Of a pattern's folders the newest version's is first.
func find(path string, patterns []string) string {
	var dirs []string
	for _, dir := range filepath.SplitList(path) {
		// A folder of PATH may have links to some of the programs only.
		if program, err := filepath.EvalSymlinks(filepath.Join(dir, "postgres")); err == nil {
			dirs = append(dirs, filepath.Dir(program))
		}
	}
	for _, pattern := range patterns {
		found, _ := filepath.Glob(pattern)
		slices.SortFunc(found, func(a, b string) int { return version(b) - version(a) })
		dirs = append(dirs, found...)
	}
	if n := slices.IndexFunc(dirs, complete); n >= 0 {
		return dirs[n]
	}
	return ""
}

// version is the 15 of /usr/lib/postgresql/15/bin, 0 for what is no number.
func version(dir string) int {
	n, _ := strconv.Atoi(filepath.Base(filepath.Dir(dir)))
	return n
}

func complete(dir string) bool {
	for _, program := range []string{"postgres", "initdb", "pg_basebackup"} {
		info, err := os.Stat(filepath.Join(dir, program))
		if err != nil || info.IsDir() || info.Mode()&0o111 == 0 {
			return false
		}
	}
	return true
}

// missing says why no server can be started, "" where one can.
func missing() string {
	switch {
	case !supported:
		return "PostgreSQL servers are started on Linux only"
	case binaries() == "":
		return "no PostgreSQL server here"
	}
	return ""
}

// Need skips the test where no server can be started. [Database] and [Start] call it.
func Need(t testing.TB) {
	t.Helper()
	if why := missing(); why != "" {
		t.Skip(why)
	}
}

// Found reports whether a server can be started.
func Found() bool { return missing() == "" }

// Main runs the tests of a test binary and returns the exit code:
//
//	func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }
//
// It prints a line on stderr where no server can be started, and ends the shared server at the end.
func Main(m interface{ Run() int }) int {
	switch {
	case !supported:
		fmt.Fprintf(os.Stderr, "lifecycle/fleet: %s: the fleet's tests are skipped\n", missing())
	case binaries() == "":
		fmt.Fprintf(os.Stderr, "lifecycle/fleet: %s: the fleet's tests are skipped; on Debian: apt-get install postgresql\n", missing())
	}
	code := m.Run()
	if err := end(); err != nil {
		fmt.Fprintln(os.Stderr, "pgtest:", err)
		return max(code, 1)
	}
	return code
}
