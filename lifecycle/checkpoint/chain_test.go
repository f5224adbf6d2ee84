package checkpoint

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/blob"
	"github.com/lopen-dev/lopen/writer/crashfs"
	"github.com/lopen-dev/lopen/writer/envelope"
)

// lineOf returns the line of an entry in a chain.
func lineOf(t require.TestingT, v any) string {
	line, err := lineFormat.Encode(v)
	require.NoError(t, err)
	return string(line)
}

func testEntry(number uint64, previous string) *Entry {
	e := &Entry{Number: number, Meta: about("s", Manual, nil), Root: blob.Hash{1}, Rules: blob.Hash{2}, Files: 3, Bytes: 4, Changed: 2}
	if previous != "" {
		c, err := parse([]byte(previous), "", nil)
		if err != nil || c.newest() == nil {
			panic("no line")
		}
		e.Previous = c.newest().ID
	}
	return e
}

func TestChainLineIsAsItHasAlwaysBeen(t *testing.T) {
	t.Parallel()
	e := testEntry(2, "")
	e.Reason, e.Incarnation, e.Parent, e.Messages, e.Git = BeforeTask, "inc", 1, 4, Git{Head: "abc", Branch: "main"}
	e.By, e.Active, e.Cut = []Active{{"r", "b", 1}}, []Active{{"s", "a/task-1", 2}}, true
	require.Equal(t, `{"version":1,"number":2,"previous":"0000000000000000000000000000000000000000000000000000000000000000",`+
		`"session":"s","incarnation":"inc","seq":7,"parent":1,"at":"2026-03-01T12:00:00.000000005Z","reason":"before-task","task":"a/task-1",`+
		`"tasks":{"total":3,"completed":1},"messages":4,"git":{"head":"abc","branch":"main"},`+
		`"root":"0100000000000000000000000000000000000000000000000000000000000000","rules":"0200000000000000000000000000000000000000000000000000000000000000",`+
		`"by":[{"session":"r","task":"b","begun":1}],"active":[{"session":"s","task":"a/task-1","begun":2}],"cut":true,`+
		`"changed":2,"files":3,"bytes":4,"checksum":"crc32c:078e6245"}`+"\n", lineOf(t, e))
	c, err := parse([]byte(lineOf(t, e)), "", nil)
	require.NoError(t, err)
	got := *c.entries[0]
	require.Equal(t, "27e626f0", got.ID.Short())
	got.ID = ID{}
	require.Equal(t, *e, got)
	require.Equal(t, `{"version":1,"removed":2,"why":"old","checksum":"crc32c:071d72d7"}`+"\n", lineOf(t, removal{2, "old"}))
	require.Equal(t, `{"version":1,"pin":2,"pinned":false,"checksum":"crc32c:e64cf281"}`+"\n", lineOf(t, pinning{2, false}))
}

