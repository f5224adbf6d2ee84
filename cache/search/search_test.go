package search

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/text/unicode/norm"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A book is a source of a test: documents that can be added to.
type book struct {
	key     string
	version string
	order   int
	docs    []Document
	reads   int
}

func day(n int) time.Time { return time.Date(2026, 1, 1, 0, n, 0, 0, time.UTC) }

func (b *book) add(text string, more ...func(*Document)) *book {
	d := Document{Number: uint64(len(b.docs) + 1), Time: day(len(b.docs)).Add(123456), Kind: "message", Role: "user", Text: text}
	for _, fn := range more {
		fn(&d)
	}
	b.docs = append(b.docs, d)
	return b
}

func (b *book) source() Source {
	return Source{Key: b.key, Version: b.version, Mark: uint64(len(b.docs)), Order: day(b.order),
		Read: func(above uint64, tail string, fn func(*Document) error) (uint64, string, error) {
			b.reads++
			if above > uint64(len(b.docs)) || above > 0 && tail != b.docs[above-1].Text {
				return 0, "", ErrChanged
			}
			for i := above; i < uint64(len(b.docs)); i++ {
				d := b.docs[i]
				if err := fn(&d); err != nil {
					return 0, "", err
				}
			}
			if len(b.docs) > 0 {
				tail = b.docs[len(b.docs)-1].Text
			}
			return uint64(len(b.docs)), tail, nil
		}}
}

func sourcesOf(books []*book) (all []Source) {
	for _, b := range books {
		all = append(all, b.source())
	}
	return all
}

func open(t require.TestingT, dir string) *Index {
	ix, err := Open(dir, time.Second)
	require.NoError(t, err)
	return ix
}

func parse(t require.TestingT, text string) *Query {
	q, err := Parse(text)
	require.NoError(t, err)
	return q
}

func none(s *Source, err error) { panic(fmt.Sprint(s.Key, err)) }

// both searches with the index and without, and requires the same.
func both(t require.TestingT, ix *Index, books []*book, q *Query, limit int) *Result {
	want, err := Scan(context.Background(), sourcesOf(books), q, limit, none)
	require.NoError(t, err)
	got, err := ix.Search(context.Background(), sourcesOf(books), q, limit, none)
	require.NoError(t, err)
	require.Equal(t, want, got)
	return got
}

func numbers(r *Result) (all []string) {
	for _, h := range r.Hits {
		all = append(all, fmt.Sprintf("%s:%d", h.Source, h.Number))
	}
	slices.Sort(all)
	return all
}

