package checkpoint

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/lopen-dev/lopen/cache/files"
	"github.com/lopen-dev/lopen/writer"
)

// holding opens a file and returns what closes it.
func holding(flag int) func(*testing.T, string) func() {
	return func(t *testing.T, name string) func() {
		f, err := os.OpenFile(name, flag, 0)
		require.NoError(t, err)
		return func() { require.NoError(t, f.Close()) }
	}
}

// mapping maps a file and closes its descriptor.
func mapping(flag, prot, how int) func(*testing.T, string) func() {
	return func(t *testing.T, name string) func() {
		f, err := os.OpenFile(name, flag, 0)
		require.NoError(t, err)
		m, err := unix.Mmap(int(f.Fd()), 0, 2, prot, how)
		require.NoError(t, err)
		require.NoError(t, f.Close())
		return func() { require.NoError(t, unix.Munmap(m)) }
	}
}

// TestOpenFilesStay has files open while a plan is applied that replaces and removes them. Those
// that may be written stay and are named with the process; those that are only read, mapped for
// reading or executed do not. Afterwards the same plan brings the rest.
func TestOpenFilesStay(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		open  func(*testing.T, string) func()
		stays bool
	}{
		"read and write":                     {holding(os.O_RDWR), true},
		"append":                             {holding(os.O_WRONLY | os.O_APPEND), true},
		"mapped, with the descriptor closed": {mapping(os.O_RDWR, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED), true},
		"read":                               {holding(os.O_RDONLY), false},
		"mapped for reading":                 {mapping(os.O_RDONLY, unix.PROT_READ, unix.MAP_SHARED), false},
		"mapped, with private text":          {mapping(os.O_RDONLY, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			from, to := made("dir/", "", "dir/gone", "two", "log", "two", "other", "two"), made("log", "one", "other", "one")
			blobs, tree := stored(t, from, to), onDisk(t, from)
			plan := planOf(t, blobs, from, to)
			closeLog, closeGone := c.open(t, filepath.Join(tree.Name(), "log")), c.open(t, filepath.Join(tree.Name(), "dir/gone"))
			now, err := try(tree, blobs).Ask(tContext(), plan)
			require.NoError(t, err)
			requireThings(t, from, seen(t, tree), "a look changes nothing")
			done, err := try(tree, blobs).Apply(tContext(), plan)
			require.NoError(t, err)
			if !c.stays {
				require.Empty(t, now.Retained)
				require.Empty(t, done.Retained)
				requireThings(t, to, seen(t, tree), "applied")
				closeLog()
				closeGone()
				return
			}
			slices.SortFunc(done.Retained, func(a, b Retained) int { return -strings.Compare(a.Path, b.Path) })
			slices.SortFunc(now.Retained, func(a, b Retained) int { return -strings.Compare(a.Path, b.Path) })
			require.Len(t, now.Retained, 2)
			require.Len(t, done.Retained, 3)
			for i, path := range []string{"log", "dir/gone"} {
				for _, k := range []Retained{now.Retained[i], done.Retained[i]} {
					require.Equal(t, Retained{Path: path, Why: InUse, By: k.By}, k)
					require.Contains(t, k.By, filepath.Base(os.Args[0])+", PID ") // also a child that was not executed yet
				}
			}
			require.Equal(t, Retained{Path: "dir", Why: Blocked}, done.Retained[2])
			requireThings(t, made("dir/", "", "dir/gone", "two", "log", "two", "other", "one"), seen(t, tree), "the others are brought back")
			closeLog()
			closeGone()
			done, err = try(tree, blobs).Apply(tContext(), plan)
			require.NoError(t, err)
			require.Empty(t, done.Retained)
			requireThings(t, to, seen(t, tree), "nobody has them open any more")
		})
	}
}

// TestExecutedFilesGo replaces a program that runs.
func TestExecutedFilesGo(t *testing.T) {
	t.Parallel()
	cat, err := exec.LookPath("cat")
	require.NoError(t, err)
	text, err := os.ReadFile(cat)
	require.NoError(t, err)
	from, to := made("program", string(text)).with(map[string]os.FileMode{"program": 0o755}), made("program", "one")
	blobs, tree := stored(t, from, to), onDisk(t, from)
	cmd := exec.Command(filepath.Join(tree.Name(), "program"))
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	done, err := try(tree, blobs).Apply(tContext(), planOf(t, blobs, from, to))
	require.NoError(t, err)
	require.Empty(t, done.Retained)
	requireThings(t, to, seen(t, tree), "applied")
	require.NoError(t, in.Close())
	require.NoError(t, cmd.Wait())
}

