package backup_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle/backup"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/blob"
	"github.com/lopen-dev/lopen/writer/envelope"
)

const passphrase = "four words of it"

// mixed has contents of all sizes that matter.
func mixed() (items []item) {
	for i, n := range []int{0, 1, 1000, blob.PackMax - 1, blob.PackMax, blob.PackMax + 1, 3 * blob.PackMax, 5*blob.PackMax + 17} {
		items = append(items, item{fmt.Sprintf("sessions/%d.jsonl", i), noise(i, n)}, item{"", noise(100+i, n)})
	}
	return append(items, item{"sessions/zeros", strings.Repeat("\x00", 3*blob.PackMax)})
}

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]backup.Options{"plain": at(noon), "encrypted": keyed(at(noon), identity(t))} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := create(t, o)
			made, err := store(f, noon, mixed())
			require.NoError(t, err)
			require.Equal(t, uint64(1), made.Number)
			got, err := read(f, 1)
			require.NoError(t, err)
			require.Equal(t, mixed(), got)
			newest, err := read(f, 0)
			require.NoError(t, err)
			require.Equal(t, mixed(), newest)

			again, err := backup.Open(f.Path(), o) // by another process
			require.NoError(t, err)
			defer again.Close()
			all, err := again.List()
			require.NoError(t, err)
			require.Equal(t, []backup.Snapshot{made}, all)
			require.Equal(t, 9, made.Files)
			require.Equal(t, 8, made.Objects)
			reports, err := again.Verify(context.Background(), 0)
			require.NoError(t, err)
			require.Equal(t, []backup.Report{{Snapshot: made}}, reports)
			s, err := again.Source(1)
			require.NoError(t, err)
			want := header(noon)
			want.Bytes = made.Bytes
			require.Equal(t, want, s.Header())
		})
	}
}

// The list of many entries and the chunks of a large file have several levels.
func TestManyEntries(t *testing.T) {
	t.Parallel()
	f := create(t, at(noon))
	items := []item{{"large", noise(1, 100*blob.PackMax)}}
	for i := range 3000 {
		items = append(items, item{fmt.Sprintf("f/%d", i), fmt.Sprint(i % 7)})
	}
	_, err := store(f, noon, items)
	require.NoError(t, err)
	got, err := read(f, 1)
	require.NoError(t, err)
	require.Equal(t, items, got)
}

// A second backup adds the tail of a log that grew, and asks for no object that is there.
func TestOnlyWhatIsNewIsAdded(t *testing.T) {
	t.Parallel()
	f := create(t, at(noon))
	log := noise(1, 40*blob.PackMax)
	items := []item{{"log", log}, {"", noise(2, 100)}, {"", noise(3, 100_000)}}
	for i := range 2000 {
		items = append(items, item{fmt.Sprintf("f/%d", i), ""})
	}
	first, err := store(f, noon, items)
	require.NoError(t, err)
	require.Greater(t, first.Added, int64(len(log)))

	items[0].content += noise(4, 1000)
	w, err := f.Begin(context.Background(), header(noon), false)
	require.NoError(t, err)
	require.NoError(t, w.Object(blob.Hash(hashOf(items[1].content)), 100, func() (io.ReadCloser, error) {
		t.Error("an object is read that the backup has")
		return nil, os.ErrNotExist
	}))
	second, err := add(w, append(items[:1:1], items[2:]...))
	require.NoError(t, err)
	require.Less(t, second.Added, int64(40_000))
	require.Equal(t, first.Bytes+1000, second.Bytes)
}

