package main

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer"
)

// top is the project's folder.
var top = filepath.Join("..", "..")

// document reads a document by its path below the project's folder.
func document(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(top, name))
	require.NoError(t, err)
	return string(text)
}

// documents are the paths of all documents that people write.
func documents(t *testing.T) []string {
	t.Helper()
	names := []string{"bench/README.md"}
	for _, pattern := range []string{"*.md", "docs/*.md"} {
		found, err := filepath.Glob(filepath.Join(top, filepath.FromSlash(pattern)))
		require.NoError(t, err)
		for _, path := range found {
			name, err := filepath.Rel(top, path)
			require.NoError(t, err)
			names = append(names, filepath.ToSlash(name))
		}
	}
	for _, name := range []string{"README.md", "DESIGN.md", "SECURITY.md", "docs/FORMATS.md", "docs/FAULTS.md"} {
		require.Contains(t, names, name)
	}
	return names
}

// namedTest matches a test that a document names.
var namedTest = regexp.MustCompile("`((?:Test|Fuzz)[A-Z][\\w/-]*)`")

// TestDocumentsNameExistingTests holds what documents say about tests against the tests.
func TestDocumentsNameExistingTests(t *testing.T) {
	t.Parallel()
	defined := map[string]bool{}
	function := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	require.NoError(t, filepath.WalkDir(top, func(path string, _ os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case strings.HasSuffix(path, "_test.go"):
			src, err := os.ReadFile(path)
			for _, m := range function.FindAllStringSubmatch(string(src), -1) {
				defined[m[1]] = true
			}
			return err
		case strings.HasSuffix(path, ".txtar"):
			defined["TestScripts/"+strings.TrimSuffix(filepath.Base(path), ".txtar")] = true
		}
		return nil
	}))
	for _, name := range documents(t) {
		for _, m := range namedTest.FindAllStringSubmatch(document(t, name), -1) {
			require.True(t, defined[m[1]], "%s names %s", name, m[1])
		}
	}
}

// TestDocumentsAreReadable holds the bounds on lines and on the page for newcomers.
func TestDocumentsAreReadable(t *testing.T) {
	t.Parallel()
	require.LessOrEqual(t, len(document(t, "DESIGN.md")), 12<<10, "DESIGN.md is read in a quarter of an hour")
	for _, name := range documents(t) {
		for i, line := range strings.Split(document(t, name), "\n") {
			require.LessOrEqual(t, utf8.RuneCountInString(line), 120, "%s:%d", name, i+1)
		}
	}
}

// TestLinksOfDocuments follows each link to a file, and to a heading within one.
func TestLinksOfDocuments(t *testing.T) {
	t.Parallel()
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	for _, name := range documents(t) {
		for _, m := range link.FindAllStringSubmatch(document(t, name), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			path, anchor, _ := strings.Cut(m[1], "#")
			target := name
			if path != "" {
				target = filepath.ToSlash(filepath.Join(filepath.Dir(name), path))
			}
			text := document(t, target)
			if anchor != "" {
				require.Contains(t, anchors(text), anchor, "%s links to %s", name, m[1])
			}
		}
	}
}

// TestDocumentsNameExistingFiles looks for each source file that a document names by its path.
func TestDocumentsNameExistingFiles(t *testing.T) {
	t.Parallel()
	named, seen := regexp.MustCompile("`([a-z]+/[\\w./-]+\\.(?:go|golden))`"), 0
	for _, name := range documents(t) {
		for _, m := range named.FindAllStringSubmatch(document(t, name), -1) {
			seen++
			require.FileExists(t, filepath.Join(top, filepath.FromSlash(m[1])), name)
		}
	}
	require.Greater(t, seen, 8)
}