// A damaged line loses the entry in it, and the changes of the entry after it are contested.
func TestDamagedLines(t *testing.T) {
	t.Parallel()
	one := lineOf(t, testEntry(1, ""))
	two := lineOf(t, testEntry(2, one))
	three := lineOf(t, testEntry(3, two))
	volumes := testEntry(2, one)
	volumes.Mounts, volumes.Volumes = []string{"a", "b"}, []string{"1"}
	bad := strings.Replace(two, `"number":2`, `"number":9`, 1)
	numbers := func(c *chain) (all []uint64) {
		for _, e := range c.entries {
			all = append(all, e.Number)
		}
		return all
	}
	for name, x := range map[string]struct {
		file   string
		want   []uint64
		faults int
		cut    bool // of the newest
		next   uint64
	}{
		"whole":         {one + two + three, []uint64{1, 2, 3}, 0, false, 4},
		"torn":          {one + two[:len(two)-1], []uint64{1}, 0, false, 2},
		"bad end":       {one + bad, []uint64{1}, 0, false, 3},
		"bad middle":    {one + bad + three, []uint64{1, 3}, 1, true, 4},
		"bad begin":     {bad + two + three, []uint64{2, 3}, 1, false, 4},
		"bad, pin":      {one + bad + lineOf(t, pinning{1, true}) + three, []uint64{1, 3}, 1, true, 4},
		"twice":         {one + two + two + three, []uint64{1, 2, 3}, 1, true, 4},
		"empty line":    {one + "\n" + two, []uint64{1, 2}, 1, true, 3},
		"unknown":       {one + lineOf(t, removal{7, "x"}) + two, []uint64{1, 2}, 0, false, 3},
		"nothing":       {"", nil, 0, false, 1},
		"no reason":     {one + lineOf(t, &Entry{Number: 2}) + three, []uint64{1, 3}, 1, true, 4},
		"volumes":       {one + lineOf(t, volumes) + three, []uint64{1, 3}, 1, true, 4},
		"nothing in it": {one + lineOf(t, struct{}{}) + two, []uint64{1, 2}, 1, true, 3},
	} {
		c, err := parse([]byte(x.file), "chain", nil)
		require.NoError(t, err, name)
		require.Equal(t, x.want, numbers(c), name)
		require.Len(t, c.faults, x.faults, name)
		for _, f := range c.faults {
			require.ErrorIs(t, f, envelope.ErrCorrupt)
		}
		require.Equal(t, x.next, c.next+uint64(c.tail), name)
		if e := c.newest(); e != nil {
			require.Equal(t, x.cut, e.Cut, name)
		}
		// What was read before is gone on from, wherever it ended.
		for end := 0; end < len(x.file); end += 37 {
			part, err := parse([]byte(x.file[:end]), "chain", nil)
			require.NoError(t, err)
			again, err := parse([]byte(x.file), "chain", part)
			require.NoError(t, err)
			c.owned, again.owned = false, false // whoever copies them may say so again
			require.Equal(t, c, again, "%s, %d", name, end)
		}
	}
	future, err := envelope.Format{Key: "version", Version: 2, Max: 100}.Encode(removal{1, "x"})
	require.NoError(t, err)
	_, err = parse([]byte(one+string(future)), "chain", nil)
	require.ErrorIs(t, err, envelope.ErrFutureVersion)
}

func TestPinAndForget(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	ctx := context.Background()
	p.write("a", "one")
	one := p.create(about("s", Manual, nil))
	p.write("a", "two")
	two := p.create(about("s", Manual, one))
	require.NoError(t, p.Pin(ctx, one.ID, true))
	require.NoError(t, p.Pin(ctx, one.ID, true))
	require.True(t, must(t, p)[0].Pinned)
	require.False(t, one.Pinned) // it is immutable
	require.True(t, must(t, openPlace(t, p.dir, Options{}))[0].Pinned)
	require.NoError(t, p.Pin(ctx, one.ID, false))
	require.False(t, must(t, p)[0].Pinned)

	n, err := p.Forget(ctx, "too old", func(e *Entry) bool { return e.Number == 2 })
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.Equal(t, "too old", must(t, p)[1].Removed)
	_, err = p.Find(two.ID)
	require.ErrorIs(t, err, ErrNotFound)
	require.ErrorIs(t, p.Pin(ctx, two.ID, true), ErrNotFound)
	e, err := p.At(2)
	require.NoError(t, err)
	require.Equal(t, "too old", e.Removed)
	n, err = p.Forget(ctx, "again", func(*Entry) bool { return true })
	require.NoError(t, err)
	require.Equal(t, 1, n)
	// Numbers are never given twice.
	three := openPlace(t, p.dir, Options{}).create(about("s", Manual, two))
	require.EqualValues(t, 3, three.Number)
	require.Equal(t, two.ID, three.Previous)
	line, err := p.Line(3)
	require.NoError(t, err)
	require.Equal(t, map[uint64]bool{1: true, 2: true, 3: true}, line)
	line, err = p.Line(9)
	require.NoError(t, err)
	require.Empty(t, line)
}