func TestQueries(t *testing.T) {
	t.Parallel()
	books := []*book{
		(&book{key: "a", order: 1}).add("Read the file src/auth.go").add("read_file failed: Zürich, naïve CAFÉ").add("the file, read"),
		(&book{key: "b", order: 2}).add("authentication and authorisation").add("数据库 is broken", func(d *Document) { d.Role, d.Tool = "tool", "Bash" }).
			add("touched", func(d *Document) { d.Files = []string{"/home/u/src/auth.go"} }),
	}
	ix := open(t, t.TempDir())
	defer ix.Close()
	for query, want := range map[string][]string{
		"read file":         {"a:1", "a:2", "a:3"},
		`"read file"`:       {"a:2"},
		"READ_FILE":         {"a:2"},
		"zurich cafe":       {"a:2"},
		"naive":             {"a:2"},
		"auth*":             {"a:1", "b:1"},
		"auth* -file":       {"b:1"},
		`read -"read file"`: {"a:1", "a:3"},
		"数据":                {"b:2"},
		"据":                 {"b:2"},
		"数库":                nil,
		"aut":               nil,
		`x" OR "file`:       nil,
		`NEAR(read file)`:   nil,
		"text:read":         nil,
	} {
		require.Equal(t, want, numbers(both(t, ix, books, parse(t, query), 10)), query)
	}
	for file, want := range map[string][]string{"src/auth.go": {"b:3"}, "rc/auth.go": nil, "/home/u/src/auth.go": {"b:3"}} {
		q := parse(t, "")
		q.File = file
		require.Equal(t, want, numbers(both(t, ix, books, q, 10)))
	}
	list := (&book{key: "list"}).add(strings.Repeat("docs/other.md\n", 30)+"src/auth.go\ndocs/more.md", func(d *Document) { d.Files = []string{"docs/other.md", "src/auth.go"} }).
		add("reads ./src/auth.go there", func(d *Document) { d.Files = []string{"/home/u/src/auth.go"} })
	q := parse(t, "")
	q.File = "src/auth.go"
	for i, hit := range both(t, ix, []*book{list}, q, 10).Hits {
		require.Len(t, hit.Snippet.Marks, 1)
		m := hit.Snippet.Marks[0]
		require.Equal(t, "src/auth.go", hit.Snippet.Text[m[0]:m[1]], i)
	}
	q = parse(t, "is")
	q.Role, q.Tool = "tool", "bash"
	require.Equal(t, []string{"b:2"}, numbers(both(t, ix, books, q, 10)))
	for _, name := range someNames {
		if strings.Contains(name, "\n") { // no tool has such a name
			continue
		}
		b := (&book{key: name}).add("here", func(d *Document) { d.Role, d.Tool, d.Files = name, name, []string{"src/" + name} })
		q := parse(t, "here")
		q.Role, q.Tool, q.File = name, name, name
		require.Len(t, both(t, ix, []*book{b}, q, 10).Hits, 1, name)
	}
	forms := (&book{key: "forms"}).add("ΟΔΟΣ").add("οδος, ΣΊΣΥΦΟΣ").add("한국어 검색").add(norm.NFD.String("한국어, 갉아")).add("カ\u3099ス")
	for query, want := range map[string][]string{
		"οδοσ": {"forms:1", "forms:2"}, "ΟΔΌΣ": {"forms:1", "forms:2"}, "σισυφος": {"forms:2"},
		"한국어": {"forms:3", "forms:4"}, norm.NFD.String("한국어"): {"forms:3", "forms:4"}, "갉*": {"forms:4"}, "ガス": {"forms:5"},
	} {
		require.Equal(t, want, numbers(both(t, ix, []*book{forms}, parse(t, query), 10)), query)
	}
	long := strings.Repeat("b", maxWord)
	b := (&book{key: "long words"}).add("here " + long).add("here " + long + "b")
	require.Equal(t, []string{"long words:2"}, numbers(both(t, ix, []*book{b}, parse(t, "here -"+long), 10)))
	require.Empty(t, numbers(both(t, ix, []*book{b}, parse(t, "here -"+long+"*"), 10)))
	_, err := Parse(`a "b`)
	require.ErrorIs(t, err, ErrQuery)
	_, err = Parse(strings.Repeat("a ", 65))
	require.ErrorIs(t, err, ErrQuery)
	require.True(t, parse(t, `-a "--"`).Empty())
}

// A text has the same words whether its characters are composed or not.
func TestFormsOfUnicode(t *testing.T) {
	t.Parallel()
	wordsOf := func(text string) (all []string) {
		for tok := (tokenizer{text: text}); tok.scan(); {
			if len(tok.word) > 0 {
				all = append(all, string(tok.word))
			}
		}
		return all
	}
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.OneOf(
			rapid.RuneFrom([]rune("aZé ς.\u0301\u1100\u1161\u11a8"), unicode.Hangul, unicode.Greek, unicode.Latin, unicode.Han, unicode.Katakana, unicode.Arabic, unicode.Devanagari),
			rapid.Rune())).Draw(t, "text")
		require.Equal(t, wordsOf(norm.NFC.String(text)), wordsOf(norm.NFD.String(text)), "%+q", text)
		require.Equal(t, wordsOf(text), wordsOf(norm.NFD.String(text)), "%+q", text)
	})
}

var someWords = strings.Fields(`alpha Alpha ALPHÁ beta gamma_delta delta delta. ` +
	`e eé é x y 数据 据 ` + strings.Repeat("long", 20) + ` ` + strings.Repeat("long", 20) + `er alphabet "alpha -beta al* ` + around("b", maxWord) + around("ж", maxWord))

// around are words about as long as what is indexed of one, their beginnings, and what must not be one.
func around(letter string, size int) (all string) {
	for n := size/len(letter) - 1; n <= size/len(letter)+1; n++ {
		word := strings.Repeat(letter, n)
		all += word + " -" + word + " " + word + "* -" + word + "* "
	}
	return all
}

// someNames are roles, tools and names of files: short ones, some about as long as what is indexed of one,
// and longer ones.
var someNames = func() (all []string) {
	all = []string{"b.go", "B.GO", "user_authentication_handler.go", "mcp__playwright__browser_navigate", "数据库连接管理器.py", "a\nb", "ſ", "ς", "K"}
	for n := maxTag - 1; n <= maxTag+1; n++ {
		all = append(all, strings.Repeat("n", n), strings.Repeat("N", n))
	}
	return append(all, strings.Repeat("ж", maxTag/2), strings.Repeat("ж", maxTag/2)+"x")
}()

