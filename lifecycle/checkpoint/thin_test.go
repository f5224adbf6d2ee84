package checkpoint

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/blob"
	"github.com/lopen-dev/lopen/writer/envelope"
)

// numbers are those of the entries that were not removed.
func (p place) numbers() (all []uint64) {
	entries, _, err := p.List()
	require.NoError(p.t, err)
	for _, e := range entries {
		if e.Removed == "" {
			all = append(all, e.Number)
		}
	}
	return all
}

// night is a chain in which every second entry has a new content of 10,000 bytes: a
// session that is complete, and one whose task was tried twice and whose second task is
// at work.
func night(t *testing.T) place {
	p := newPlace(t)
	n := 0
	create := func(session, task string, why Reason) {
		n++
		p.write("file", strings.Repeat(fmt.Sprintf("%04d ", n), 2000))
		m := about(session, why, nil)
		m.Task = task
		p.create(m)
	}
	create("old", "a", BeforeTask) // 1
	create("old", "a", AfterTask)
	create("new", "a", BeforeTask) // 3
	create("new", "a", AfterTask)
	create("new", "a", BeforeTask) // 5
	create("new", "a", AfterTask)
	create("new", "", Manual)      // 7
	create("new", "b", BeforeTask) // 8
	create("new", "b", BeforeTask)
	create("new", "", Manual) // 10
	create("new", "", Manual)
	return p
}

func TestThin(t *testing.T) {
	t.Parallel()
	unfinished := func(session string) bool { return session == "new" }
	for name, x := range map[string]struct {
		limit int64
		pin   uint64
		keep  []uint64
		want  []uint64
		over  bool
	}{
		"within the limit":       {limit: 1 << 20, want: []uint64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}},
		"no limit":               {want: []uint64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}},
		"a complete session":     {limit: 105_000, want: []uint64{3, 4, 5, 6, 7, 8, 9, 10, 11}},
		"between first and last": {limit: 85_000, want: []uint64{3, 6, 7, 8, 9, 10, 11}},
		"then the rest":          {limit: 60_000, want: []uint64{3, 8, 9, 10, 11}},
		"what must stay":         {limit: 20_000, want: []uint64{8, 9, 10, 11}, over: true},
		"pinned and kept":        {limit: 75_000, pin: 1, keep: []uint64{2}, want: []uint64{1, 2, 8, 9, 10, 11}, over: false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := night(t)
			if x.pin > 0 {
				e, err := p.At(x.pin)
				require.NoError(t, err)
				require.NoError(t, p.Pin(context.Background(), e.ID, true))
			}
			limits := Limits{Bytes: x.limit, Unfinished: unfinished, Keep: func([]*Entry) func(*Entry) bool {
				return func(e *Entry) bool { return slices.Contains(x.keep, e.Number) }
			}}
			done, err := p.Thin(context.Background(), limits)
			require.NoError(t, err)
			require.Equal(t, x.want, p.numbers())
			require.Len(t, done.Removed, 11-len(x.want))
			require.Equal(t, x.over, done.Over > 0, done.Over)
			require.NoError(t, sweep(p.Store))
			require.NoError(t, whole(p.Store))
			if len(done.Removed) > 0 { // what it counted is there, and the frames of the packs
				used, err := p.blobs.Usage()
				require.NoError(t, err)
				require.InDelta(t, done.Bytes, used, 300*float64(len(x.want)))
			}
			again, err := p.Thin(context.Background(), limits)
			require.NoError(t, err)
			require.Empty(t, again.Removed)
		})
	}
}

