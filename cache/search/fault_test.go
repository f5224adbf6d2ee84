package search

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

// library are some books, with more than a page of words.
func library() (books []*book) {
	r := rand.New(rand.NewPCG(3, 4))
	for b := range 5 {
		x := &book{key: fmt.Sprint("book", b), order: b}
		for range 60 {
			var text strings.Builder
			for range 5 + r.IntN(60) {
				fmt.Fprintf(&text, "word%d ", r.IntN(1+r.IntN(800)))
			}
			x.add(text.String())
		}
		books = append(books, x)
	}
	return books
}

// indexed makes an index of the books and returns its file.
func indexed(t testing.TB, dir string, books []*book) string {
	t.Helper()
	ix := open(t, dir)
	_, err := ix.Search(context.Background(), sourcesOf(books), parse(t, "word1"), 5, none)
	require.NoError(t, err)
	require.NoError(t, ix.Close())
	return ix.file
}

// A byte that changed anywhere in the index changes no result: it is noticed, and the index is made anew.
func TestDamagedAnywhere(t *testing.T) {
	t.Parallel()
	books := library()
	whole, err := os.ReadFile(indexed(t, t.TempDir(), books))
	require.NoError(t, err)
	r := rand.New(rand.NewPCG(5, 6))
	cases := 16
	if testing.Short() {
		cases = 4
	}
	for i := range cases {
		dir := t.TempDir()
		file := indexed(t, dir, books[:1])
		data := append([]byte(nil), whole...)
		if at := r.IntN(len(data)); i%4 == 3 {
			data = data[:at] // as a power cut leaves it
		} else {
			data[at] ^= 1 << r.IntN(8)
		}
		require.NoError(t, os.WriteFile(file, data, 0o600))
		ix := open(t, dir)
		for _, q := range []string{"word1 word2", "word3*", "word5 -word1"} {
			require.Empty(t, both(t, ix, books, parse(t, q), 300).Note)
		}
		require.NoError(t, ix.Close())
	}
}

func TestAnotherVersionIsDropped(t *testing.T) {
	t.Parallel()
	dir, books := t.TempDir(), library()
	file := indexed(t, dir, books)
	old := filepath.Join(filepath.Dir(file), "v0-7.db")
	require.NoError(t, os.WriteFile(old, []byte("of an older lopen"), 0o600))
	ix := open(t, dir)
	_, err := ix.db.Exec(`PRAGMA user_version = 99; DELETE FROM doc`)
	require.NoError(t, err)
	require.NoError(t, ix.Close())
	require.NoFileExists(t, old)
	ix = open(t, dir)
	defer ix.Close()
	require.NotEqual(t, file, ix.file)
	require.NoFileExists(t, file)
	require.Empty(t, both(t, ix, books, parse(t, "word1"), 300).Note)
}

// Several that find no index at once, or an old one, get the same as one alone.
func TestSeveralAtOnce(t *testing.T) {
	t.Parallel()
	dir, books := t.TempDir(), library()
	q := "word1 word2"
	want, err := Scan(context.Background(), sourcesOf(books), parse(t, q), 300, none)
	require.NoError(t, err)
	for range 3 {
		var g errgroup.Group
		for range 4 {
			mine := make([]*book, len(books))
			for i, b := range books {
				mine[i] = &book{key: b.key, version: b.version, order: b.order, docs: b.docs}
			}
			g.Go(func() error {
				ix, err := Open(dir, 10*time.Second)
				if err != nil {
					return err
				}
				defer ix.Close()
				got, err := ix.Search(context.Background(), sourcesOf(mine), parse(t, q), 300, none)
				if err == nil && fmt.Sprint(got.Hits) != fmt.Sprint(want.Hits) {
					err = fmt.Errorf("%d hits, wanted %d: %s", len(got.Hits), len(want.Hits), got.Note)
				}
				return err
			})
		}
		require.NoError(t, g.Wait())
		books[1].add("another one")
		books[2].version += "x"
		want, err = Scan(context.Background(), sourcesOf(books), parse(t, q), 300, none)
		require.NoError(t, err)
	}
	reads := books[0].reads
	ix := open(t, dir)
	defer ix.Close()
	_, err = ix.Search(context.Background(), sourcesOf(books), parse(t, q), 300, none)
	require.NoError(t, err)
	require.Equal(t, reads, books[0].reads, "what the index has is not read")
}

// While another process adds to the index for long, a search reads everything.
func TestBusy(t *testing.T) {
	t.Parallel()
	dir, books := t.TempDir(), library()
	indexed(t, dir, books)
	other := open(t, dir)
	defer other.Close()
	tx, err := other.db.Begin()
	require.NoError(t, err)
	defer tx.Rollback()
	ix, err := Open(dir, time.Millisecond)
	require.NoError(t, err)
	defer ix.Close()
	require.Empty(t, both(t, ix, books, parse(t, "word1"), 300).Note, "it is up to date")
	books[0].add("word1 once more")
	want, err := Scan(context.Background(), sourcesOf(books), parse(t, "word1"), 300, none)
	require.NoError(t, err)
	got, err := ix.Search(context.Background(), sourcesOf(books), parse(t, "word1"), 300, none)
	require.NoError(t, err)
	require.Equal(t, want.Hits, got.Hits)
	require.Equal(t, "another process writes the index", got.Note)
}