// someName draws a name, half of the time in another form: what is asked for and what there is differ.
func someName(t *rapid.T, label string) string {
	name := rapid.SampledFrom(someNames).Draw(t, label)
	switch rapid.SampledFrom([]string{"same", "same", "upper", "lower", "longer"}).Draw(t, "form") {
	case "upper":
		return strings.ToUpper(name)
	case "lower":
		return strings.ToLower(name)
	case "longer":
		return name + "x"
	}
	return name
}

// somePath draws a path: a name, with folders before it or without.
func somePath(t *rapid.T, label string) string {
	return rapid.SampledFrom([]string{"", "a/", "src/a/", "/home/u/src/a/", "../"}).Draw(t, label) + someName(t, label)
}

// The index finds what a scan finds, in the same order, whatever was added or removed between.
func TestIndexAndScanAgree(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "search")
		require.NoError(t, err)
		defer os.RemoveAll(dir)
		ix := open(t, dir)
		defer func() { require.NoError(t, ix.Close()) }()
		words := rapid.SliceOfN(rapid.SampledFrom(someWords), 0, 12)
		var books []*book
		made := 0
		for range rapid.IntRange(1, 6).Draw(t, "rounds") {
			switch n := rapid.IntRange(0, 5).Draw(t, "step"); {
			case n == 0 && len(books) > 0:
				books = slices.Delete(books, 0, 1)
			case n == 1 && len(books) > 0:
				b := books[rapid.IntRange(0, len(books)-1).Draw(t, "which")]
				b.docs, b.version = b.docs[:len(b.docs)/2], b.version+"x"
			case n < 4 || len(books) == 0:
				made++
				books = append(books, &book{key: fmt.Sprint("book", made), order: rapid.IntRange(0, 3).Draw(t, "order")})
			}
			for _, b := range books {
				for range rapid.IntRange(0, 3).Draw(t, "added") {
					b.add(strings.Join(words.Draw(t, "text"), " "), func(d *Document) {
						d.Time = day(rapid.IntRange(0, 9).Draw(t, "time")).Add(123456)
						d.Role = rapid.SampledFrom([]string{"user", "tool", "", someName(t, "role")}).Draw(t, "role")
						for range rapid.IntRange(0, 2).Draw(t, "tools") {
							d.Tool = strings.TrimSpace(d.Tool + " " + someName(t, "tool"))
						}
						for range rapid.IntRange(0, 2).Draw(t, "files") {
							d.Files = append(d.Files, somePath(t, "path"))
						}
					})
				}
			}
			q, err := Parse(strings.Join(words.Draw(t, "query"), " "))
			if err != nil {
				continue
			}
			q.Role = rapid.SampledFrom([]string{"", "", "", "tool", "User", someName(t, "role")}).Draw(t, "of")
			q.Tool = rapid.SampledFrom([]string{"", "", "", someName(t, "tool")}).Draw(t, "with")
			q.File = rapid.SampledFrom([]string{"", "", somePath(t, "path")}).Draw(t, "file")
			if rapid.Bool().Draw(t, "since") {
				q.Since = day(rapid.IntRange(0, 9).Draw(t, "day")).Add(time.Duration(rapid.IntRange(-2, 2).Draw(t, "ms")) * time.Millisecond / 2)
			}
			if !q.Empty() {
				both(t, ix, books, q, rapid.IntRange(1, 5).Draw(t, "limit"))
			}
		}
	})
}

// More documents than are ranked, in an index that was made at once and in one that grew in rounds, where
// those of one source are scattered: the newest of each way.
func TestMoreThanAreRanked(t *testing.T) {
	if testing.Short() {
		t.Skip("thousands of documents, and others do the same at once; -short")
	}
	t.Parallel()
	for rounds, stretches := range map[int]int{1: 3, 10: 81} {
		t.Run(fmt.Sprint(rounds), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(1, 1))
			var books []*book
			for b := range 8 {
				books = append(books, &book{key: fmt.Sprint("b", b), order: b % 3})
			}
			ix := open(t, t.TempDir())
			defer ix.Close()
			for range rounds {
				for _, x := range books {
					for i := range 1000 / rounds {
						text := "common"
						if i%10 == 0 {
							text += " rare" + strings.Repeat(" common", r.IntN(5))
						}
						if r.IntN(2) == 0 {
							text += " half"
						}
						x.add(text)
					}
				}
				both(t, ix, books, parse(t, "nothing"), 1)
			}
			books[0].add(strings.Repeat("piece ", 20000))
			for _, query := range []string{"common", "half common", "rare", "rare -half", "piece", "comm*"} {
				q := parse(t, query)
				got := both(t, ix, books, q, 20)
				require.Equal(t, query != "piece" && query != "rare -half", got.More, query)
				q.Sources = func(s *Source) bool { return s.Key == "b1" || s.Key == "b7" }
				both(t, ix, books, q, 20)
			}
			require.Len(t, stretchesIn(t, ix, books), stretches)
		})
	}
}

