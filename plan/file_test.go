package plan_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/plan"
	"github.com/lopen-dev/lopen/writer"
)

const file = "plan.md"

// folder returns a folder that holds a plan.
func folder(t testing.TB, content string) (writer.FS, string) {
	t.Helper()
	dir := t.TempDir()
	fsys, err := writer.OpenFS(dir)
	require.NoError(t, err)
	t.Cleanup(func() { fsys.Close() })
	name := filepath.Join(dir, file)
	require.NoError(t, os.WriteFile(name, []byte(content), 0o640))
	return fsys, name
}

func read(t testing.TB, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	require.NoError(t, err)
	return string(b)
}

func TestBoxesChangesOneByte(t *testing.T) {
	t.Parallel()
	crlf := strings.ReplaceAll(sample, "\n", "\r\n")
	fsys, name := folder(t, crlf)
	base, err := plan.Load(fsys, file, nil)
	require.NoError(t, err)
	const id = "auth-controller/add-jwt-validation/refuse-expired-tokens"
	p, err := plan.Apply(fsys, file, base, plan.Boxes(map[string]bool{id: true, "auth-controller": true}))
	require.NoError(t, err)
	task, _ := base.Task(id)
	want := crlf[:task.Box] + "x" + crlf[task.Box+1:]
	require.Equal(t, want, read(t, name))
	require.Equal(t, plan.Parse([]byte(want)), p, "the plan returned is the one that the file holds")
	require.False(t, task.Checked)
	if runtime.GOOS != "windows" {
		info, err := os.Stat(name)
		require.NoError(t, err)
		require.Equal(t, fs.FileMode(0o640), info.Mode())
	}
	left, err := os.ReadDir(filepath.Dir(name))
	require.NoError(t, err)
	require.Len(t, left, 1)
}

func TestBoxesWithoutChange(t *testing.T) {
	t.Parallel()
	fsys, name := folder(t, "- [X] a\n- [ ] b\n")
	base, err := plan.Load(fsys, file, nil)
	require.NoError(t, err)
	before, err := os.Stat(name)
	require.NoError(t, err)
	_, err = plan.Apply(fsys, file, base, plan.Boxes(map[string]bool{"a": true, "b": false}))
	require.NoError(t, err)
	after, err := os.Stat(name)
	require.NoError(t, err)
	require.True(t, os.SameFile(before, after), "a file that is as wanted is not replaced")
}

func TestBoxesKeepsEdits(t *testing.T) {
	t.Parallel()
	fsys, name := folder(t, "- [ ] a\n- [ ] b\n- [ ] c\n- [ ] d\n")
	base, err := plan.Load(fsys, file, nil)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(name, []byte("# New\r\n\r\n- [ ] d\r\n* [x] a, but other\r\n* [ ] new\r\n* [ ] b"), 0o600))
	_, err = plan.Apply(fsys, file, base, plan.Boxes(map[string]bool{"g": true, "b": true, "c": true, "a": true, "f": true, "e": true}))
	var conflict *plan.ConflictError
	require.ErrorAs(t, err, &conflict)
	require.Equal(t, []string{"a", "c", "e", "f", "g"}, conflict.Missing)
	require.EqualError(t, err, "set boxes: no longer in the plan: a, c, e, f, g")
	require.Equal(t, "# New\r\n\r\n- [ ] d\r\n* [x] a, but other\r\n* [ ] new\r\n* [x] b", read(t, name))
}

// meddler changes the file right before it would be replaced.
type meddler struct {
	writer.FS
	times int
	edit  func(n int)
	n     *int
}

func (m meddler) Lstat(name string) (fs.FileInfo, error) {
	if *m.n++; *m.n <= m.times {
		m.edit(*m.n)
	}
	return m.FS.Lstat(name)
}

func TestBoxesSeesLateEdits(t *testing.T) {
	t.Parallel()
	for _, times := range []int{2, 4, 1 << 30} {
		fsys, name := folder(t, "- [ ] a\n")
		base, err := plan.Load(fsys, file, nil)
		require.NoError(t, err)
		last := ""
		m := meddler{FS: fsys, times: times, n: new(int), edit: func(n int) {
			last = fmt.Sprintf("line %d\n\n- [ ] a\n", n)
			require.NoError(t, os.WriteFile(name, []byte(last), 0o600))
		}}
		p, err := plan.Apply(m, file, base, plan.Boxes(map[string]bool{"a": true}))
		if times == 1<<30 {
			require.ErrorIs(t, err, plan.ErrChanging)
			require.Equal(t, last, read(t, name), "what a person wrote stays")
			continue
		}
		require.NoError(t, err)
		require.Equal(t, strings.Replace(last, "[ ]", "[x]", 1), read(t, name))
		require.Equal(t, read(t, name), string(p.Source()))
	}
}