// TestWhoIsAtWork checks who may have made a change.
func TestWhoIsAtWork(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	dead := map[string]bool{}
	var mu sync.Mutex
	opts := Options{Alive: func(id string) bool { mu.Lock(); defer mu.Unlock(); return !dead[id] }}
	a, b := openPlace(t, p.dir, opts), openPlace(t, p.dir, opts)
	task := func(session string, begun uint64) Active { return Active{session, "a/task-1", begun} }
	check := func(e *Entry, cut bool, by []Active, active ...Active) {
		t.Helper()
		require.Equal(t, by, e.By)
		require.Equal(t, active, e.Active)
		require.Equal(t, cut, e.Cut)
	}
	check(a.create(about("a", BeforeTask, nil)), false, nil, task("a", 1))
	check(a.create(about("a", Manual, nil)), false, []Active{task("a", 1)}, task("a", 1))
	check(b.create(about("b", BeforeTask, nil)), false, []Active{task("a", 1)}, task("a", 1), task("b", 3))
	e := a.create(about("a", AfterTask, nil))
	check(e, false, []Active{task("a", 1), task("b", 3)}, task("b", 3))
	require.True(t, e.Contested())
	// A task whose end was not recorded is over when the next one begins: nobody knows since when.
	check(b.create(about("b", BeforeTask, nil)), true, []Active{task("b", 3)}, task("b", 5))
	// One that another process began was cut off.
	b = openPlace(t, p.dir, opts)
	check(b.create(about("b", Manual, nil)), true, []Active{task("b", 5)})
	check(b.create(about("b", Manual, nil)), false, nil)
	// So was one whose session nobody holds.
	check(b.create(about("b", BeforeTask, nil)), false, nil, task("b", 8))
	mu.Lock()
	dead["b"] = true
	mu.Unlock()
	check(a.create(about("a", BeforeTask, nil)), true, []Active{task("b", 8)}, task("a", 9))
	check(a.create(about("a", AfterTask, nil)), false, []Active{task("a", 9)})
	check(a.create(about("a", Manual, nil)), false, nil)
	look, _, err := a.Look(context.Background(), about("a", Manual, nil))
	require.NoError(t, err)
	require.EqualValues(t, 12, look.Number)
	require.Zero(t, look.ID)
}

// TestTwoStoresOfOneChain has several processes make entries at once: none is lost, and
// each tree is at least as new as the one before.
func TestTwoStoresOfOneChain(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	const each = 12
	names := []string{"a", "b", "c"}
	var wait sync.WaitGroup
	errs := make([]error, len(names))
	for i, name := range names {
		mine := openPlace(t, p.dir, Options{})
		wait.Go(func() {
			for n := range each {
				if errs[i] = writer.ReplaceFile(mine.tree, name, fmt.Appendf(nil, "%03d", n), 0o644); errs[i] != nil {
					return
				}
				why := BeforeTask
				if n%2 == 1 {
					why = AfterTask
				}
				if _, errs[i] = mine.Create(context.Background(), about(name, why, nil)); errs[i] != nil {
					return
				}
			}
		})
	}
	wait.Wait()
	require.NoError(t, errors.Join(errs...))
	entries := must(t, p)
	require.Len(t, entries, each*len(names))
	last, active := map[string]string{}, []Active(nil)
	for i, e := range entries {
		require.EqualValues(t, i+1, e.Number)
		if i > 0 {
			require.Equal(t, entries[i-1].ID, e.Previous)
		}
		require.Equal(t, active, e.By)
		require.False(t, e.Cut)
		active = e.Active
		for _, name := range names {
			f, known, err := p.Tree(e.Root).Find(name)
			require.NoError(t, err)
			require.True(t, known)
			if f == nil {
				require.Empty(t, last[name])
				continue
			}
			data, err := p.blobs.Read(f.Hash, 10)
			require.NoError(t, err)
			require.GreaterOrEqual(t, string(data), last[name])
			last[name] = string(data)
		}
	}
	require.Empty(t, active)
}

