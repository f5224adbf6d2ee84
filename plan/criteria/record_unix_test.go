//go:build unix

package criteria_test

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/plan/criteria"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/crashfs"
	"github.com/lopen-dev/lopen/writer/envelope"
)

const fileName = "specification.json"

// The bytes of a record are those of every one that was written so far.
func TestRecordIsAsItHasAlwaysBeen(t *testing.T) {
	t.Parallel()
	dir, err := writer.OpenFS(t.TempDir())
	require.NoError(t, err)
	_, record := made(t, "# A\n\n## Acceptance Criteria\n\n- [ ] Log in\n")
	require.NoError(t, record.Save(dir))
	data, err := writer.ReadFile(dir, fileName, 1<<20)
	require.NoError(t, err)
	require.Equal(t, `{"version":1,"sha256":"aa21f16891eae4468e86d072199d02cc1a88ed049a9e11bd73cf630be5e03a31","sections":[{"path":""},{"path":"A"},{"path":"Acceptance Criteria"}],"criteria":[{"section":2,"text":"Log in","sha256":"038fd2e7ba81c3e8fb36026c89233104ffd6648008e5bd72c76203272822f6b9","task":"log-in"}],"checksum":"crc32c:f27c0541"}`+"\n", string(data))
	back, err := criteria.Load(dir)
	require.NoError(t, err)
	require.Equal(t, record, back)
}

// What stands in the place of a record and is none is refused, at once.
func TestHostileRecord(t *testing.T) {
	t.Parallel()
	seal := func(text string) []byte { return envelope.Checksum.Append([]byte(text)) }
	deep := `{"version":1,"criteria":` + strings.Repeat("[", 100_000)
	for name, tt := range map[string]struct {
		put   func(t *testing.T, path string) error
		class writer.Class
	}{
		"a FIFO": {func(_ *testing.T, path string) error { return syscall.Mkfifo(path, 0o600) }, writer.ClassInvalid},
		"a symlink": {func(t *testing.T, path string) error {
			other := filepath.Join(t.TempDir(), "other")
			require.NoError(t, os.WriteFile(other, seal(`{"version":1`), 0o600))
			return os.Symlink(other, path)
		}, writer.ClassInvalid},
		"a folder":  {func(_ *testing.T, path string) error { return os.Mkdir(path, 0o700) }, writer.ClassInvalid},
		"too large": {func(_ *testing.T, path string) error { return os.WriteFile(path, make([]byte, 5<<20), 0o600) }, writer.ClassInvalid},
		"no JSON":   {func(_ *testing.T, path string) error { return os.WriteFile(path, []byte("# hello\n"), 0o600) }, writer.ClassCorrupt},
		"empty":     {func(_ *testing.T, path string) error { return os.WriteFile(path, nil, 0o600) }, writer.ClassCorrupt},
		"not sealed": {func(_ *testing.T, path string) error {
			return os.WriteFile(path, []byte(`{"version":1,"criteria":[]}`), 0o600)
		}, writer.ClassCorrupt},
		"too deep": {func(_ *testing.T, path string) error { return os.WriteFile(path, seal(deep), 0o600) }, writer.ClassCorrupt},
		"another section": {func(_ *testing.T, path string) error {
			return os.WriteFile(path, seal(`{"version":1,"criteria":[{"section":0,"text":"a","sha256":"b"}]`), 0o600)
		}, writer.ClassCorrupt},
		"before the first": {func(_ *testing.T, path string) error {
			return os.WriteFile(path, seal(`{"version":1,"sections":[{"path":"","sha256":""}],"criteria":[{"section":-1,"text":"a","sha256":"b"}]`), 0o600)
		}, writer.ClassCorrupt},
		"too many": {func(_ *testing.T, path string) error {
			return os.WriteFile(path, seal(`{"version":1,"sections":[{"path":"","sha256":""}],"criteria":[`+strings.Repeat(`{},`, 5000)+`{}]`), 0o600)
		}, writer.ClassCorrupt},
		"of a newer lopen": {func(_ *testing.T, path string) error {
			return os.WriteFile(path, []byte(`{"version":2,"criteria":7}`), 0o600)
		}, writer.ClassFutureVersion},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, err := writer.OpenFS(t.TempDir())
			require.NoError(t, err)
			require.NoError(t, tt.put(t, filepath.Join(dir.Name(), fileName)))
			_, err = criteria.Load(dir)
			require.Error(t, err)
			require.Equal(t, tt.class, writer.ClassOf(err), "%v", err)
			require.ErrorContains(t, err, fileName)
		})
	}
}