func TestForeignFolders(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	project := filepath.Join(dir, "project")
	require.NoError(t, os.MkdirAll(filepath.Join(project, ".lopen", "deep"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o600))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "photos"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "photos", "one.jpg"), nil, 0o600))
	require.NoError(t, os.Symlink(project, filepath.Join(dir, "link")))
	o := at(noon)
	o.Project = project
	for path, why := range map[string]string{
		"photos":                         `not empty: it has "one.jpg"`,
		"file":                           "not a directory",
		"project/backup":                 "inside of the project",
		"project":                        "inside of the project",
		"project/.lopen/backup":          "inside of the project",
		"project/.lopen/deep/none/there": "inside of the project",
		"link/backup":                    "inside of the project",
		"none/there":                     "no such file or directory",
	} {
		_, err := backup.Create(filepath.Join(dir, filepath.FromSlash(path)), o)
		require.ErrorContains(t, err, why, path)
		if why != "no such file or directory" {
			require.ErrorIs(t, err, writer.ErrInvalid, path)
		}
	}
	for _, gone := range []string{"project/backup", "project/.lopen/backup", "photos/.lock", "none"} {
		require.NoFileExists(t, filepath.Join(dir, gone))
	}
	_, err := backup.Open(filepath.Join(dir, "photos"), o)
	require.ErrorIs(t, err, backup.ErrNone)

	require.NoError(t, os.MkdirAll(filepath.Join(dir, "disk", "lost+found"), 0o700))
	f, err := backup.Create(filepath.Join(dir, "disk"), o)
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

// Of two backups at once the second names the first.
func TestTwoAtOnce(t *testing.T) {
	t.Parallel()
	f := create(t, at(noon))
	w, err := f.Begin(context.Background(), header(noon), false)
	require.NoError(t, err)
	other, err := backup.Create(f.Path(), at(noon))
	require.NoError(t, err)
	defer other.Close()
	_, err = store(other, noon, nil)
	require.ErrorIs(t, err, writer.ErrBusy)
	require.ErrorContains(t, err, "backup of /project")
	_, _, err = other.Prune(context.Background(), backup.Retention{}, false)
	require.ErrorIs(t, err, writer.ErrBusy)
	_, err = add(w, mixed())
	require.NoError(t, err)
	_, err = store(other, noon, mixed())
	require.NoError(t, err)
}

// A content that is not as long as announced, or not what its hash says, makes no snapshot.
func TestWrongContents(t *testing.T) {
	t.Parallel()
	f := create(t, at(noon))
	for name, fn := range map[string]func(w *backup.Writer) error{
		"short": func(w *backup.Writer) error { return w.Add("a", 5, strings.NewReader("four")) },
		"long":  func(w *backup.Writer) error { return w.Add("a", 3, strings.NewReader("four")) },
		"other": func(w *backup.Writer) error {
			return w.Object(blob.Hash{1}, 4, func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("four")), nil })
		},
	} {
		w, err := f.Begin(context.Background(), header(noon), false)
		require.NoError(t, err)
		require.Error(t, fn(w), name)
		require.Error(t, w.Close(), name)
	}
	all, err := f.List()
	require.NoError(t, err)
	require.Empty(t, all)
}

// What a backup names and does not have is damage, and no file that somebody asked for.
func TestLostObjects(t *testing.T) {
	t.Parallel()
	f := create(t, at(noon))
	_, err := store(f, noon, []item{{"file", noise(1, 3000)}, {"", noise(2, 100)}, {"", noise(3, 100_000)}})
	require.NoError(t, err)
	lost := 0
	eachFile(t, f.Path(), func(path string, _ []byte) {
		if strings.Contains(path, "/objects/") && strings.HasSuffix(path, blob.Hash(sha256.Sum256([]byte(noise(3, 100_000)))).String()[2:]) {
			require.NoError(t, os.Remove(path))
			lost++
		}
	})
	require.Equal(t, 1, lost)
	reports, err := f.Verify(t.Context(), 0)
	require.NoError(t, err)
	require.Len(t, reports[0].Damage, 1)
	require.Contains(t, reports[0].Damage[0], "is missing")
	s, err := f.Source(1)
	require.NoError(t, err)
	defer s.Close()
	for err == nil {
		if _, err = s.Next(); err == nil {
			_, err = io.Copy(io.Discard, s)
		}
	}
	require.ErrorIs(t, err, envelope.ErrCorrupt)
	require.NotErrorIs(t, err, fs.ErrNotExist)
	require.ErrorContains(t, err, "is missing")
}

func numbers[T any](all []T, of func(T) uint64) (n []uint64) {
	for _, s := range all {
		n = append(n, of(s))
	}
	return n
}

func ofGone(g backup.Gone) uint64         { return g.Number }
func ofSnapshot(s backup.Snapshot) uint64 { return s.Number }