// What must stay may take more than the limit: then the others may take an eighth of it.
func TestThinBesideWhatMustStay(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]struct {
		// history has a letter for each entry: which content of 100,000 bytes the project had;
		// "-" is none, and a capital one of 10,000 bytes. Each entry has some bytes of its own.
		history string
		limit   int64
		want    []uint64
		over    bool
	}{
		"a huge content that is new":          {history: "-----a", limit: 50_000, want: []uint64{1, 2, 3, 4, 5, 6}, over: true},
		"a project above the limit":           {history: "aaaaaa", limit: 50_000, want: []uint64{1, 2, 3, 4, 5, 6}, over: true},
		"a project that is near the limit":    {history: "aaaaaa", limit: 100_500, want: []uint64{1, 2, 3, 4, 5, 6}},
		"a huge content that is gone":         {history: "---aa---", limit: 50_000, want: []uint64{1, 2, 3, 6, 7, 8}},
		"huge contents, the oldest go":        {history: "-abcdef-", limit: 400_000, want: []uint64{1, 5, 6, 7, 8}},
		"huge contents, all go":               {history: "-abcdef", limit: 50_000, want: []uint64{1, 6, 7}, over: true},
		"what others have frees nothing":      {history: "-bbabb", limit: 150_000, want: []uint64{1, 2, 3, 5, 6}},
		"the others take a fifth":             {history: "ABcc", limit: 100_000, want: []uint64{1, 2, 3, 4}, over: true},
		"the others take more than a quarter": {history: "ABCdd", limit: 100_000, want: []uint64{1, 4, 5}, over: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			for i, c := range x.history {
				p.write("own", fmt.Sprint(i))
				p.remove("content")
				if n := 100_000; c != '-' {
					if c < 'a' {
						n = 10_000
					}
					p.write("content", strings.Repeat(string(c), n))
				}
				p.create(about("s", Manual, nil))
			}
			limits := Limits{Bytes: x.limit}
			done, err := p.Thin(context.Background(), limits)
			require.NoError(t, err)
			require.Equal(t, x.want, p.numbers())
			require.Equal(t, x.over, done.Over > 0, done.Over)
			require.NoError(t, sweep(p.Store))
			require.NoError(t, whole(p.Store))
			again, err := openPlace(t, p.dir, Options{}).Thin(context.Background(), limits)
			require.NoError(t, err)
			require.Empty(t, again.Removed)
		})
	}
}

// An entry that somebody pins while Thin decides what to remove stays.
func TestPinnedWhileThinned(t *testing.T) {
	t.Parallel()
	p := night(t)
	other := openPlace(t, p.dir, Options{})
	pinned := false
	_, err := p.Thin(context.Background(), Limits{Bytes: 60_000, Unfinished: func(session string) bool {
		if !pinned {
			pinned = true
			e, err := other.At(6)
			require.NoError(t, err)
			require.NoError(t, other.Pin(context.Background(), e.ID, true))
		}
		return session == "new"
	}})
	require.NoError(t, err)
	require.Equal(t, []uint64{3, 6, 8, 9, 10, 11}, p.numbers())
}

// The target of a rewind that begins while Thin decides what to remove stays.
func TestRewoundWhileThinned(t *testing.T) {
	t.Parallel()
	p := night(t)
	other := openPlace(t, p.dir, Options{})
	begun := false
	done, err := p.Thin(context.Background(), Limits{Bytes: 60_000, Keep: func(all []*Entry) func(*Entry) bool {
		if !begun {
			begun = true
			m := about("other", BeforeRewind, nil)
			m.Target = 1
			other.create(m)
		}
		return func(e *Entry) bool {
			return slices.ContainsFunc(all, func(other *Entry) bool { return other.Target == e.Number })
		}
	}})
	require.NoError(t, err)
	require.Contains(t, p.numbers(), uint64(1), "the target of a rewind that has begun")
	require.NotEmpty(t, done.Removed)
	require.NoError(t, sweep(p.Store))
	require.NoError(t, whole(p.Store))
	used, err := p.blobs.Usage()
	require.NoError(t, err)
	require.InDelta(t, done.Bytes, used, 300*float64(len(p.numbers())))
}

// Within the limit nothing is listed but once.
func TestThinIsCheapWithin(t *testing.T) {
	t.Parallel()
	p := night(t)
	limits := Limits{Bytes: 1 << 20}
	first, err := p.Thin(context.Background(), limits)
	require.NoError(t, err)
	require.NoError(t, os.Rename(p.dir+"/blobs", p.dir+"/away"))
	again, err := p.Thin(context.Background(), limits)
	require.NoError(t, err)
	require.Equal(t, first, again)
	require.NoError(t, os.Rename(p.dir+"/away", p.dir+"/blobs"))
	for _, content := range []string{"x", "y", "z"} {
		p.write("big", strings.Repeat(content, 1<<20))
		p.create(about("new", Manual, nil))
	}
	last, err := p.Thin(context.Background(), limits)
	require.NoError(t, err)
	require.NotEmpty(t, last.Removed)
	require.Positive(t, last.Over)
}