// A power cut at any moment of a Save leaves the record as it was or as it is to be.
func TestSaveEveryCut(t *testing.T) {
	t.Parallel()
	for _, mode := range []crashfs.Mode{crashfs.Ext4, crashfs.XFS} {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			d := crashfs.New(mode)
			_, err := criteria.Load(d.FS())
			require.ErrorIs(t, err, fs.ErrNotExist)
			_, was := made(t, spec)
			require.NoError(t, was.Save(d.FS()))
			now := criteria.Of(read(t, strings.ReplaceAll(spec, "People", "Users")))
			rng := rand.New(rand.NewPCG(1, 2))
			found := map[string]bool{}
			look := func(d *crashfs.Disk, moment string, done bool) {
				for _, v := range d.Variants(rng, 20) {
					dir := d.Crash(v).FS()
					is, err := criteria.Load(dir)
					require.NoError(t, err, "%s, %s", moment, v.Name)
					found[is.Sum] = true
					if is.Sum == now.Sum {
						require.Equal(t, now, is)
						continue
					}
					require.Equal(t, was, is)
					require.False(t, done, "%s: the record that was acknowledged is gone", v.Name)
					require.NoError(t, now.Save(dir), "and the next one can be written")
					entries, err := dir.ReadDir(".")
					require.NoError(t, err)
					require.Len(t, entries, 1, "%s, %s: what the cut left is removed", moment, v.Name)
				}
			}
			d.SetHook(func(op crashfs.Op) crashfs.Fault {
				if op.N > 0 {
					look(d.Snapshot(), fmt.Sprintf("before %s %s", op.Call, op.Name), false)
				}
				return crashfs.Fault{}
			})
			require.NoError(t, now.Save(d.FS()))
			d.SetHook(nil)
			look(d, "after the last call", true)
			require.Len(t, found, 2)
		})
	}
}

// What has more than can be compared is refused, and what can be takes seconds at most.
func TestCriteriaAreBounded(t *testing.T) {
	t.Parallel()
	list := func(n int, text string) string {
		var b strings.Builder
		b.WriteString("# A\n\n## Acceptance Criteria\n\n")
		for i := range n {
			fmt.Fprintf(&b, "- [ ] "+text+"\n", i)
		}
		return b.String()
	}
	_, err := criteria.Read([]byte(list(5001, "a %d")))
	require.ErrorIs(t, err, criteria.ErrTooLarge)
	require.ErrorContains(t, err, "5001 criteria")
	_, err = criteria.Read([]byte("# A\n\n" + strings.Repeat("a\n", 200_000)))
	require.ErrorIs(t, err, criteria.ErrTooLarge)
	require.ErrorContains(t, err, "line 3")

	begun := time.Now()
	p, record := made(t, list(5000, "equal%.0d"))
	require.Len(t, record.Criteria, 5000)
	d := record.Compare(read(t, list(5000, "other %d")), p)
	require.Len(t, d.Criteria, 10_000)
	require.Less(t, time.Since(begun), 30*time.Second)

	dir, err := writer.OpenFS(t.TempDir())
	require.NoError(t, err)
	require.NoError(t, record.Save(dir), "the largest record fits")
	large := criteria.Of(read(t, "# A\n"+strings.Repeat("## "+strings.Repeat("b", 200)+"\n\ntext\n", 20_000)))
	require.ErrorContains(t, large.Save(dir), "more than the")
	back, err := criteria.Load(dir)
	require.NoError(t, err)
	require.Equal(t, record, back, "what cannot be remembered does not replace what is")
}