// aged makes four snapshots, one a day; each has a content of its own and one that all share.
func aged(t *testing.T) *backup.Folder {
	now := noon
	f := create(t, backup.Options{Now: func() time.Time { return noon.AddDate(0, 0, 4) }})
	for i := range 4 {
		_, err := store(f, now.AddDate(0, 0, i), []item{{"own", noise(i, 50_000)}, {"shared", noise(9, 50_000)}, {"", noise(20+i, 100_000)}})
		require.NoError(t, err)
	}
	return f
}

// A clock that is ten years ahead for one command, which makes a backup, removes none by age.
func TestRetentionOfAWrongClock(t *testing.T) {
	t.Parallel()
	now := noon
	f := create(t, backup.Options{Now: func() time.Time { return now }})
	make1 := func(i int) {
		_, err := store(f, now, []item{{"own", noise(i, 5_000)}})
		require.NoError(t, err)
	}
	for i := range 3 {
		now = noon.AddDate(0, 0, i)
		make1(i)
	}
	now = noon.AddDate(10, 0, 0)
	make1(4)
	week := backup.Retention{Age: 7 * 24 * time.Hour}
	gone, _, err := f.Prune(t.Context(), week, false)
	require.NoError(t, err)
	require.Empty(t, gone)
	for _, days := range []int{10, 11} {
		now = noon.AddDate(0, 0, days)
		make1(days)
	}
	gone, _, err = f.Prune(t.Context(), week, false)
	require.NoError(t, err)
	require.Equal(t, []uint64{1, 2, 3}, numbers(gone, ofGone), "clean-up goes on")
}

func TestRetention(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for name, c := range map[string]struct {
		r    backup.Retention
		gone []uint64
		why  string
	}{
		"none":          {backup.Retention{}, nil, ""},
		"count":         {backup.Retention{Backups: 3}, []uint64{1}, "more than 3 backups"},
		"days":          {backup.Retention{Age: 2*day + time.Hour}, []uint64{1, 2}, "more than 2 days old"},
		"bytes":         {backup.Retention{Bytes: 400_000}, []uint64{1, 2}, "backups need more than 400000 bytes"},
		"the last stay": {backup.Retention{Age: time.Second, Backups: 1, Bytes: 1}, []uint64{1, 2, 3}, "more than 1 backups"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := aged(t)
			dry, _, err := f.Prune(context.Background(), c.r, true)
			require.NoError(t, err)
			require.Equal(t, c.gone, numbers(dry, ofGone))
			all, err := f.List()
			require.NoError(t, err)
			require.Len(t, all, 4, "it was a dry run")

			gone, freed, err := f.Prune(context.Background(), c.r, false)
			require.NoError(t, err)
			require.Equal(t, dry, gone)
			require.GreaterOrEqual(t, freed, int64(150_000*len(c.gone)))
			for _, g := range gone {
				require.Equal(t, c.why, g.Why)
			}
			all, err = f.List()
			require.NoError(t, err)
			require.Len(t, all, 4-len(gone))
			for _, s := range all {
				got, err := read(f, s.Number)
				require.NoError(t, err)
				require.Equal(t, noise(9, 50_000), got[1].content)
			}
			next, err := store(f, noon, nil)
			require.NoError(t, err)
			require.Equal(t, uint64(5), next.Number)
		})
	}
}

// A snapshot that cannot be read keeps all objects, since it may need any of them.
func TestPruneKeepsWhatADamagedSnapshotMayNeed(t *testing.T) {
	t.Parallel()
	f := aged(t)
	file := filepath.Join(f.Path(), "snapshots", "00000002.json")
	whole, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, whole[:len(whole)/2], 0o600))
	gone, freed, err := f.Prune(context.Background(), backup.Retention{Backups: 2}, false)
	require.ErrorContains(t, err, "remove its file in")
	require.Equal(t, []uint64{1}, numbers(gone, ofGone))
	require.Zero(t, freed)
	require.NoError(t, os.WriteFile(file, whole, 0o600))
	_, err = read(f, 2)
	require.NoError(t, err)
	all, err := f.List()
	require.NoError(t, err)
	require.Equal(t, []uint64{2, 3, 4}, numbers(all, ofSnapshot))
}