// TestNamesOfADatabase has a file and one named as its journal or log is, of which the plan leaves one.
// Only if one of them begins as SQLite's files do is it a database.
func TestNamesOfADatabase(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		from, to things
		left     string // by the plan
		is       bool
	}{
		"other files":                 {made("x", "two", "x-journal", "two"), made("x", "one", "x-journal", "one"), "x", false},
		"the other way around":        {made("x", "two", "x-journal", "two"), made("x", "one", "x-journal", "one"), "x-journal", false},
		"a folder":                    {made("x/", "", "x/a", inDB, "x-journal", "two"), made("x/", "", "x/a", "one", "x-journal", "one"), "x/a", false},
		"an empty file":               {made("x", "", "x-journal", "two"), made("x", "one", "x-journal", "one"), "x", false},
		"the begin of another":        {made("x", inWAL, "x-wal", inDB), made("x", inJournal, "x-wal", "one"), "x", false},
		"only what is beside it":      {made("x-shm", "two", "x-wal", "two"), made("x-shm", "one", "x-wal", "one"), "x-shm", false},
		"the database":                {made("x", inDB, "x-journal", "two"), made("x", "one", "x-journal", "one"), "x", true},
		"the log of an encrypted one": {made("x", "two", "x-wal", inWAL), made("x", "one", "x-wal", "one"), "x", true},
		"the journal of an empty one": {made("x", "", "x-journal", inJournal), made("x", "one", "x-journal", "one"), "x", true},
		"the one to be made":          {made("x-wal", "two"), made("x", inDB, "x-wal", "one"), "x-wal", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			blobs, tree := stored(t, c.from, c.to), onDisk(t, c.from)
			plan := planOf(t, blobs, c.from, c.to)
			plan.Changes = slices.DeleteFunc(plan.Changes, func(x Change) bool { return x.Path == c.left })
			plan.Retained = []Retained{{Path: c.left, Why: Foreign}}
			done, err := try(tree, blobs).Apply(tContext(), plan)
			require.NoError(t, err)
			if !c.is {
				require.Empty(t, done.Retained)
				want := c.to.with(nil)
				want[c.left] = c.from[c.left]
				requireThings(t, want, seen(t, tree), "the other is brought back")
				return
			}
			require.Len(t, done.Retained, 1)
			require.Equal(t, Retained{Path: done.Retained[0].Path, Why: Together, By: c.left}, done.Retained[0])
			requireThings(t, c.from, seen(t, tree), "all stays")
		})
	}
}

// TestDatabasesStayWhole has one file of a database stay, for any reason. All the others stay.
func TestDatabasesStayWhole(t *testing.T) {
	t.Parallel()
	from := made("d/", "", "d/app.db", inDB+"two", "d/app.db-shm", "two", "d/app.db-wal", "two", "d/app.db.txt", "two", "z", "two")
	to := made("d/", "", "d/app.db", inDB+"one", "d/app.db-journal", "one", "d/app.db-wal", "one", "d/app.db.txt", "one", "z", "one")
	kept := map[string]Why{"d/app.db": Together, "d/app.db-journal": Together, "d/app.db-shm": Together, "d/app.db-wal": Together}
	for name, c := range map[string]struct {
		open, retained, changed string
		from, to                things
		want                    map[string]Why
	}{
		"the log is open":                  {open: "d/app.db-wal", want: map[string]Why{"d/app.db-wal": InUse}},
		"what goes is open":                {open: "d/app.db-shm", want: map[string]Why{"d/app.db-shm": InUse}},
		"the database was changed":         {changed: "d/app.db", want: map[string]Why{"d/app.db": Meanwhile}},
		"the plan leaves the database":     {retained: "d/app.db", want: map[string]Why{"d/app.db": ""}},
		"a file is open that is as it was": {open: "d/app.db", from: made("d/app.db", inDB+"one"), want: map[string]Why{"d/app.db": ""}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			from := from.with(nil)
			for path, it := range c.from {
				from[path] = it
			}
			blobs, tree := stored(t, from, to), onDisk(t, from)
			plan := planOf(t, blobs, from, to)
			if c.retained != "" {
				plan.Changes = slices.DeleteFunc(plan.Changes, func(x Change) bool { return x.Path == c.retained })
				plan.Retained = []Retained{{Path: c.retained, Why: Foreign}}
			}
			if c.changed != "" {
				require.NoError(t, os.WriteFile(filepath.Join(tree.Name(), c.changed), []byte("three"), 0o600))
			}
			if c.open != "" {
				t.Cleanup(holding(os.O_RDWR)(t, filepath.Join(tree.Name(), c.open)))
			}
			was := seen(t, tree)
			now, err := try(tree, blobs).Ask(tContext(), plan)
			require.NoError(t, err)
			done, err := try(tree, blobs).Apply(tContext(), plan)
			require.NoError(t, err)
			if c.changed == "" {
				require.ElementsMatch(t, done.Retained, now.Retained)
			}
			got := map[string]Why{}
			for _, k := range done.Retained {
				got[k.Path] = k.Why
			}
			for path, why := range kept {
				want, differs := c.want[path]
				if !differs {
					want = why
				}
				require.Equal(t, want, got[path], path)
				require.Equal(t, was[path], seen(t, tree)[path], path)
			}
			require.Equal(t, "one", seen(t, tree)["z"].text)
			require.Equal(t, "one", seen(t, tree)["d/app.db.txt"].text, "a name that only begins alike is another file's")
		})
	}
}