// anchors are what links name the headings of a document by.
func anchors(text string) []string {
	var all []string
	dropped := regexp.MustCompile(`[^\w\- ]`)
	for _, m := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(text, -1) {
		all = append(all, strings.ReplaceAll(dropped.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-"))
	}
	return all
}

// TestRecordsAreDocumented requires each event and each operation of a record in
// docs/FORMATS.md.
func TestRecordsAreDocumented(t *testing.T) {
	t.Parallel()
	text := document(t, "docs/FORMATS.md")
	value := regexp.MustCompile(`(?m)^\s+(?:Op|Event)[A-Z]\w* +(?:Event )?= "([a-z-]+)"`)
	all := value.FindAllStringSubmatch(document(t, "lifecycle/session/record/record.go"), -1)
	require.Greater(t, len(all), 25)
	for _, m := range all {
		require.True(t, strings.Contains(text, "`"+m[1]+"`"), "docs/FORMATS.md lacks `%s`", m[1])
	}
}

// TestMembersOfStateAreDocumented requires the members of each object of state.json and
// metrics.json in docs/FORMATS.md, in their order.
func TestMembersOfStateAreDocumented(t *testing.T) {
	t.Parallel()
	_, section, _ := strings.Cut(document(t, "docs/FORMATS.md"), "\n## state.json and metrics.json\n")
	section, _, _ = strings.Cut(section, "\n## ")
	word := regexp.MustCompile("`(\\w+)`")
	of := func(part, object string, value any) {
		typ := reflect.TypeOf(value)
		var keys, named []string
		for i := range typ.NumField() {
			if key, _, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ","); key != "" {
				keys = append(keys, key)
			}
		}
		for _, m := range word.FindAllStringSubmatch(part, -1) {
			if slices.Contains(keys, m[1]) {
				named = append(named, m[1])
			}
		}
		require.Equal(t, keys, named, "the members of %s", object)
	}
	top, objects, ok := strings.Cut(section, "\n4. ")
	require.True(t, ok)
	of(top, "the header", session.Header{})
	of(top, "the mark", session.Mark{})
	for object, value := range map[string]any{
		"lineage": session.Lineage{}, "progress": session.Progress{}, "settings": session.Settings{}, "rateLimit": session.RateLimit{}, "git": session.Git{},
		"check": session.CheckResult{}, "resources": session.Resource{}, "tasks": session.Task{}, "log": session.Attempt{}, "totals": session.Totals{},
		"iterations": session.Iteration{},
	} {
		_, item, ok := strings.Cut(objects, "\n- `"+object+"`")
		require.True(t, ok, object)
		item, _, _ = strings.Cut(item, ".\n")
		of(item, object, value)
	}
}

// TestFaultsAreNumberedAndTested requires a test for each fault that is listed.
func TestFaultsAreNumberedAndTested(t *testing.T) {
	t.Parallel()
	_, list, _ := strings.Cut(document(t, "docs/FAULTS.md"), "\n## The faults\n")
	list, _, _ = strings.Cut(list, "\n## ")
	faults := regexp.MustCompile(`(?m)^\d+\. `).FindAllStringIndex(list, -1)
	require.GreaterOrEqual(t, len(faults), 50)
	for i, at := range faults {
		end := len(list)
		if i+1 < len(faults) {
			end = faults[i+1][0]
		}
		fault := list[at[0]:end]
		require.True(t, strings.HasPrefix(fault, fmt.Sprintf("%d. **", i+1)), fault)
		require.Regexp(t, namedTest, fault)
	}
}

// TestTableOfErrorClasses compares the table with the classes and errnos of package writer.
func TestTableOfErrorClasses(t *testing.T) {
	t.Parallel()
	written := map[string]string{} // class by errno
	classes := map[string]bool{}
	row, errnos := regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\|([^|]*)\\|"), regexp.MustCompile(`\bE[A-Z]+\b`)
	for _, m := range row.FindAllStringSubmatch(document(t, "docs/FAULTS.md"), -1) {
		classes[m[1]] = true
		for _, errno := range errnos.FindAllString(m[2], -1) {
			written[errno] = m[1]
		}
	}
	const unknown = writer.Class(0)
	count := 0
	for c := unknown; !strings.HasPrefix(c.String(), "class "); c++ {
		require.True(t, classes[c.String()], "the table has no row for %s", c)
		count++
	}
	require.Len(t, classes, count)
	known := map[string]string{}
	for n := syscall.Errno(1); n < 200; n++ {
		if c := writer.ClassOf(n); c != unknown {
			known[unix.ErrnoName(n)] = c.String()
		}
	}
	require.Equal(t, known, written)
}

// TestRoomsAreInTheTable requires each room below writer and lifecycle in the table of
// DESIGN.md, and a folder for each of its rows.
func TestRoomsAreInTheTable(t *testing.T) {
	t.Parallel()
	rooms := map[string]bool{}
	_, table, _ := strings.Cut(document(t, "DESIGN.md"), "\n## The rooms\n")
	table, _, _ = strings.Cut(table, "\n## ")
	for _, row := range regexp.MustCompile(`(?m)^\| (.+?) \|`).FindAllStringSubmatch(table, -1) {
		for _, m := range regexp.MustCompile("`([^`]+)/`").FindAllStringSubmatch(row[1], -1) {
			rooms[m[1]] = true
			require.DirExists(t, filepath.Join(top, filepath.FromSlash(m[1])))
		}
	}
	for _, pattern := range []string{"*/doc.go", "writer/*/doc.go", "lifecycle/*/doc.go", "plan/*/doc.go"} {
		found, err := filepath.Glob(filepath.Join(top, filepath.FromSlash(pattern)))
		require.NoError(t, err)
		require.NotEmpty(t, found)
		for _, path := range found {
			room, err := filepath.Rel(top, filepath.Dir(path))
			require.NoError(t, err)
			require.True(t, rooms[filepath.ToSlash(room)], "the table has no row for %s", room)
		}
	}
}