// An index that finds no room gives back what it took, and is not made again in as little room.
func TestNoRoom(t *testing.T) {
	t.Parallel()
	dir, books := t.TempDir(), library()
	ix := open(t, dir)
	defer ix.Close()
	_, err := ix.db.Exec(`PRAGMA max_page_count = 1`)
	require.NoError(t, err)
	ask := func(ix *Index) string {
		t.Helper()
		want, err := Scan(context.Background(), sourcesOf(books), parse(t, "word1"), 300, none)
		require.NoError(t, err)
		got, err := ix.Search(context.Background(), sourcesOf(books), parse(t, "word1"), 300, none)
		require.NoError(t, err)
		require.Equal(t, want.Hits, got.Hits)
		return got.Note
	}
	require.Contains(t, ask(ix), "there is no room for it")
	u, err := Use(dir)
	require.NoError(t, err)
	require.Zero(t, u.Bytes)
	_, err = Open(dir, time.Second)
	require.ErrorIs(t, err, errNoRoom)
	require.Len(t, ix.notes(), 1)

	few := filepath.Join(ix.dir, tooLittle+"1")
	require.NoError(t, os.Rename(filepath.Join(ix.dir, ix.notes()[0]), few))
	ix = open(t, dir)
	defer ix.Close()
	require.Empty(t, ask(ix), "there is more room")
	require.Empty(t, ix.notes())
	require.NoError(t, os.WriteFile(filepath.Join(ix.dir, tooLittle+fmt.Sprint(int64(1)<<60)), nil, 0o600))
	require.Empty(t, ask(ix), "nothing is to be added")
	books[0].add("word1 once more")
	require.Contains(t, ask(ix), "there is no room for it")
	require.FileExists(t, ix.file, "what is there stays")
}

// What another process commits between two commits of this one is not overlooked.
func TestAnotherWritesBetween(t *testing.T) {
	t.Parallel()
	dir, books := t.TempDir(), library()
	ix, other := open(t, dir), open(t, dir)
	defer ix.Close()
	defer other.Close()
	w := &indexer{ix: ix}
	var err error
	w.tx, err = ix.db.Begin()
	require.NoError(t, err)
	require.NoError(t, w.begin())
	require.NoError(t, w.commit())
	require.NoError(t, w.tx.Rollback())
	_, err = other.Search(context.Background(), sourcesOf(books), parse(t, "word1"), 5, none)
	require.NoError(t, err)
	w.tx, err = ix.db.Begin()
	require.NoError(t, err)
	defer w.tx.Rollback()
	require.ErrorIs(t, w.begin(), errRaced)
}

// A source that goes on in another way than it was read is read again.
func TestRewrittenSource(t *testing.T) {
	t.Parallel()
	books := []*book{(&book{key: "a"}).add("one").add("two")}
	ix := open(t, t.TempDir())
	defer ix.Close()
	require.Len(t, both(t, ix, books, parse(t, "two"), 5).Hits, 1)
	books[0].docs = books[0].docs[:1]
	books[0].add("three").add("four")
	require.Empty(t, both(t, ix, books, parse(t, "two"), 5).Hits)
	require.Len(t, both(t, ix, books, parse(t, "three"), 5).Hits, 1)
	books[0].docs, books[0].version = nil, "x"
	books[0].add("five").add("six").add("seven")
	require.Empty(t, both(t, ix, books, parse(t, "three"), 5).Hits)
	require.Len(t, both(t, ix, books, parse(t, "seven"), 5).Hits, 1)
	require.True(t, strings.HasSuffix(ix.file, name(1)), "the rest of the index stays")
	require.Empty(t, both(t, ix, nil, parse(t, "one"), 5).Hits)
	var texts int
	require.NoError(t, ix.db.QueryRow(`SELECT count(*) FROM doc`).Scan(&texts))
	require.Zero(t, texts, "what is deleted is not kept")
}

// A source that cannot be read is named, the others are searched, and it is read again the next time.
func TestUnreadableSource(t *testing.T) {
	t.Parallel()
	books := []*book{(&book{key: "a"}).add("one"), (&book{key: "b"}).add("one")}
	broken := true
	sources := sourcesOf(books)
	whole := sources[0].Read
	sources[0].Read = func(above uint64, tail string, fn func(*Document) error) (uint64, string, error) {
		if broken {
			return 0, "", errors.New("cannot be read")
		}
		return whole(above, tail, fn)
	}
	ix := open(t, t.TempDir())
	defer ix.Close()
	var failed []string
	note := func(s *Source, err error) { failed = append(failed, s.Key+": "+err.Error()) }
	r, err := ix.Search(context.Background(), sources, parse(t, "one"), 5, note)
	require.NoError(t, err)
	require.Equal(t, []string{"b:1"}, numbers(r))
	require.Equal(t, []string{"a: cannot be read"}, failed)
	broken = false
	r, err = ix.Search(context.Background(), sources, parse(t, "one"), 5, none)
	require.NoError(t, err)
	require.Equal(t, []string{"a:1", "b:1"}, numbers(r))
}

// Most of the index is gone: it is made anew, so that it does not grow for ever.
func TestMostIsGone(t *testing.T) {
	was := maxGone
	maxGone = 10
	defer func() { maxGone = was }()
	dir, books := t.TempDir(), library()
	ix := open(t, dir)
	defer ix.Close()
	first := ix.file
	both(t, ix, books, parse(t, "word1"), 5)
	both(t, ix, books[:1], parse(t, "word1"), 5)
	require.Equal(t, first, ix.file)
	books[0].add("word1")
	both(t, ix, books[:1], parse(t, "word1"), 5)
	require.NotEqual(t, first, ix.file)
}