// TestOpenedInTheMiddle opens files when the first change is made already. Each is asked for
// directly before its turn, and a database as a whole before its first file's. Files that go are
// removed before the database is replaced.
func TestOpenedInTheMiddle(t *testing.T) {
	t.Parallel()
	from := made("a", "two", "aa", "-> b", "b", "two", "c.db", inDB, "c.db-wal", "two", "e.db", inDB, "e.db-wal", "two", "gone", "two")
	to := made("a", "one", "b", "one", "c.db", "one", "e.db", "one")
	blobs, tree := stored(t, from, to), onDisk(t, from)
	s := try(tree, blobs)
	var calls []string
	s.before = func(call, name string) error {
		if call == "rename" || call == "remove" {
			calls = append(calls, call+" "+name)
		}
		if call == "rename" && name == "a" {
			for _, open := range []string{"b", "c.db-wal", "gone"} {
				t.Cleanup(holding(os.O_WRONLY)(t, filepath.Join(tree.Name(), open)))
			}
		}
		return nil
	}
	done, err := s.Apply(tContext(), planOf(t, blobs, from, to))
	require.NoError(t, err)
	requireThings(t, made("a", "one", "b", "two", "c.db", inDB, "c.db-wal", "two", "e.db", "one", "gone", "two"), seen(t, tree), "applied")
	why := map[string]Why{}
	for _, k := range done.Retained {
		why[k.Path] = k.Why
	}
	require.Equal(t, map[string]Why{"b": InUse, "c.db": Together, "c.db-wal": InUse, "gone": InUse}, why)
	at := slices.Index(calls, "remove e.db-wal")
	require.Equal(t, []string{"remove e.db-wal", "rename e.db"}, calls[at:at+2])
}

// moving is a plan that moves paths of a tree away as what is hidden, and makes the other changes.
func moving(t *testing.T, s *trial, plan *Plan, paths ...string) *Plan {
	t.Helper()
	root := t.TempDir()
	lopen, err := writer.OpenFS(root)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, lopen.Close()) })
	s.opts.Lopen = lopen
	in := func(c Change) bool {
		return slices.ContainsFunc(paths, func(path string) bool { return c.Path == path || strings.HasPrefix(c.Path, path+"/") })
	}
	plan.Changes = slices.DeleteFunc(plan.Changes, in)
	for _, path := range paths {
		l, err := files.Measure(tContext(), s.tree, path, path, nil)
		require.NoError(t, err)
		plan.Changes = append(plan.Changes, Change{Kind: KindAway, Path: path, Old: l.Fingerprint(path)})
	}
	return plan
}

// TestOpenWithinAFolder has a file open in a folder that a plan moves away whole. The folder stays and
// is named with the file; a plan that takes such files moves it.
func TestOpenWithinAFolder(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		open  func(*testing.T, string) func()
		at    string
		force bool
		says  string
	}{
		"a file in it":     {holding(os.O_RDWR), "deps/in/app.db", false, "deps/in/app.db"},
		"a mapping":        {mapping(os.O_RDWR, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED), "deps/in/app.db", false, "deps/in/app.db"},
		"a file alone":     {holding(os.O_WRONLY), "big", false, ""},
		"one that is read": {holding(os.O_RDONLY), "deps/in/app.db", false, "-"},
		"with force":       {holding(os.O_RDWR), "deps/in/app.db", true, "deps/in/app.db"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			from, to := made("big", "two", "deps/", "", "deps/b", "two", "deps/in/", "", "deps/in/app.db", inDB, "z", "two"), made("z", "one")
			blobs, tree := stored(t, from, to), onDisk(t, from)
			s := try(tree, blobs)
			plan := moving(t, &s, planOf(t, blobs, from, to), "big", "deps")
			plan.InUse = c.force
			t.Cleanup(c.open(t, filepath.Join(tree.Name(), c.at)))
			now, err := s.Ask(tContext(), plan)
			require.NoError(t, err)
			requireThings(t, from, seen(t, tree), "a look changes nothing")
			done, err := s.Apply(tContext(), plan)
			require.NoError(t, err)
			require.Equal(t, now.Retained, done.Retained)
			require.Equal(t, now.Taken, done.Taken)
			named, want := done.Retained, to.with(nil)
			if c.force {
				require.Empty(t, named)
				named = done.Taken
			} else if c.says != "-" {
				top, _, _ := strings.Cut(c.at, "/")
				for path, it := range from {
					if path == top || strings.HasPrefix(path, top+"/") {
						want[path] = it
					}
				}
			}
			requireThings(t, want, seen(t, tree), "applied")
			if c.says == "-" {
				require.Empty(t, named)
				return
			}
			require.Len(t, named, 1)
			require.Equal(t, InUse, named[0].Why)
			require.Contains(t, named[0].By, filepath.Base(os.Args[0])+", PID "+strconv.Itoa(os.Getpid()))
			require.True(t, strings.HasSuffix(named[0].By, c.says), named[0].By)
		})
	}
}