// A content that has the bytes of a folder's object names nothing, and a folder that has
// those of a content is gone into.
func TestContentThatIsAFolder(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write("dir/x", "one")
	first := p.create(about("s", Manual, nil))
	items, err := p.Tree(first.Root).folder(first.Root)
	require.NoError(t, err)
	object, err := p.blobs.Read(items[0].hash, 1<<10)
	require.NoError(t, err)
	p.write("a", string(object), "z", string(object))
	p.create(about("s", Manual, first))
	require.NoError(t, sweep(p.Store))
	require.NoError(t, whole(openPlace(t, p.dir, Options{}).Store))
}

// A folder's object that is damaged in the store is built and stored again.
func TestDamagedFolderIsStoredAnew(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write("a/b/x", "one", "a/b/y", "two", "c", "three")
	first := p.create(about("s", Manual, nil))
	require.NoError(t, p.Remember())
	packs, err := filepath.Glob(p.dir + "/blobs/packs/*.pack")
	require.NoError(t, err)
	require.Len(t, packs, 1)
	data, err := os.ReadFile(packs[0])
	require.NoError(t, err)
	for i := range data {
		if strings.HasPrefix(string(data[i:]), treeMagic) {
			data[i] ^= 1
		}
	}
	require.NoError(t, os.WriteFile(packs[0], data, 0o600))
	other := openPlace(t, p.dir, Options{})
	require.Error(t, whole(other.Store))
	_, err = other.Tree(first.Root).folder(first.Root)
	require.Error(t, err)
	other.write("c", "THREE")
	second := other.create(about("s", Manual, first))
	require.Equal(t, []string{"drwxr-xr-x a", "drwxr-xr-x a/b", "-rw-r--r-- a/b/x one", "-rw-r--r-- a/b/y two", "-rw-r--r-- c THREE"},
		list(t, openPlace(t, p.dir, Options{}).Tree(second.Root)))
}

// Roots returns an error if it cannot tell what is needed.
func TestRootsRefuses(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write("a", "one")
	p.create(about("s", Manual, nil))
	data, err := os.ReadFile(p.dir + "/checkpoints/main.jsonl")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(p.dir+"/checkpoints/other.jsonl", data, 0o600)) // another work tree's
	into := map[blob.Hash]struct{}{}
	require.NoError(t, Roots(p.Store.dir, p.blobs, into))
	require.Len(t, into, 3) // the root, the content and the rules
	require.NoError(t, os.RemoveAll(p.dir+"/blobs"))
	require.NoError(t, os.Mkdir(p.dir+"/blobs", 0o700))
	other := openPlace(t, p.dir, Options{})
	require.ErrorIs(t, Roots(p.Store.dir, other.blobs, into), envelope.ErrCorrupt)
	// An object that an entry needs and that is gone is damage.
	e := must(t, other)[0]
	_, _, err = other.Tree(e.Root).Find("a")
	require.ErrorIs(t, err, envelope.ErrCorrupt)
	_, err = other.Rules(e)
	require.ErrorIs(t, err, envelope.ErrCorrupt)
}

// watched is a folder that calls a function when a file is opened.
type watched struct {
	writer.FS
	opened func()
}

func (w watched) OpenFile(name string, flag int, perm fs.FileMode) (writer.File, error) {
	w.opened()
	return w.FS.OpenFile(name, flag, perm)
}

// Others can pin and remove entries while trees are walked.
func TestRootsHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write("a", "one")
	first := p.create(about("s", Manual, nil))
	p.write("a", "two")
	p.create(about("s", Manual, first))
	dir, err := writer.OpenFS(p.dir + "/blobs")
	require.NoError(t, err)
	defer dir.Close()
	var once sync.Once
	calls := 0
	blobs := blob.New(watched{dir, func() {
		once.Do(func() {
			calls++
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			_, err := p.Forget(ctx, "a test", func(e *Entry) bool { return e.Number == 1 })
			require.NoError(t, err)
		})
	}})
	into := map[blob.Hash]struct{}{}
	require.NoError(t, Roots(p.Store.dir, blobs, into))
	require.Equal(t, 1, calls)
	require.Contains(t, into, first.Root)
}