// A beginning that very many words have is found in the newest entries, or behind them, in an index that was made at
// once and in one where the entries of a source are scattered.
func TestBroadBeginning(t *testing.T) {
	if testing.Short() {
		t.Skip("thousands of documents, and others do the same at once; -short")
	}
	t.Parallel()
	for _, rounds := range []int{1, 10} {
		t.Run(fmt.Sprint(rounds), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(2, 7))
			var books []*book
			for b := range 6 {
				books = append(books, &book{key: fmt.Sprint("b", b), order: b % 3})
			}
			ix := open(t, t.TempDir())
			defer ix.Close()
			for range rounds {
				for _, x := range books {
					for range 1200 / rounds {
						text := fmt.Sprintf("many%d ", r.IntN(2*maxBegin))
						if r.IntN(3) == 0 {
							text += "third "
						}
						if r.IntN(2) == 0 && x.order == 0 && len(x.docs) < 400 {
							text += fmt.Sprintf("old%d ", len(x.docs))
						}
						x.add(text)
					}
				}
				both(t, ix, books, parse(t, "nothing"), 1)
			}
			for query, more := range map[string]bool{"many*": true, "many* third": true, "many* -third": true, "old*": false, "old* third": false, "old* -third": false, "old* many*": false, "none* many*": false} {
				q := parse(t, query)
				got := both(t, ix, books, q, 20)
				require.Equal(t, more, got.More, query)
				require.Equal(t, !strings.HasPrefix(query, "none"), len(got.Hits) > 0, query)
				q.Sources = func(s *Source) bool { return s.Key == "b0" || s.Key == "b4" }
				both(t, ix, books, q, 20)
			}
		})
	}
}

// stretchesIn returns in how many parts the entries of all sources are looked up.
func stretchesIn(t *testing.T, ix *Index, books []*book) []stretch {
	return stretchesOf(runsIn(t, ix, books, &Query{}))
}

// runsIn returns the runs that are looked at for a query.
func runsIn(t *testing.T, ix *Index, books []*book, q *Query) []run {
	tx, err := ix.db.Begin()
	require.NoError(t, err)
	defer func() { require.NoError(t, tx.Rollback()) }()
	have, err := current(tx)
	require.NoError(t, err)
	runs, err := (&finder{tx: tx, pool: newPool(q, 1)}).readRuns(sorted(sourcesOf(books), nil), have)
	require.NoError(t, err)
	return runs
}

// A search for what is young looks at few entries that are older, in a source that was read at once and in one that
// grew, also where times descend.
func TestSince(t *testing.T) {
	if testing.Short() {
		t.Skip("thousands of documents, and others do the same at once; -short")
	}
	t.Parallel()
	at := func(minute int) func(*Document) { return func(d *Document) { d.Time = day(minute) } }
	books := []*book{{key: "at once"}, {key: "grew"}, {key: "backwards"}}
	ix := open(t, t.TempDir())
	defer ix.Close()
	for i := range 4 * maxRun {
		books[0].add("common", at(i))
		books[2].add("common", at(4*maxRun-1-i))
	}
	for range 4 {
		for range maxRun {
			books[1].add("common", at(len(books[1].docs)))
		}
		both(t, ix, books, parse(t, "nothing"), 1)
	}
	require.Len(t, runsIn(t, ix, books, &Query{}), 3*4)
	for minute, runs := range map[int]int{0: 4, 2*maxRun - 1: 3, 2 * maxRun: 2, 4*maxRun - 1: 1, 4 * maxRun: 0} {
		q := parse(t, "common")
		q.Since = day(minute)
		require.Len(t, runsIn(t, ix, books, q), 3*runs, minute)
		both(t, ix, books, q, 20)
		q.Since = q.Since.Add(1)
		both(t, ix, books, q, 20)
	}
}

// A search that nobody waits for any more ends at the next document, and is not a short answer.
func TestACancelledScanEnds(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"needle", "hay"} {
		b := (&book{key: "s"}).add(text).add(text).add(text).add(text)
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		read, s := 0, b.source()
		whole := s.Read
		s.Read = func(above uint64, tail string, fn func(*Document) error) (uint64, string, error) {
			return whole(above, tail, func(d *Document) error {
				if read++; read == 2 {
					cancel()
				}
				return fn(d)
			})
		}
		r, err := Scan(ctx, []Source{s}, parse(t, "needle"), 10, none)
		require.ErrorIs(t, err, context.Canceled)
		require.Nil(t, r)
		require.Equal(t, 2, read, "what came after it was cancelled was read")
	}
}