// TestHiddenFileOfADatabase keeps the log of a database where it is that a plan would move away,
// because the database stays.
func TestHiddenFileOfADatabase(t *testing.T) {
	t.Parallel()
	from := made("app.db", inDB, "app.db-wal", "two", "y", "two", "y-wal", "two")
	blobs, tree := stored(t, from), onDisk(t, from)
	s := try(tree, blobs)
	plan := moving(t, &s, &Plan{id: "b4"}, "app.db-wal", "y-wal")
	plan.Retained = []Retained{{Path: "app.db", Why: Foreign}, {Path: "y", Why: Foreign}}
	done, err := s.Apply(tContext(), plan)
	require.NoError(t, err)
	require.Equal(t, []Retained{{Path: "app.db-wal", Why: Together, By: "app.db"}}, done.Retained)
	requireThings(t, made("app.db", inDB, "app.db-wal", "two", "y", "two"), seen(t, tree), "what is no database's goes")
}

// TestOpenFilesAreTaken by a plan that says so, which names them.
func TestOpenFilesAreTaken(t *testing.T) {
	t.Parallel()
	from, to := made("log", "two", "app.db", inDB, "app.db-wal", "two"), made("log", "one", "app.db", "one")
	blobs, tree := stored(t, from, to), onDisk(t, from)
	plan := planOf(t, blobs, from, to)
	plan.InUse = true
	t.Cleanup(holding(os.O_RDWR)(t, filepath.Join(tree.Name(), "log")))
	t.Cleanup(holding(os.O_RDWR)(t, filepath.Join(tree.Name(), "app.db-wal")))
	done, err := try(tree, blobs).Apply(tContext(), plan)
	require.NoError(t, err)
	require.Empty(t, done.Retained)
	require.Len(t, done.Taken, 2)
	requireThings(t, to, seen(t, tree), "applied")

	// What stays all the same, because another file of the database does, is not taken.
	now := from.with(nil)
	now["app.db-wal"] = made("app.db-wal", "written since")["app.db-wal"]
	tree = onDisk(t, now)
	t.Cleanup(holding(os.O_RDWR)(t, filepath.Join(tree.Name(), "log")))
	t.Cleanup(holding(os.O_RDWR)(t, filepath.Join(tree.Name(), "app.db")))
	done, err = try(tree, blobs).Apply(tContext(), plan)
	require.NoError(t, err)
	require.Equal(t, []Retained{{Path: "app.db-wal", Why: Meanwhile}, {Path: "app.db", Why: Together, By: "app.db-wal"}}, done.Retained)
	require.Len(t, done.Taken, 1)
	require.Equal(t, "log", done.Taken[0].Path)
}

// TestOpenAfterAKill ends a process in the middle of an Apply. The next one decides anew what stays.
func TestOpenAfterAKill(t *testing.T) {
	t.Parallel()
	from, to := made("a", "two", "b", "two", "c", "two", "log", "two"), made("a", "one", "b", "one", "c", "one", "log", "one")
	blobs, tree := stored(t, from, to), onDisk(t, from)
	plan := planOf(t, blobs, from, to)
	closeLog := holding(os.O_RDWR)(t, filepath.Join(tree.Name(), "log"))
	killed := try(tree, blobs)
	killed.before = func(call, name string) error {
		if call == "rename" && name == "b" {
			killed.left = 0
			return errKilled
		}
		return nil
	}
	_, err := killed.Apply(tContext(), plan)
	require.Error(t, err)
	closeLog()
	closeC := holding(os.O_RDWR)(t, filepath.Join(tree.Name(), "c"))
	done, err := try(tree, blobs).Apply(tContext(), plan)
	require.NoError(t, err)
	require.Len(t, done.Retained, 1)
	requireThings(t, made("a", "one", "b", "one", "c", "two", "log", "one"), seen(t, tree), "finished")
	closeC()
}