var errDisk = errors.New("disk says no")

type readOnly struct{ writer.FS }

func (readOnly) Rename(string, string) error { return errDisk }

func TestBoxesFails(t *testing.T) {
	t.Parallel()
	fsys, name := folder(t, "- [ ] a\n")
	base, err := plan.Load(fsys, file, nil)
	require.NoError(t, err)
	p, err := plan.Apply(readOnly{fsys}, file, base, plan.Boxes(map[string]bool{"a": true}))
	require.ErrorIs(t, err, errDisk)
	require.Nil(t, p)
	require.Equal(t, "- [ ] a\n", read(t, name))
	require.NoError(t, os.Remove(name))
	_, err = plan.Apply(fsys, file, base, plan.Boxes(map[string]bool{"a": true}))
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func TestLoadFails(t *testing.T) {
	t.Parallel()
	fsys, name := folder(t, "")
	_, err := plan.Load(fsys, "none.md", nil)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorContains(t, err, "read plan: ")
	require.NoError(t, os.Mkdir(filepath.Join(filepath.Dir(name), "dir"), 0o700))
	_, err = plan.Load(fsys, "dir", nil)
	require.Error(t, err)
	require.NoError(t, os.Truncate(name, 64<<20+1))
	_, err = plan.Load(fsys, file, nil)
	require.Error(t, err)
}

func TestCreateFile(t *testing.T) {
	t.Parallel()
	fsys, name := folder(t, "mine")
	err := plan.CreateFile(fsys, file, []byte("other"))
	require.ErrorIs(t, err, fs.ErrExist)
	require.Equal(t, "mine", read(t, name))
	require.NoError(t, os.Remove(name))
	require.NoError(t, plan.CreateFile(fsys, file, []byte("- [ ] a\n")))
	require.Equal(t, "- [ ] a\n", read(t, name))
}

func ExampleApply() {
	dir, err := os.MkdirTemp("", "plan")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	fsys, err := writer.OpenFS(dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer fsys.Close()
	if err := plan.CreateFile(fsys, "plan.md", []byte("# Plan\n\n1. [ ] Write it\n2. [ ] Test it\n")); err != nil {
		fmt.Println(err)
		return
	}
	p, err := plan.Load(fsys, "plan.md", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	p, err = plan.Apply(fsys, "plan.md", p, plan.Boxes(plan.Closure(p, "write-it", true)))
	fmt.Printf("%s%v\n", p.Source(), err)
	// Output:
	// # Plan
	//
	// 1. [x] Write it
	// 2. [ ] Test it
	// <nil>
}

func writeFile(name, content string) error { return os.WriteFile(name, []byte(content), 0o600) }

// testFS is a folder that a test looks into.
type testFS struct{ writer.FS }

func open(t require.TestingT, dir string) testFS {
	fsys, err := writer.OpenFS(dir)
	require.NoError(t, err)
	return testFS{fsys}
}

func (f testFS) put(name string, content []byte) error {
	return writeFile(filepath.Join(f.Name(), name), string(content))
}

func (f testFS) get(t require.TestingT, name string) string {
	b, err := os.ReadFile(filepath.Join(f.Name(), name))
	require.NoError(t, err)
	return string(b)
}

// A plan that would be too large to be read again is neither made nor made so.
func TestNoPlanIsWrittenThatIsTooLarge(t *testing.T) {
	t.Parallel()
	fsys, name := folder(t, "- [ ] one\n")
	large := bytes.Repeat([]byte{'x'}, 64<<20+1)
	require.ErrorContains(t, plan.CreateFile(fsys, "new.md", large), "more than the 67108864 that are read")
	_, err := os.Stat(filepath.Join(filepath.Dir(name), "new.md"))
	require.ErrorIs(t, err, fs.ErrNotExist)
	base, err := plan.Load(fsys, file, nil)
	require.NoError(t, err)
	_, err = plan.Apply(fsys, file, base, func(*plan.Plan, *plan.Plan) (*plan.Plan, error) { return plan.Parse(large), nil })
	require.ErrorContains(t, err, "more than the 67108864 that are read")
	require.Equal(t, "- [ ] one\n", read(t, name))
}