// A Store appends to a file that is as this Store left it, and replaces any other file.
func TestAppendOrReplace(t *testing.T) {
	t.Parallel()
	disk := crashfs.New(crashfs.Ext4)
	s, other := simulated(t, disk), simulated(t, disk)
	var ops []string
	record := func(s *Store) string {
		ops = nil
		disk.SetHook(func(op crashfs.Op) crashfs.Fault {
			if op.N > 0 && strings.HasPrefix(op.Name, "checkpoints/main") || strings.HasPrefix(op.Name, "checkpoints/.tmp-main") && op.Call == "create" {
				ops = append(ops, op.Call)
			}
			return crashfs.Fault{}
		})
		_, err := s.Create(context.Background(), about("s", Manual, nil))
		require.NoError(t, err)
		disk.SetHook(nil)
		return strings.Join(ops, " ")
	}
	const replaced, appended = "create rename", "open write datasync close"
	require.Equal(t, replaced, record(s))
	require.Equal(t, appended, record(s))
	require.Equal(t, appended, record(s))
	require.Equal(t, replaced, record(other))
	require.Equal(t, replaced, record(s))
	require.Equal(t, appended, record(s))
	// A torn end is not appended to.
	f, err := s.dir.OpenFile("main.jsonl", os.O_WRONLY|os.O_APPEND, 0)
	require.NoError(t, err)
	_, err = f.Write([]byte(`{"version":1,"number":7,`))
	require.NoError(t, err)
	require.NoError(t, f.Close())
	require.Equal(t, replaced, record(s))
	data, err := writer.ReadFile(s.dir, "main.jsonl", 1<<20)
	require.NoError(t, err)
	require.Equal(t, 7, bytes.Count(data, []byte("\n")))
	entries, faults, err := s.List()
	require.NoError(t, err)
	require.Empty(t, faults)
	require.Len(t, entries, 7)
}

// A damaged last line may have been an entry. Its number is not used again, and nobody
// knows who was at work since then.
func TestEntryAfterADamagedEnd(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.create(about("s", Manual, nil))
	p.create(about("s", BeforeTask, nil))
	name := p.dir + "/checkpoints/main.jsonl"
	data, err := os.ReadFile(name)
	require.NoError(t, err)
	data[len(data)-3] ^= 1
	require.NoError(t, os.WriteFile(name, data, 0o600))
	e := p.create(about("s", Manual, nil))
	require.EqualValues(t, 3, e.Number)
	require.True(t, e.Cut)
	require.Equal(t, []uint64{1, 3}, p.numbers())
	require.Len(t, must(t, openPlace(t, p.dir, Options{})), 2)
}

// Lines of removed entries before the oldest entry that is left do not stay for ever.
func TestDeadLinesGo(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	var file strings.Builder
	const many = 1500
	for n := range uint64(many) {
		e := testEntry(n+1, "")
		e.Task = strings.Repeat("x", 1<<9)
		file.WriteString(lineOf(t, e))
	}
	for n := range uint64(many - 1) {
		file.WriteString(lineOf(t, removal{n + 1, "old"}))
	}
	require.NoError(t, os.WriteFile(p.dir+"/checkpoints/main.jsonl", []byte(file.String()), 0o600))
	e := p.create(about("s", Manual, nil))
	require.EqualValues(t, many+1, e.Number)
	data, err := os.ReadFile(p.dir + "/checkpoints/main.jsonl")
	require.NoError(t, err)
	require.Less(t, len(data), file.Len()/4)
	require.Equal(t, []uint64{many, many + 1}, p.numbers())
	require.Len(t, must(t, openPlace(t, p.dir, Options{})), 2)
	_, err = p.Forget(context.Background(), "test", func(*Entry) bool { return true })
	require.NoError(t, err)
	require.EqualValues(t, many+2, openPlace(t, p.dir, Options{}).create(about("s", Manual, nil)).Number)
}

func TestReasonsAndBounds(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	_, err := p.Create(context.Background(), Meta{Reason: "because"})
	require.ErrorIs(t, err, writer.ErrInvalid)
	long := about("s", Manual, nil)
	long.Task = strings.Repeat("x", 70<<10)
	_, err = p.Create(context.Background(), long)
	require.ErrorIs(t, err, writer.ErrInvalid)
	later := about("s", Manual, nil)
	later.Parent = 1 // no entry before it: nobody could read the line
	_, err = p.Create(context.Background(), later)
	require.ErrorIs(t, err, writer.ErrInvalid)
	require.Empty(t, must(t, p))
	require.NoError(t, os.Truncate(p.sparse("main.jsonl"), maxChain+1))
	_, _, err = p.List()
	require.ErrorIs(t, err, writer.ErrInvalid)
	_, err = p.Create(context.Background(), about("s", Manual, nil))
	require.ErrorIs(t, err, writer.ErrInvalid)
}

// sparse makes an empty file among the checkpoints.
func (p place) sparse(name string) string {
	full := p.dir + "/checkpoints/" + name
	require.NoError(p.t, os.WriteFile(full, nil, 0o600))
	return full
}
